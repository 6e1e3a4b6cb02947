//! Programs in memory: descriptor, weights, and the model that compiles and runs itself.

use std::path::PathBuf;
use std::sync::Arc;

use super::client::Model;
use super::{AppleNeuralEngine, Request};
use crate::SysError;
use crate::objc::types::Id;
use crate::objc::{Data, Dictionary, Item, Retained, Value};

/// Weight files as the framework takes them: each under its name in the program, such as `@model_path/weights/weight.bin`.
#[derive(Default)]
pub struct Weights(Vec<(String, Data)>);

impl Weights {
    /// No weights.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    pub fn add(&mut self, name: &str, data: Data) {
        self.0.push((name.to_string(), data));
    }

    /// `{name: {"offset": 0, "data": bytes}}`; empty, not nil, without files.
    fn dictionary(&self, engine: &AppleNeuralEngine) -> Result<Dictionary, SysError> {
        let files: Vec<(&str, Item)> = self
            .0
            .iter()
            .map(|(name, data)| {
                let file = Dictionary::new(&engine.runtime, &[("offset", Item::Integer(0)), ("data", Item::Data(data.clone()))])?;
                Ok((name.as_str(), Item::Dictionary(file)))
            })
            .collect::<Result<_, SysError>>()?;
        Dictionary::new(&engine.runtime, &files)
    }
}

/// A program before it is compiled.
pub struct Descriptor {
    object: Retained,
    engine: Arc<AppleNeuralEngine>,
}

impl Descriptor {
    /// A program in MIL text.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the framework takes the text or the weights for no program.
    pub fn from_text(engine: &Arc<AppleNeuralEngine>, text: &str, weights: &Weights) -> Result<Self, SysError> {
        Self::make(engine, &engine.methods.descriptor.text, text.as_bytes(), weights)
    }

    /// A network of the engine's own layers: the bytes of a net.plist.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the framework takes them for no network.
    pub fn from_network(engine: &Arc<AppleNeuralEngine>, plist: &[u8], weights: &Weights) -> Result<Self, SysError> {
        Self::make(engine, &engine.methods.descriptor.network, plist, weights)
    }

    fn make(
        engine: &Arc<AppleNeuralEngine>,
        method: &crate::objc::methods::Method<unsafe extern "C" fn(Id, crate::objc::types::Sel, Id, Id, Id) -> Id>,
        program: &[u8],
        weights: &Weights,
    ) -> Result<Self, SysError> {
        let (send, selector) = method.ready()?;
        let program = Data::copy_of(&engine.runtime, program)?;
        let weights = weights.dictionary(engine)?;
        let class = engine.methods.descriptor.class;
        engine
            .runtime
            .with_pool(|| {
                // SAFETY: the arguments are of the classes that the method takes and live during the call; the result lives in
                // this pool until it is retained.
                unsafe { engine.runtime.retained(send(class.id(), selector, program.0.id(), weights.0.id(), Id::NIL)) }
            })
            .map(|object| Self { object, engine: engine.clone() })
            .ok_or(SysError::Nothing { call: method.name })
    }
}

/// A program that compiles, loads and evaluates itself. A loaded one is unloaded when it is dropped.
pub struct InMemoryModel {
    object: Retained,
    engine: Arc<AppleNeuralEngine>,
    /// The quality that it was loaded with, while it is loaded.
    loaded: Option<u32>,
}

impl InMemoryModel {
    /// A model of this program.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the framework makes none.
    pub fn new(descriptor: &Descriptor) -> Result<Self, SysError> {
        let engine = &descriptor.engine;
        let table = &engine.methods.in_memory;
        let (send, selector) = table.make.ready()?;
        engine
            .runtime
            .with_pool(|| {
                // SAFETY: the descriptor lives during the call; the result lives in this pool until it is retained.
                unsafe { engine.runtime.retained(send(table.class.id(), selector, descriptor.object.id())) }
            })
            .map(|object| Self { object, engine: engine.clone(), loaded: None })
            .ok_or(SysError::Nothing { call: table.make.name })
    }

    /// The name of the model's folder: hashes of program, options and weights.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the framework gives none.
    pub fn hex_identifier(&self) -> Result<String, SysError> {
        let (send, selector) = self.engine.methods.in_memory.identifier.ready()?;
        self.engine.runtime.with_pool(|| {
            // SAFETY: the model lives; the result is a text that lives in this pool.
            unsafe { self.engine.runtime.read_text(send(self.object.id(), selector)) }
        })
    }

