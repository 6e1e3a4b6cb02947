//! Requests: which surfaces are a program's inputs and outputs in one evaluation.

use std::sync::Arc;

use super::AppleNeuralEngine;
use crate::SysError;
use crate::block::{Block, Completed};
use crate::memory::Held;
use crate::objc::types::{BlockRef, Id};
use crate::objc::{Array, Retained};
use crate::surface::Surface;

/// A surface as the framework takes it.
#[derive(Clone)]
pub struct SurfaceObject {
    object: Retained,
    surface: Surface,
}

impl SurfaceObject {
    /// Wraps a surface, which it keeps alive.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the framework refuses.
    pub fn new(engine: &Arc<AppleNeuralEngine>, surface: &Surface) -> Result<Self, SysError> {
        let table = &engine.methods.surface_object;
        let (send, selector) = table.make.ready()?;
        engine
            .runtime
            .with_pool(|| {
                // SAFETY: the surface lives during the call; the result lives in this pool until it is retained.
                unsafe { engine.runtime.retained(send(table.class.id(), selector, surface.raw())) }
            })
            .map(|object| Self { object, surface: surface.clone() })
            .ok_or(SysError::Nothing { call: table.make.name })
    }

    /// The surface.
    pub fn surface(&self) -> &Surface {
        &self.surface
    }
}

/// A place for the engine's own time of one evaluation. No public source reports to have got one back.
pub struct PerformanceStats {
    object: Retained,
    engine: Arc<AppleNeuralEngine>,
}

impl PerformanceStats {
    /// An empty one.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system has none; [`SysError::Nothing`].
    pub fn new(engine: &Arc<AppleNeuralEngine>) -> Result<Self, SysError> {
        let table = engine.need(engine.methods.stats.as_ref(), "+[_ANEPerformanceStats statsWithHardwareExecutionNS:]")?;
        let (send, selector) = table.make.ready()?;
        engine
            .runtime
            .with_pool(|| {
                // SAFETY: a number goes in; the result lives in this pool until it is retained.
                unsafe { engine.runtime.retained(send(table.class.id(), selector, 0)) }
            })
            .map(|object| Self { object, engine: engine.clone() })
            .ok_or(SysError::Nothing { call: table.make.name })
    }

    /// The engine's time in nanoseconds; zero where none was written.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question.
    pub fn hardware_nanoseconds(&self) -> Result<u64, SysError> {
        time(&self.engine, self.object.id())
    }
}

fn time(engine: &AppleNeuralEngine, stats: Id) -> Result<u64, SysError> {
    let table = engine.need(engine.methods.stats.as_ref(), "-[_ANEPerformanceStats hwExecutionTime]")?;
    let (send, selector) = table.time.ready()?;
    // SAFETY: the callers have statistics that live.
    Ok(unsafe { send(stats, selector) })
}

/// One evaluation's inputs and outputs. It is made once and used again for ever; other surfaces need another request.
pub struct Request {
    object: Retained,
    engine: Arc<AppleNeuralEngine>,
    held: Held,
    _surfaces: Vec<SurfaceObject>,
    completion: Option<Block>,
}

impl Request {
    /// Surfaces with the indices of their symbols, and the procedure that runs; a program of one function has procedure 0.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the framework refuses.
    pub fn new(
        engine: &Arc<AppleNeuralEngine>,
        inputs: &[(u64, &SurfaceObject)],
        outputs: &[(u64, &SurfaceObject)],
        procedure: u32,
    ) -> Result<Self, SysError> {
        let table = &engine.methods.request;
        let (send, selector) = table.short.ready()?;
        Self::make(
            engine,
            inputs,
            outputs,
            procedure,
            table.short.name,
            |[inputs, input_indices, outputs, output_indices, procedure]| {
                // SAFETY: the arguments are of the classes that the method takes and live during the call.
                unsafe { send(table.class.id(), selector, inputs, input_indices, outputs, output_indices, procedure) }
            },
        )
    }

    /// As [`Request::new`], with a surface of weights or a place for statistics. Public sources report that weights given so
    /// have no effect.
    ///
    /// # Errors
    /// As [`Request::new`]; [`SysError::Lacking`] where this system lacks the method.
    pub fn with_extras(
        engine: &Arc<AppleNeuralEngine>,
        inputs: &[(u64, &SurfaceObject)],
        outputs: &[(u64, &SurfaceObject)],
        procedure: u32,
        weights: Option<&SurfaceObject>,
        stats: Option<&PerformanceStats>,
    ) -> Result<Self, SysError> {
        const NAME: &str =
            "+[_ANERequest requestWithInputs:inputIndices:outputs:outputIndices:weightsBuffer:perfStats:procedureIndex:]";
        let table = &engine.methods.request;
        let (send, selector) = engine.need(table.long.as_ref(), NAME)?.ready()?;
        let stats = stats.map(|stats| engine.runtime.list(&[&stats.object])).transpose()?;
        let stats = stats.as_ref().map_or(Id::NIL, |list| list.0.id());
        let weights_id = weights.map_or(Id::NIL, |weights| weights.object.id());
        let mut request =
            Self::make(engine, inputs, outputs, procedure, NAME, |[inputs, input_indices, outputs, output_indices, procedure]| {
                // SAFETY: the arguments are nil or of the classes that the method takes, and live during the call.
                unsafe {
                    let class = table.class.id();
                    send(class, selector, inputs, input_indices, outputs, output_indices, weights_id, stats, procedure)
                }
            })?;
        request._surfaces.extend(weights.cloned());
        request.held = Held::new(request._surfaces.iter().map(|object| object.surface.memory().clone()));
        Ok(request)
    }

