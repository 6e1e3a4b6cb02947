//! The in-memory routes: models of text or networks, surfaces, requests that are built once.
//!
//! The order of calls is that of maderix/ANE, Orion (arXiv 2603.06728) and, for networks, of the PyPI package aneforge 0.4.0. The client
//! route does what the in-memory class does inside, without its leak (maderix/ANE, issue 54).

use super::error::Step;
use super::fault::{Fault, Kind};
use super::kernel::{Context, Side};
use super::model::{Model, Way};
use super::patience::within;
use super::prepare::Part;
use super::stats::Counts;
use super::symbols::Symbols;
use crate::Buffer;
use crate::buffer::Backing;
use crate::device::Ports;
use aneforge_sys::SysError;
use aneforge_sys::ane::{AppleNeuralEngine, Request, SurfaceObject};
use aneforge_sys::surface::Surface;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

/// Surfaces below this compile and then fail to execute on some systems (Orion; larger ones work everywhere).
const SMALLEST: usize = 49_152;

/// A program on one of the in-memory routes.
pub(crate) struct Program {
    context: Context,
    engine: Arc<AppleNeuralEngine>,
    way: Way,
    function: String,
    ports: Ports,
    model: Mutex<Weak<Mutex<Model>>>,
    symbols: OnceLock<Symbols>,
    /// Bytes of every surface at an input and at an output; all of a side have one size, because unequal ones fail (Orion).
    sizes: OnceLock<[usize; 2]>,
}

/// A model on the engine and, for one binding, its request.
pub(crate) struct Loaded {
    model: Arc<Mutex<Model>>,
    request: Option<Request>,
    quality: u32,
}

impl Program {
    pub(crate) fn new(context: Context, engine: Arc<AppleNeuralEngine>, part: &Part, way: Way) -> Self {
        Self {
            context,
            engine,
            way,
            function: part.function.clone(),
            ports: part.ports.clone(),
            model: Mutex::new(Weak::new()),
            symbols: OnceLock::new(),
            sizes: OnceLock::new(),
        }
    }

