//! The device `ane`: the engine of this Mac, or of a library that stands in for its frameworks.

use super::binding;
use super::cache::Cache;
use super::core::{Core, Segment, Source};
use super::error::AneError;
use super::executable::AneExecutable;
use super::kernel::{Context, Kernel, Side};
use super::model::Way;
use super::options::{AneOptions, AneRoute};
use super::prepare::{Part, Prepared, cache_of, prepare};
use super::shared::Shared;
use super::stats::{Counts, EngineReport};
use super::{e5rt, memory};
use crate::device::Ports;
use crate::segment::Layout;
use crate::{Buffer, Device, DeviceError, Executable, Port, Program, States};
use aneforge_compile::{Link, SegmentKind};
use aneforge_core::{Chip, Target};
use aneforge_sys::Source as Library;
use aneforge_sys::ane::Client;
use std::sync::Arc;

/// Programs run on the engine, in this process.
#[derive(Debug)]
pub struct Ane {
    name: String,
    options: Arc<AneOptions>,
    shared: Arc<Shared>,
    chip: &'static Chip,
    os_build: String,
    cache: Cache,
}

impl Ane {
    /// Opens the engine. Its chip is the one that the system names.
    ///
    /// # Errors
    /// [`DeviceError::NotHere`] where there is no engine, its frameworks lack something that the route needs, or nothing is known of
    /// the chip.
    pub fn open(options: AneOptions) -> Result<Self, DeviceError> {
        let kind = if options.source == Library::System { "ane" } else { "fake" };
        let name = format!("{kind}{}", options.route.suffix());
        let not_here = |reason: String| DeviceError::NotHere { name: name.clone(), reason };
        let shared = Shared::of(&options.source, options.loaded_programs).map_err(|error| not_here(error.to_string()))?;
        let brand = shared.frameworks.chip_name().map_err(|error| not_here(error.to_string()))?;
        let chip = Chip::find(brand.trim_start_matches("Apple "));
        let chip = chip.ok_or_else(|| not_here(format!("nothing is known of the engine of {brand:?}; update this library")))?;
        let os_build = shared.frameworks.os_build().map_err(|error| not_here(error.to_string()))?;
        let found = match options.route {
            AneRoute::Default | AneRoute::E5rt => shared.frameworks.e5rt().map(drop),
            AneRoute::InMemory => shared.frameworks.in_memory().map(drop),
            AneRoute::Client => shared.frameworks.in_memory().and_then(|engine| Client::shared(&engine).map(drop)),
        };
        found.map_err(|error| not_here(error.to_string()))?;
        let cache = cache_of(&options.cache);
        Ok(Self { name, options: Arc::new(options), shared, chip, os_build, cache })
    }

    /// How it was opened.
    pub fn options(&self) -> &AneOptions {
        &self.options
    }

    /// Commands, programs and compilations of the process, for people who look for what is used up.
    pub fn usage(&self) -> Usage {
        let residents = &self.shared.residents;
        Usage { loaded: residents.taken(), evicted: residents.evictions(), compilations: self.shared.budget.used() }
    }