    fn make(
        engine: &Arc<AppleNeuralEngine>,
        inputs: &[(u64, &SurfaceObject)],
        outputs: &[(u64, &SurfaceObject)],
        procedure: u32,
        call: &'static str,
        send: impl FnOnce([Id; 5]) -> Id,
    ) -> Result<Self, SysError> {
        let runtime = &engine.runtime;
        let lists = |ports: &[(u64, &SurfaceObject)]| -> Result<(Array, Array), SysError> {
            let objects: Vec<&Retained> = ports.iter().map(|(_, object)| &object.object).collect();
            let indices: Vec<Retained> =
                ports.iter().map(|(index, _)| runtime.integer(index.cast_signed())).collect::<Result<_, _>>()?;
            Ok((runtime.list(&objects)?, runtime.list(&indices.iter().collect::<Vec<_>>())?))
        };
        let ((input_list, input_indices), (output_list, output_indices)) = (lists(inputs)?, lists(outputs)?);
        let procedure = runtime.integer(i64::from(procedure))?;
        let arguments = [input_list.0.id(), input_indices.0.id(), output_list.0.id(), output_indices.0.id(), procedure.id()];
        // SAFETY: the result of a factory, which lives in this pool until it is retained.
        let object = runtime.with_pool(|| unsafe { runtime.retained(send(arguments)) });
        let surfaces: Vec<SurfaceObject> = inputs.iter().chain(outputs).map(|(_, object)| (*object).clone()).collect();
        Ok(Self {
            object: object.ok_or(SysError::Nothing { call })?,
            engine: engine.clone(),
            held: Held::new(surfaces.iter().map(|object| object.surface.memory().clone())),
            _surfaces: surfaces,
            completion: None,
        })
    }

    /// Has `work` run when an evaluation ends. It is reported to run on the evaluating thread, after failures too.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the setting or blocks.
    pub fn set_completion(&mut self, work: Box<dyn Fn() + Send + Sync>) -> Result<(), SysError> {
        let method = self.engine.methods.request.set_completion.as_ref();
        let (send, selector) = self.engine.need(method, "-[_ANERequest setCompletionHandler:]")?.ready()?;
        let block = self.engine.runtime.blocks()?.make(Completed(work))?;
        self.engine.runtime.with_pool(|| {
            // SAFETY: the request lives and copies the block, which this value keeps as well.
            unsafe { send(self.object.id(), selector, BlockRef(block.as_ptr())) }
        });
        self.completion = Some(block);
        Ok(())
    }

    /// Whether the framework finds the request in order.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question.
    pub fn validate(&self) -> Result<bool, SysError> {
        let method = self.engine.methods.request.validate.as_ref();
        let (send, selector) = self.engine.need(method, "-[_ANERequest validate]")?.ready()?;
        // SAFETY: the request lives.
        Ok(self.engine.runtime.with_pool(|| unsafe { send(self.object.id(), selector) }).is_true())
    }

    /// The engine's time of the last evaluation in nanoseconds, where the framework keeps one.
    ///
    /// # Errors
    /// [`SysError::Lacking`] where this system lacks the question.
    pub fn hardware_nanoseconds(&self) -> Result<Option<u64>, SysError> {
        let method = self.engine.methods.request.stats.as_ref();
        let (send, selector) = self.engine.need(method, "-[_ANERequest perfStatsArray]")?.ready()?;
        let runtime = &self.engine.runtime;
        runtime.with_pool(|| {
            // SAFETY: the request lives; the result is nil or an array that lives in this pool until it is retained.
            let Some(array) = (unsafe { runtime.retained(send(self.object.id(), selector)) }) else { return Ok(None) };
            runtime.elements(&array)?.first().map(|stats| time(&self.engine, stats.id())).transpose()
        })
    }

    pub(super) fn id(&self) -> Id {
        self.object.id()
    }

    /// Runs `work` while no copy can touch the surfaces.
    pub(super) fn during<T>(&mut self, work: impl FnOnce(Id) -> T) -> T {
        let id = self.object.id();
        self.held.during(|| work(id))
    }
}