    /// The folder in which the framework expects the program's files.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question; [`SysError::Nothing`].
    pub fn local_path(&self) -> Result<PathBuf, SysError> {
        let method = self.engine.need(self.engine.methods.in_memory.path.as_ref(), "-[_ANEInMemoryModel localModelPath]")?;
        let (send, selector) = method.ready()?;
        self.engine.runtime.with_pool(|| {
            // SAFETY: as in `hex_identifier`.
            unsafe { self.engine.runtime.read_text(send(self.object.id(), selector)) }.map(PathBuf::from)
        })
    }

    /// Compiles the program. Its files must stand in the folder that [`InMemoryModel::hex_identifier`] names.
    ///
    /// # Errors
    /// [`SysError::Apple`] with the framework's reason.
    pub fn compile(&mut self, quality: u32, options: &Dictionary) -> Result<(), SysError> {
        let method = &self.engine.methods.in_memory.compile;
        let (send, selector) = method.ready()?;
        self.engine.runtime.succeed(method.name, |error| {
            // SAFETY: model and options live; `&mut self` keeps other calls on the model out.
            unsafe { send(self.object.id(), selector, quality, options.0.id(), error) }
        })
    }

    /// Loads the compiled program onto the engine.
    ///
    /// # Errors
    /// [`SysError::Apple`] with the framework's reason; [`SysError::Order`] for a loaded model.
    pub fn load(&mut self, quality: u32, options: &Dictionary) -> Result<(), SysError> {
        let method = &self.engine.methods.in_memory.load_it;
        if self.loaded.is_some() {
            return Err(SysError::Order { call: method.name, rule: "the model is loaded; unload it first" });
        }
        let (send, selector) = method.ready()?;
        self.engine.runtime.succeed(method.name, |error| {
            // SAFETY: as in `compile`.
            unsafe { send(self.object.id(), selector, quality, options.0.id(), error) }
        })?;
        self.loaded = Some(quality);
        Ok(())
    }

    /// Whether the model is loaded.
    pub fn is_loaded(&self) -> bool {
        self.loaded.is_some()
    }

    /// Runs the program on the request's surfaces and waits for its end. Copies of these surfaces wait meanwhile.
    ///
    /// # Errors
    /// [`SysError::Apple`] with the framework's reason.
    pub fn evaluate(&mut self, quality: u32, request: &mut Request) -> Result<(), SysError> {
        let method = &self.engine.methods.in_memory.evaluate;
        let (send, selector) = method.ready()?;
        let (runtime, object, options) = (&self.engine.runtime, self.object.id(), self.engine.empty.0.id());
        request.during(|request| {
            runtime.succeed(method.name, |error| {
                // SAFETY: model, options and request live; the request's surfaces are locked against our copies, and `&mut self`
                // keeps other calls on the model out.
                unsafe { send(object, selector, quality, options, request, error) }
            })
        })
    }

    /// Maps the request's surfaces for the engine ahead of the first evaluation.
    ///
    /// # Errors
    /// [`SysError::Apple`] with the framework's reason; [`SysError::Lacking`] where this system lacks the method.
    pub fn map_surfaces(&mut self, request: &Request, cache_inference: bool) -> Result<(), SysError> {
        let method = self.engine.methods.in_memory.map.as_ref();
        let method = self.engine.need(method, "-[_ANEInMemoryModel mapIOSurfacesWithRequest:cacheInference:error:]")?;
        let (send, selector) = method.ready()?;
        self.engine.runtime.succeed(method.name, |error| {
            // SAFETY: model and request live; `&mut self` keeps other calls on the model out.
            unsafe { send(self.object.id(), selector, request.id(), cache_inference.into(), error) }
        })
    }

    /// Takes back what [`InMemoryModel::map_surfaces`] did; does nothing where this system has no such method.
    ///
    /// # Errors
    /// [`SysError::Encoding`] in debug builds.
    pub fn unmap_surfaces(&mut self, request: &Request) -> Result<(), SysError> {
        let Some(method) = &self.engine.methods.in_memory.unmap else { return Ok(()) };
        let (send, selector) = method.ready()?;
        self.engine.runtime.with_pool(|| {
            // SAFETY: as in `map_surfaces`.
            unsafe { send(self.object.id(), selector, request.id()) }
        });
        Ok(())
    }