    pub(crate) fn own_chip(&self) -> &'static Chip {
        self.chip
    }

    pub(crate) fn frameworks(&self) -> &aneforge_sys::Frameworks {
        &self.shared.frameworks
    }

    pub(crate) fn build(&self) -> &str {
        &self.os_build
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The route of MIL programs, for keys.
    pub(crate) fn route_name(&self) -> &'static str {
        match self.options.route {
            AneRoute::Default | AneRoute::E5rt => "e5rt",
            AneRoute::InMemory => "in-memory",
            AneRoute::Client => "client",
        }
    }

    fn kernel(&self, part: &Part, prepared: &Prepared, number: usize, counts: &Arc<Counts>) -> Result<Kernel, DeviceError> {
        let key = format!("{}/{}/{number}", prepared.place.folder().display(), prepared.key.program);
        let context = Context { shared: self.shared.clone(), options: self.options.clone(), counts: counts.clone(), key };
        let system = |error: aneforge_sys::SysError| DeviceError::from(AneError::System(error.to_string()));
        match part.kind {
            SegmentKind::Mil if self.options.route.is_e5rt() => {
                let runtime = self.shared.frameworks.e5rt().map_err(system)?;
                Ok(Kernel::E5rt(e5rt::Program::new(context, runtime, part, prepared.place.folder().join("bundles"))))
            }
            kind => {
                let engine = self.shared.frameworks.in_memory().map_err(system)?;
                let way = match (kind, self.options.route) {
                    (SegmentKind::Native, _) => Way::Network { folder: part.folder.clone() },
                    (SegmentKind::Mil, AneRoute::Client) => Way::Client { folder: part.folder.clone() },
                    (SegmentKind::Mil, _) => Way::text(&prepared.place, &part.folder, number),
                };
                Ok(Kernel::Memory(memory::Program::new(context, engine, part, way)))
            }
        }
    }

    fn core(&self, program: &Program, prepared: &Prepared) -> Result<Core, DeviceError> {
        let ports = Ports::of(program.body())?;
        let counts = Arc::new(Counts::default());
        let state_ports = States::of(program.body())?.ports().to_vec();
        let mut segments: Vec<Segment> = Vec::with_capacity(prepared.parts.len());
        let names = &prepared.input_names;
        for (number, part) in prepared.parts.iter().enumerate() {
            let inputs =
                part.inputs.iter().map(|link| source(link, names, &ports, &state_ports, &segments)).collect::<Result<_, _>>()?;
            segments.push(Segment {
                kernel: self.kernel(part, prepared, number, &counts)?,
                kind: if part.kind == SegmentKind::Mil { "mil" } else { "native" },
                operations: part.operations,
                ops: part.ops.clone(),
                weight_bytes: part.weight_bytes,
                ports: part.ports.clone(),
                inputs,
            });
        }
        let links = prepared.outputs.iter();
        let outputs = links.map(|link| source(link, names, &ports, &state_ports, &segments)).collect::<Result<Vec<_>, _>>()?;
        let report = EngineReport {
            chip: self.chip.product.to_string(),
            os_build: self.os_build.clone(),
            routes: segments.iter().map(|segment| segment.kernel.route()).collect(),
            translated: prepared.translated,
            cached: prepared.cached,
            ..EngineReport::default()
        };
        let mut core = Core {
            device: self.name.clone(),
            program: program.name().to_string(),
            shared: self.shared.clone(),
            counts,
            ports,
            segments,
            outputs,
            residents: prepared.states.clone(),
            states: States::on(Vec::new(), Vec::new()),
            state_buffers: Vec::new(),
            report,
        };
        core.compile()?;
        let buffers = state_ports.iter().map(|port| binding::allocate(&core, 0, Side::Input, port.byte_length()));
        core.state_buffers = buffers.collect::<Result<Vec<Buffer>, _>>()?;
        core.states = States::on(state_ports, core.state_buffers.clone());
        Ok(core)
    }
}

/// What a process has used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Programs that are loaded.
    pub loaded: usize,
    /// Programs that left for others so far.
    pub evicted: u64,
    /// Compilations on the in-memory route.
    pub compilations: usize,
}

fn source(link: &Link, names: &[String], ports: &Ports, states: &[Port], made: &[Segment]) -> Result<Source, DeviceError> {
    let missing = || DeviceError::internal("segments", format!("no value {:?} for {:?}", link.value, link.port));
    let (index, ty) = match link.segment {
        None => {
            let index = names.iter().position(|name| *name == link.value).ok_or_else(missing)?;
            let port = ports.inputs.get(index).or_else(|| states.get(index - ports.inputs.len()));
            (index, port.ok_or_else(missing)?.ty.clone())
        }
        Some(segment) => {
            let outputs = &made.get(segment).ok_or_else(missing)?.ports.outputs;
            let index = outputs.iter().position(|port| port.name == link.value).ok_or_else(missing)?;
            (index, outputs[index].ty.clone())
        }
    };
    Ok(Source { segment: link.segment, index, layout: Layout::new(&ty.shape, ty.dtype.bits() / 8, &link.layout) })
}

impl Device for Ane {
    fn name(&self) -> &str {
        &self.name
    }

    fn chip(&self) -> Option<&'static Chip> {
        Some(self.chip)
    }

    fn target(&self) -> Target {
        if self.options.route.is_e5rt() { Target::e5rt(self.chip) } else { Target::in_memory(self.chip) }
    }

    fn os_build(&self) -> Option<&str> {
        Some(&self.os_build)
    }

    fn describe(&self) -> String {
        let what =
            if self.options.source == Library::System { "the engine of this" } else { "a library in place of the engine of an" };
        format!("{what} {}, macOS build {}, route {}", self.chip.product, self.os_build, self.route_name())
    }

    fn load(&self, program: &Arc<Program>) -> Result<Arc<dyn Executable>, DeviceError> {
        let prepared = prepare(self, program)?;
        let core = Arc::new(self.core(program, &prepared)?);
        // The place in the cache stays locked until the frameworks have compiled the program.
        let executable = AneExecutable::new(core)?;
        drop(prepared);
        Ok(Arc::new(executable))
    }
}
