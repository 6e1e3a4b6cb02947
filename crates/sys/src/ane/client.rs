//! The client: the daemon's connection, with models that stand in folders.

use std::path::Path;
use std::sync::Arc;

use super::{AppleNeuralEngine, InMemoryModel, Request};
use crate::SysError;
use crate::objc::types::Id;
use crate::objc::{Dictionary, Retained, Value};

/// A program in a folder. A loaded one is unloaded when it is dropped.
pub struct Model {
    object: Retained,
    engine: Arc<AppleNeuralEngine>,
    loaded: Option<Loaded>,
}

struct Loaded {
    client: Retained,
    options: Dictionary,
    quality: u32,
}

/// What a client can evaluate.
pub trait Runnable: sealed::Sealed {}

mod sealed {
    pub trait Sealed {
        #[doc(hidden)]
        fn raw(&self) -> *mut std::ffi::c_void;
    }
}

impl sealed::Sealed for Model {
    fn raw(&self) -> *mut std::ffi::c_void {
        self.object.id().0
    }
}

impl sealed::Sealed for InMemoryModel {
    fn raw(&self) -> *mut std::ffi::c_void {
        self.id().0
    }
}

impl Runnable for Model {}
impl Runnable for InMemoryModel {}

impl Model {
    /// A model of the program in `folder`. The key is any text that tells models apart.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the framework makes none; [`SysError::Lacking`] where this system lacks the class.
    pub fn new(engine: &Arc<AppleNeuralEngine>, folder: &Path, key: &str) -> Result<Self, SysError> {
        let table = engine.need(engine.methods.model.as_ref(), "+[_ANEModel modelAtURL:key:]")?;
        let (send, selector) = table.make.ready()?;
        let (folder, key) = (engine.runtime.folder(folder)?, engine.runtime.text(key)?);
        engine
            .runtime
            .with_pool(|| {
                // SAFETY: both arguments live during the call; the result lives in this pool until it is retained.
                unsafe { engine.runtime.retained(send(table.class.id(), selector, folder.id(), key.id())) }
            })
            .map(|object| Self::of(object, engine))
            .ok_or(SysError::Nothing { call: table.make.name })
    }

    pub(super) fn of(object: Retained, engine: &Arc<AppleNeuralEngine>) -> Self {
        Self { object, engine: engine.clone(), loaded: None }
    }

    /// Whether a client has loaded the model.
    pub fn is_loaded(&self) -> bool {
        self.loaded.is_some()
    }

    /// What the framework knows about the program. Filled by loading.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question; [`SysError::Nothing`] before the model is loaded.
    pub fn attributes(&self) -> Result<Value, SysError> {
        let method = self.engine.methods.model.as_ref().and_then(|table| table.attributes.as_ref());
        let method = self.engine.need(method, "-[_ANEModel modelAttributes]")?;
        let (send, selector) = method.ready()?;
        self.read(method.name, |object| {
            // SAFETY: the model lives.
            unsafe { send(object, selector) }
        })
    }

    /// The indices of a procedure's input symbols. A loaded model has them.
    ///
    /// # Errors
    /// As [`Model::attributes`].
    pub fn input_symbols(&self, procedure: u32) -> Result<Vec<u64>, SysError> {
        let method = self.engine.methods.model.as_ref().and_then(|table| table.inputs.as_ref());
        let method = self.engine.need(method, "-[_ANEModel inputSymbolIndicesForProcedureIndex:]")?;
        let (send, selector) = method.ready()?;
        self.indices(method.name, |object| {
            // SAFETY: the model lives.
            unsafe { send(object, selector, procedure) }
        })
    }

    /// The indices of a procedure's output symbols. A loaded model has them.
    ///
    /// # Errors
    /// As [`Model::attributes`].
    pub fn output_symbols(&self, procedure: u32) -> Result<Vec<u64>, SysError> {
        let method = self.engine.methods.model.as_ref().and_then(|table| table.outputs.as_ref());
        let method = self.engine.need(method, "-[_ANEModel outputSymbolIndicesForProcedureIndex:]")?;
        let (send, selector) = method.ready()?;
        self.indices(method.name, |object| {
            // SAFETY: the model lives.
            unsafe { send(object, selector, procedure) }
        })
    }