    pub(crate) fn route(&self) -> &'static str {
        if self.way.is_client() { "client" } else { "in-memory" }
    }

    /// Compiles and loads the program, and reads its tables.
    pub(crate) fn open(&self) -> Result<Loaded, Fault> {
        let quality = self.context.options.quality_of_service;
        let mut slot = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = slot.upgrade() {
            return Ok(Loaded { model, request: None, quality });
        }
        let mut model = Model::new(&self.engine, &self.way).map_err(|error| Fault::of(Step::Compile, &error))?;
        let kept = !self.context.options.force_recompilation && model.restore(&self.way);
        let mut recalled = false;
        if kept {
            (model, recalled) = self.loaded(model).map(|(model, result)| (model, result.is_ok()))?;
        }
        if !recalled {
            model = self.compile(model, quality)?;
            let mut result;
            (model, result) = self.loaded(model)?;
            if matches!(result, Err(SysError::Apple { .. } | SysError::Refused { .. })) {
                (model, result) = self.loaded(model)?;
                Counts::add(&self.context.counts.retried_loads, usize::from(result.is_ok()));
            }
            result.map_err(|error| Fault::of(Step::Load, &error))?;
        }
        Counts::add(&self.context.counts.loads, 1);
        if self.symbols.get().is_none() {
            let attributes = model.attributes().map_err(|error| Fault::of(Step::Load, &error))?;
            let _ = self.symbols.set(Symbols::read(&attributes, &self.function, &self.ports)?);
        }
        let model = Arc::new(Mutex::new(model));
        *slot = Arc::downgrade(&model);
        Ok(Loaded { model, request: None, quality })
    }

    /// Loads a model, which comes back from the thread of the call with the framework's answer.
    fn loaded(&self, mut model: Model) -> Result<(Model, Result<(), SysError>), Fault> {
        let (engine, options) = (self.engine.clone(), &self.context.options);
        let quality = options.quality_of_service;
        within(options.patience, Step::Load, move || {
            let result = model.load(&engine, quality);
            (model, result)
        })
    }

    fn compile(&self, mut model: Model, quality: u32) -> Result<Model, Fault> {
        let (shared, key) = (&self.context.shared, &self.context.key);
        if let Some(failure) = shared.back_off.check(key, Instant::now()) {
            return Err(Fault::kind(Step::Compile, Kind::BackOff(failure.remaining), failure.reason));
        }
        if !self.way.is_client() {
            let taken = shared.budget.take(self.context.options.compilations);
            taken.map_err(|used| Fault::kind(Step::Compile, Kind::Spent(used), "the process has no compilations left"))?;
        }
        let engine = self.engine.clone();
        let called = within(self.context.options.patience, Step::Compile, move || {
            let result = model.compile(&engine, quality);
            (model, result)
        });
        let compiled = called.and_then(|(model, result)| match result {
            Ok(()) => Ok(model),
            Err(error) => Err(Fault::of(Step::Compile, &error)),
        });
        let model = compiled.inspect_err(|fault| {
            shared.back_off.failed(key, fault.text.clone(), Instant::now() + self.context.options.back_off);
        })?;
        shared.back_off.succeeded(key);
        Counts::add(&self.context.counts.compilations, 1);
        model.keep(&self.way);
        Ok(model)
    }

    /// Bytes that each port of a side needs, strides included.
    pub(crate) fn needed(&self, side: Side) -> usize {
        let (ports, layouts) = match (side, self.symbols.get()) {
            (Side::Input, symbols) => (&self.ports.inputs, symbols.map(|symbols| &symbols.input_layouts)),
            (Side::Output, symbols) => (&self.ports.outputs, symbols.map(|symbols| &symbols.output_layouts)),
        };
        let strided = layouts.into_iter().flatten().flatten().map(|layout| layout.bytes());
        ports.iter().map(|port| port.byte_length()).chain(strided).fold(SMALLEST, usize::max)
    }

    /// Fixes the sizes of surfaces.
    pub(crate) fn set_sizes(&self, sizes: [usize; 2]) {
        let _ = self.sizes.set(sizes);
    }

    pub(crate) fn size(&self, side: Side) -> usize {
        self.sizes.get().map_or_else(|| self.needed(side), |sizes| sizes[side as usize])
    }

    /// The layout of a port whose elements do not simply follow each other.
    pub(crate) fn strided(&self, side: Side, port: usize) -> Option<&super::layout::Strided> {
        let symbols = self.symbols.get()?;
        let layouts = if side == Side::Input { &symbols.input_layouts } else { &symbols.output_layouts };
        layouts.get(port)?.as_ref().filter(|layout| !layout.is_dense())
    }

    pub(crate) fn allocate(&self, side: Side) -> Result<Buffer, Fault> {
        let made = Surface::new(self.engine.surfaces(), self.size(side));
        made.map(Buffer::surface).map_err(|error| Fault::of(Step::Bind, &error))
    }

    pub(crate) fn takes(&self, side: Side, buffer: &Buffer) -> bool {
        matches!(buffer.backing(), Backing::Surface(_)) && buffer.len() == self.size(side)
    }

    /// Loads the program with a request on these surfaces.
    pub(crate) fn load(&self, inputs: &[Buffer], outputs: &[Buffer]) -> Result<Loaded, Fault> {
        let mut loaded = self.open()?;
        let Some(symbols) = self.symbols.get() else { return Ok(loaded) };
        let wrap = |buffers: &[Buffer]| {
            let surfaces = buffers.iter().filter_map(|buffer| match buffer.backing() {
                Backing::Surface(surface) => Some(SurfaceObject::new(&self.engine, surface)),
                _ => None,
            });
            surfaces.collect::<Result<Vec<_>, _>>()
        };
        let request = || {
            let (inputs, outputs) = (wrap(inputs)?, wrap(outputs)?);
            let inputs: Vec<_> = symbols.inputs.iter().copied().zip(&inputs).collect();
            let outputs: Vec<_> = symbols.outputs.iter().copied().zip(&outputs).collect();
            Request::new(&self.engine, &inputs, &outputs, symbols.procedure)
        };
        loaded.request = Some(request().map_err(|error| Fault::of(Step::Bind, &error))?);
        Ok(loaded)
    }

    /// Forgets the model, where the engine lost it: the next load makes another.
    pub(crate) fn forget(&self) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Weak::new();
    }
}

impl Loaded {
    pub(crate) fn execute(&mut self) -> Result<(), Fault> {
        let Some(request) = &mut self.request else { return Ok(()) };
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        model.evaluate(request, self.quality).map_err(|error| Fault::of(Step::Execute, &error))
    }
}
