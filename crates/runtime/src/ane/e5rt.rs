//! The e5rt route: compile a text with its weights, load a function, bind buffers to its ports, execute.
//!
//! The order of calls is that of the PyPI package aneforge 0.4.0 and the ANE guide, arXiv 2606.22283, chapter 6.

use super::error::Step;
use super::fault::{Fault, Kind};
use super::kernel::Context;
use super::patience::within;
use super::policy::retry_once;
use super::prepare::Part;
use super::stats::Counts;
use crate::Buffer;
use crate::buffer::Backing;
use aneforge_compile::bundle::TEXT;
use aneforge_sys::SysError;
use aneforge_sys::e5rt::{
    Buffer as PortBuffer, BufferKind, Compiler, Config, Library, Operation, OperationOptions, Options, Runtime, Stream,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Public users round the sizes of buffers up to this.
const GRANULE: usize = 64;

/// A program that e5rt compiles.
pub(crate) struct Program {
    context: Context,
    runtime: Arc<Runtime>,
    text: PathBuf,
    bundles: PathBuf,
    function: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    library: Mutex<Option<Arc<Library>>>,
}

/// A function on the engine with buffers at its ports, encoded. The stream is dropped before its operation.
pub(crate) struct Loaded {
    stream: Stream,
    _operation: Operation,
}

impl Program {
    pub(crate) fn new(context: Context, runtime: Arc<Runtime>, part: &Part, bundles: PathBuf) -> Self {
        let names = |ports: &[crate::Port]| ports.iter().map(|port| port.name.clone()).collect();
        Self {
            context,
            runtime,
            text: part.folder.join(TEXT),
            bundles,
            function: part.function.clone(),
            inputs: names(&part.ports.inputs),
            outputs: names(&part.ports.outputs),
            library: Mutex::new(None),
        }
    }

    /// Compiles the program, where nobody in this process has.
    pub(crate) fn compile(&self) -> Result<Arc<Library>, Fault> {
        let mut slot = self.library.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = &*slot {
            return Ok(library.clone());
        }
        let shared = &self.context.shared;
        let known =
            shared.libraries.lock().unwrap_or_else(PoisonError::into_inner).get(&self.context.key).and_then(|l| l.upgrade());
        let library = match known {
            Some(library) => library,
            None => self.compile_anew(self.context.options.force_recompilation)?,
        };
        *slot = Some(library.clone());
        Ok(library)
    }

    fn compile_anew(&self, force: bool) -> Result<Arc<Library>, Fault> {
        let (shared, key) = (&self.context.shared, &self.context.key);
        if let Some(failure) = shared.back_off.check(key, Instant::now()) {
            return Err(Fault::kind(Step::Compile, Kind::BackOff(failure.remaining), failure.reason));
        }
        let (runtime, text, bundles) = (self.runtime.clone(), self.text.clone(), self.bundles.clone());
        let call = move || compile(&runtime, &text, &bundles, force, None);
        let compiled = within(self.context.options.patience, Step::Compile, call);
        let compiled = compiled.and_then(|result| result.map_err(|error| Fault::of(Step::Compile, &error)));
        let library = compiled.map(Arc::new).inspect_err(|fault| {
            shared.back_off.failed(key, fault.text.clone(), Instant::now() + self.context.options.back_off);
        })?;
        shared.back_off.succeeded(key);
        Counts::add(&self.context.counts.compilations, 1);
        let mut libraries = shared.libraries.lock().unwrap_or_else(PoisonError::into_inner);
        libraries.retain(|_, library| library.strong_count() > 0);
        libraries.insert(key.clone(), Arc::downgrade(&library));
        Ok(library)
    }

    pub(crate) fn allocate(&self, bytes: usize) -> Result<Buffer, Fault> {
        let size = bytes.max(1).next_multiple_of(GRANULE);
        let made = PortBuffer::allocate(&self.runtime, size, BufferKind::Host);
        made.map(Buffer::e5rt).map_err(|error| Fault::of(Step::Bind, &error))
    }

    pub(crate) fn takes(&self, buffer: &Buffer) -> bool {
        matches!(buffer.backing(), Backing::E5rt(_))
    }

    /// Loads the function with these buffers at its ports.
    pub(crate) fn load(&self, inputs: &[Buffer], outputs: &[Buffer]) -> Result<Loaded, Fault> {
        let library = self.compile()?;
        let (operation, second) =
            retry_once(|| self.operation(&library), |error| matches!(error, LoadError::Refused(SysError::Code { .. })));
        let operation = match operation {
            Ok(operation) => {
                Counts::add(&self.context.counts.retried_loads, usize::from(second));
                operation
            }
            // The daemon may no longer have what it compiled: once more from the text.
            Err(LoadError::Silent(fault)) => return Err(fault),
            Err(LoadError::Refused(first)) => {
                let fault = Fault::of(Step::Load, &first);
                drop(library);
                *self.library.lock().unwrap_or_else(PoisonError::into_inner) = None;
                let library = self.compile_anew(false)?;
                let operation = self.operation(&library).map_err(|_| fault)?;
                *self.library.lock().unwrap_or_else(PoisonError::into_inner) = Some(library);
                Counts::add(&self.context.counts.reloads, 1);
                operation
            }
        };
        Counts::add(&self.context.counts.loads, 1);
        self.encode(operation, inputs, outputs).map_err(|error| Fault::of(Step::Bind, &error))
    }

    fn operation(&self, library: &Arc<Library>) -> Result<Operation, LoadError> {
        let (library, function) = (library.clone(), self.function.clone());
        let call = move || {
            let mut options = OperationOptions::new(library.function(&function)?)?;
            options.set_name(&function)?;
            options.set_allocate_intermediate_buffers(true)?;
            Operation::new(options)
        };
        within(self.context.options.patience, Step::Load, call).map_err(LoadError::Silent)?.map_err(LoadError::Refused)
    }

    fn encode(&self, mut operation: Operation, inputs: &[Buffer], outputs: &[Buffer]) -> Result<Loaded, SysError> {
        let named = self.inputs.iter().zip(inputs).map(|pair| (true, pair));
        for (input, (name, buffer)) in named.chain(self.outputs.iter().zip(outputs).map(|pair| (false, pair))) {
            let port = if input { operation.input_port(name)? } else { operation.output_port(name)? };
            if let Backing::E5rt(buffer) = buffer.backing() {
                port.bind(buffer)?;
            }
        }
        let mut stream = Stream::new(&self.runtime)?;
        match stream.set_quality_of_service(u64::from(self.context.options.quality_of_service)) {
            // A system without the setting runs everything alike.
            Err(SysError::Lacking { .. }) => {}
            result => result?,
        }
        if let Some(priority) = self.context.options.priority {
            stream.set_priority(priority)?;
        }
        stream.encode(&mut operation)?;
        Ok(Loaded { stream, _operation: operation })
    }

    /// Forgets what was compiled, where the engine lost it.
    pub(crate) fn forget(&self) {
        *self.library.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.context.shared.libraries.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.context.key);
    }
}

/// Why an operation was not made.
enum LoadError {
    Refused(SysError),
    Silent(Fault),
}

/// Compiles a text for the engine alone, with options of its compiler where there are some.
pub(crate) fn compile(
    runtime: &Arc<Runtime>,
    text: &Path,
    bundles: &Path,
    force: bool,
    custom: Option<&str>,
) -> Result<Library, SysError> {
    let config = Config::new(runtime, bundles)?;
    let mut compiler = Compiler::new(&config)?;
    let mut options = Options::new(runtime)?;
    // The engine alone: with other units allowed, a program that the engine refuses runs there without a word.
    options.set_devices(Options::ENGINE)?;
    options.set_force_recompilation(force)?;
    options.set_segmenter("graph")?;
    if let Some(custom) = custom {
        options.set_custom_engine_options(custom)?;
    }
    compiler.compile(text, &options)
}

impl Loaded {
    pub(crate) fn execute(&mut self) -> Result<(), Fault> {
        self.stream.execute().map_err(|error| Fault::of(Step::Execute, &error))
    }
}