    /// The daemon's number of the loaded program.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question.
    pub fn program_handle(&self) -> Result<u64, SysError> {
        let method = self.engine.methods.model.as_ref().and_then(|table| table.handle.as_ref());
        let (send, selector) = self.engine.need(method, "-[_ANEModel programHandle]")?.ready()?;
        // SAFETY: the model lives.
        Ok(unsafe { send(self.object.id(), selector) })
    }

    /// Which statistics the engine keeps, as bits.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the setting.
    pub fn set_performance_mask(&mut self, mask: u32) -> Result<(), SysError> {
        let method = self.engine.methods.model.as_ref().and_then(|table| table.set_stats.as_ref());
        let (send, selector) = self.engine.need(method, "-[_ANEModel setPerfStatsMask:]")?.ready()?;
        // SAFETY: the model lives; `&mut self` keeps other calls on it out.
        unsafe { send(self.object.id(), selector, mask) };
        Ok(())
    }

    /// Takes the program off the engine. Does nothing for one that is not loaded.
    ///
    /// # Errors
    /// [`SysError::Apple`] with the framework's reason; the model counts as unloaded all the same.
    pub fn unload(&mut self) -> Result<(), SysError> {
        let Some(Loaded { client, options, quality }) = self.loaded.take() else { return Ok(()) };
        let table = self.engine.need(self.engine.methods.client.as_ref(), "-[_ANEClient unloadModel:options:qos:error:]")?;
        let (send, selector) = table.unload.ready()?;
        self.engine.runtime.succeed(table.unload.name, |error| {
            // SAFETY: client, model and options live; `&mut self` keeps other calls on the model out.
            unsafe { send(client.id(), selector, self.object.id(), options.0.id(), quality, error) }
        })
    }

    fn read(&self, call: &'static str, send: impl FnOnce(Id) -> Id) -> Result<Value, SysError> {
        self.engine.runtime.with_pool(|| {
            // SAFETY: the result of a method, which lives in this pool until it is retained.
            let object = unsafe { self.engine.runtime.retained(send(self.object.id())) };
            Value::read(&object.ok_or(SysError::Nothing { call })?)
        })
    }

    fn indices(&self, call: &'static str, send: impl FnOnce(Id) -> Id) -> Result<Vec<u64>, SysError> {
        match self.read(call, send)? {
            Value::Indices(indices) => Ok(indices),
            other => Err(SysError::Value { what: "symbol indices", expected: "a set of indices", found: format!("{other:?}") }),
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // A refusal can't be told to anybody here.
        let _ = self.unload();
    }
}

/// A connection to the daemon. Public users compile on one thread and evaluate on others through it at the same time.
#[derive(Clone)]
pub struct Client {
    object: Retained,
    engine: Arc<AppleNeuralEngine>,
}

impl Client {
    /// The process's connection.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the class; [`SysError::Nothing`].
    pub fn shared(engine: &Arc<AppleNeuralEngine>) -> Result<Self, SysError> {
        let table = engine.need(engine.methods.client.as_ref(), "+[_ANEClient sharedConnection]")?;
        let (send, selector) = table.shared.ready()?;
        engine
            .runtime
            .with_pool(|| {
                // SAFETY: no arguments; the result lives in this pool until it is retained.
                unsafe { engine.runtime.retained(send(table.class.id(), selector)) }
            })
            .map(|object| Self { object, engine: engine.clone() })
            .ok_or(SysError::Nothing { call: table.shared.name })
    }

    /// A connection of its own that also has the direct path.
    ///
    /// # Errors
    /// As [`Client::shared`].
    pub fn direct(engine: &Arc<AppleNeuralEngine>) -> Result<Self, SysError> {
        const NAME: &str = "-[_ANEClient initWithRestrictedAccessAllowed:]";
        let table = engine.need(engine.methods.client.as_ref(), NAME)?;
        let (send, selector) = engine.need(table.direct.as_ref(), NAME)?.ready()?;
        let (alloc, alloc_selector) = engine.runtime.foundation.object.alloc.ready()?;
        engine
            .runtime
            .with_pool(|| {
                // SAFETY: `alloc` gives an object that `init` takes over and returns owned, or nil.
                unsafe {
                    let empty = alloc(table.class.id(), alloc_selector);
                    if empty.is_nil() { None } else { engine.runtime.owned(send(empty, selector, true.into())) }
                }
            })
            .map(|object| Self { object, engine: engine.clone() })
            .ok_or(SysError::Nothing { call: NAME })
    }