    /// Takes the program off the engine. Does nothing for one that is not loaded.
    ///
    /// # Errors
    /// [`SysError::Apple`] with the framework's reason; the model counts as unloaded all the same.
    pub fn unload(&mut self) -> Result<(), SysError> {
        let Some(quality) = self.loaded.take() else { return Ok(()) };
        let method = &self.engine.methods.in_memory.unload;
        let (send, selector) = method.ready()?;
        self.engine.runtime.succeed(method.name, |error| {
            // SAFETY: the model lives; `&mut self` keeps other calls on it out.
            unsafe { send(self.object.id(), selector, quality, error) }
        })
    }

    /// What the framework knows about the program: symbols, procedures, layouts. Filled by loading.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question; [`SysError::Nothing`] before the model is loaded.
    pub fn attributes(&self) -> Result<Value, SysError> {
        let method = self.engine.methods.in_memory.attributes.as_ref();
        let method = self.engine.need(method, "-[_ANEInMemoryModel modelAttributes]")?;
        let (send, selector) = method.ready()?;
        self.engine.runtime.with_pool(|| {
            // SAFETY: the model lives; the result lives in this pool until it is retained.
            let object = unsafe { self.engine.runtime.retained(send(self.object.id(), selector)) };
            Value::read(&object.ok_or(SysError::Nothing { call: method.name })?)
        })
    }

    /// Whether the daemon's cache holds the compiled program.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question.
    pub fn compiled_exists(&self) -> Result<bool, SysError> {
        let method = self.engine.methods.in_memory.exists.as_ref();
        let (send, selector) = self.engine.need(method, "-[_ANEInMemoryModel compiledModelExists]")?.ready()?;
        // SAFETY: the model lives.
        Ok(self.engine.runtime.with_pool(|| unsafe { send(self.object.id(), selector) }).is_true())
    }

    /// The framework's own state of the model; 3 is reported to mean loaded.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question.
    pub fn state(&self) -> Result<u64, SysError> {
        let method = self.engine.methods.in_memory.state.as_ref();
        let (send, selector) = self.engine.need(method, "-[_ANEInMemoryModel state]")?.ready()?;
        // SAFETY: the model lives.
        Ok(unsafe { send(self.object.id(), selector) })
    }

    /// How many requests may wait; at most 127.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the setting.
    pub fn set_queue_depth(&mut self, depth: i8) -> Result<(), SysError> {
        let method = self.engine.methods.in_memory.set_depth.as_ref();
        let (send, selector) = self.engine.need(method, "-[_ANEInMemoryModel setQueueDepth:]")?.ready()?;
        // SAFETY: the model lives; `&mut self` keeps other calls on it out.
        unsafe { send(self.object.id(), selector, depth) };
        Ok(())
    }

    /// Which statistics the engine keeps, as bits. Nobody has reported to have got any.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the setting.
    pub fn set_performance_mask(&mut self, mask: u32) -> Result<(), SysError> {
        let method = self.engine.methods.in_memory.set_stats.as_ref();
        let (send, selector) = self.engine.need(method, "-[_ANEInMemoryModel setPerfStatsMask:]")?.ready()?;
        // SAFETY: as above.
        unsafe { send(self.object.id(), selector, mask) };
        Ok(())
    }

    /// The model inside, which a [`Client`](super::Client) takes.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question; [`SysError::Nothing`].
    pub fn inner(&self) -> Result<Model, SysError> {
        let method = self.engine.methods.in_memory.inner.as_ref();
        let method = self.engine.need(method, "-[_ANEInMemoryModel model]")?;
        let (send, selector) = method.ready()?;
        let object = self.engine.runtime.with_pool(|| {
            // SAFETY: the model lives; the result lives in this pool until it is retained.
            unsafe { self.engine.runtime.retained(send(self.object.id(), selector)) }
        });
        Ok(Model::of(object.ok_or(SysError::Nothing { call: method.name })?, &self.engine))
    }

    pub(super) fn id(&self) -> Id {
        self.object.id()
    }
}

impl Drop for InMemoryModel {
    fn drop(&mut self) {
        // A refusal can't be told to anybody here.
        let _ = self.unload();
    }
}