    /// Compiles a model. Without [`AppleNeuralEngine::mil_options`] the folder is taken for an Espresso model.
    ///
    /// # Errors
    /// [`SysError::Apple`] with the framework's reason.
    pub fn compile(&self, model: &mut Model, options: &Dictionary, quality: u32) -> Result<(), SysError> {
        let method = &self.table()?.compile;
        let (send, selector) = method.ready()?;
        self.engine.runtime.succeed(method.name, |error| {
            // SAFETY: client, model and options live; `&mut` keeps other calls on the model out.
            unsafe { send(self.object.id(), selector, model.object.id(), options.0.id(), quality, error) }
        })
    }

    /// Loads a compiled model onto the engine.
    ///
    /// # Errors
    /// [`SysError::Apple`] with the framework's reason; [`SysError::Order`] for a loaded model.
    pub fn load(&self, model: &mut Model, options: &Dictionary, quality: u32) -> Result<(), SysError> {
        let method = &self.table()?.load_it;
        if model.loaded.is_some() {
            return Err(SysError::Order { call: method.name, rule: "the model is loaded; unload it first" });
        }
        let (send, selector) = method.ready()?;
        self.engine.runtime.succeed(method.name, |error| {
            // SAFETY: as in `compile`.
            unsafe { send(self.object.id(), selector, model.object.id(), options.0.id(), quality, error) }
        })?;
        model.loaded = Some(Loaded { client: self.object.clone(), options: options.clone(), quality });
        Ok(())
    }

    /// Runs a loaded model on the request's surfaces and waits for its end.
    ///
    /// # Errors
    /// [`SysError::Apple`] with the framework's reason.
    pub fn evaluate(&self, model: &mut impl Runnable, request: &mut Request, quality: u32) -> Result<(), SysError> {
        let method = &self.table()?.evaluate;
        let (send, selector) = method.ready()?;
        let (runtime, model, options) = (&self.engine.runtime, Id(model.raw()), self.engine.empty.0.id());
        request.during(|request| {
            runtime.succeed(method.name, |error| {
                // SAFETY: client, model, options and request live; the request's surfaces are locked against our copies, and
                // `&mut` keeps other calls on the model out.
                unsafe { send(self.object.id(), selector, model, options, request, quality, error) }
            })
        })
    }

    /// As [`Client::evaluate`], without the way through the daemon.
    ///
    /// # Errors
    /// As [`Client::evaluate`]; [`SysError::Lacking`] where this system lacks the method.
    pub fn evaluate_directly(&self, model: &mut impl Runnable, request: &mut Request, quality: u32) -> Result<(), SysError> {
        let method = self.table()?.evaluate_directly.as_ref();
        let method = self.engine.need(method, "-[_ANEClient doEvaluateDirectWithModel:options:request:qos:error:]")?;
        let (send, selector) = method.ready()?;
        let (runtime, model, options) = (&self.engine.runtime, Id(model.raw()), self.engine.empty.0.id());
        request.during(|request| {
            runtime.succeed(method.name, |error| {
                // SAFETY: as in `evaluate`.
                unsafe { send(self.object.id(), selector, model, options, request, quality, error) }
            })
        })
    }

    /// Whether the daemon's cache holds the compiled model.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question.
    pub fn compiled_exists(&self, model: &Model) -> Result<bool, SysError> {
        let method = self.engine.need(self.table()?.exists.as_ref(), "-[_ANEClient compiledModelExistsFor:]")?;
        let (send, selector) = method.ready()?;
        // SAFETY: client and model live.
        let exists = self.engine.runtime.with_pool(|| unsafe { send(self.object.id(), selector, model.object.id()) });
        Ok(exists.is_true())
    }

    fn table(&self) -> Result<&super::methods::ClientMethods, SysError> {
        self.engine.need(self.engine.methods.client.as_ref(), "+[_ANEClient sharedConnection]")
    }
}
