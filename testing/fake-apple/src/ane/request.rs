//! `_ANERequest` and `_ANEIOSurfaceObject`: which surfaces stand for which symbols, and what is done with them.

use super::FRAMEWORK;
use super::attributes::first_symbol;
use super::memory_model::done;
use super::program::Program;
use crate::counters::{COUNTERS, count, violation};
use crate::engine::OwnTime;
use crate::foundation::{elements, error, number_of, put_error};
use crate::interface::{Fault, View, ViewMut};
use crate::objc::{BlockRef, ClassSpec, ErrorOut, Id, KeptBlock, Method, Sel, Strong, SurfaceRef, call_completion, method};
use crate::surface::{Surface, engine_touches, surface_of};
use std::ptr::{NonNull, null};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Body of a wrapped surface.
struct Wrapped(Strong);

fn wrapped(id: Id) -> Option<&'static Surface> {
    id.body::<Wrapped>().and_then(|wrapped| surface_of(wrapped.0.id()))
}

extern "C" fn with_surface(_: Id, _: Sel, surface: SurfaceRef) -> Id {
    let id = Id::from_address(surface.0);
    if surface_of(id).is_none() {
        violation("objectWithIOSurface: of something that is no living surface".to_string());
        return Id::NIL;
    }
    Id::make("_ANEIOSurfaceObject", Wrapped(Strong::keep(id))).autoreleased()
}

extern "C" fn surface(this: Id, _: Sel) -> SurfaceRef {
    SurfaceRef(this.body::<Wrapped>().map_or(null(), |wrapped| wrapped.0.id().address()))
}

extern "C" fn start_offset(_: Id, _: Sel) -> u64 {
    0
}

/// Body of a request.
struct Request {
    inputs: Vec<(Strong, usize)>,
    outputs: Vec<(Strong, usize)>,
    procedure: usize,
    completion: Mutex<Option<Arc<KeptBlock>>>,
    maps: AtomicUsize,
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.maps.load(Relaxed) > 0 {
            violation("a request was freed while its surfaces were mapped".to_string());
        }
    }
}

fn bound(what: &str, surfaces: Id, indices: Id) -> Option<Vec<(Strong, usize)>> {
    let (Some(surfaces), Some(indices)) = (elements(surfaces), elements(indices)) else {
        violation(format!("request: {what} or their indices are no array"));
        return None;
    };
    if surfaces.len() != indices.len() {
        violation(format!("request: {} {what} with {} indices", surfaces.len(), indices.len()));
        return None;
    }
    let pairs = surfaces.into_iter().zip(indices).map(|(surface, index)| {
        let index = number_of(index.id()).and_then(|index| usize::try_from(index.signed()).ok());
        if index.is_none() || wrapped(surface.id()).is_none() {
            violation(format!("request: {what} hold something that is no wrapped surface with an index"));
        }
        Some((surface, index?))
    });
    pairs.collect()
}

fn make(inputs: Id, input_indices: Id, outputs: Id, output_indices: Id, procedure: Id) -> Id {
    let procedure = number_of(procedure).and_then(|procedure| usize::try_from(procedure.signed()).ok());
    if procedure.is_none() {
        violation("request: the procedure is no number".to_string());
    }
    let made = bound("inputs", inputs, input_indices).zip(bound("outputs", outputs, output_indices)).zip(procedure);
    let Some(((inputs, outputs), procedure)) = made else { return Id::NIL };
    let body = Request { inputs, outputs, procedure, completion: Mutex::new(None), maps: AtomicUsize::new(0) };
    Id::make("_ANERequest", body).autoreleased()
}

extern "C" fn with_five(_: Id, _: Sel, inputs: Id, input_indices: Id, outputs: Id, output_indices: Id, procedure: Id) -> Id {
    make(inputs, input_indices, outputs, output_indices, procedure)
}

extern "C" fn with_extra(_: Id, _: Sel, inputs: Id, in_at: Id, outputs: Id, out_at: Id, _extra: Id, procedure: Id) -> Id {
    make(inputs, in_at, outputs, out_at, procedure)
}

extern "C" fn with_all(
    _: Id,
    _: Sel,
    inputs: Id,
    in_at: Id,
    outputs: Id,
    out_at: Id,
    _weights: Id,
    _stats: Id,
    procedure: Id,
) -> Id {
    make(inputs, in_at, outputs, out_at, procedure)
}

extern "C" fn set_completion(this: Id, _: Sel, block: BlockRef) {
    if let Some(request) = this.body::<Request>() {
        let block = KeptBlock::copy(block).map(Arc::new);
        let old = std::mem::replace(&mut *request.completion.lock().unwrap_or_else(PoisonError::into_inner), block);
        drop(old);
    }
}

/// Events attached to a request make the evaluation hang (Espresso): refused here instead.
extern "C" fn set_events(_: Id, _: Sel, events: Id) {
    if !events.is_nil() {
        violation("setSharedEvents: is reported to hang the evaluation".to_string());
    }
}

extern "C" fn is_valid(this: Id, _: Sel) -> bool {
    this.body::<Request>().is_some_and(|request| !request.inputs.is_empty() && !request.outputs.is_empty())
}

/// Nobody got a value (Espresso, dev-erik/ANE).
extern "C" fn no_stats(_: Id, _: Sel) -> Id {
    Id::NIL
}

/// Maps the surfaces of a request.
pub fn map(request: Id) -> Result<(), Fault> {
    let Some(request) = request.body::<Request>() else {
        violation("map of something that is no request".to_string());
        return Err(Fault::new(FRAMEWORK, 13, "no request"));
    };
    count(&COUNTERS.maps);
    request.maps.fetch_add(1, Relaxed);
    Ok(())
}

/// Takes a mapping back.
pub fn unmap(request: Id) {
    let Some(request) = request.body::<Request>() else {
        violation("unmap of something that is no request".to_string());
        return;
    };
    count(&COUNTERS.unmaps);
    if request.maps.fetch_update(Relaxed, Relaxed, |maps| maps.checked_sub(1)).is_err() {
        violation("unmap of a request that is not mapped".to_string());
    }
}

/// Evaluates a request and calls its completion block on this thread, whether it went well or not (Espresso).
pub fn evaluate(program: &Program, request: Id, out: ErrorOut) -> bool {
    let _time = OwnTime::begin();
    let Some(body) = request.body::<Request>() else {
        violation("evaluation of something that is no request".to_string());
        return done(out, Err(Fault::new(FRAMEWORK, 4, "no request")));
    };
    let result = run(program, body);
    let completion = body.completion.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(block) = completion {
        let made = result.as_ref().err().map(error);
        call_completion(&block, result.is_ok(), made.as_ref().map_or(Id::NIL, Strong::id));
    }
    if let Err(fault) = &result {
        put_error(out, fault);
    }
    result.is_ok()
}

/// The status of a request whose symbols are not those of the procedure (thebasedcapital/ane-infer).
fn wrong_symbol() -> Fault {
    let text = "ANEProgramProcessRequestDirect() Failed with status=0x2 : statusType=0x9: Program Inference error";
    Fault::new(FRAMEWORK, 8, text)
}

fn run(program: &Program, request: &Request) -> Result<(), Fault> {
    let loaded = program.loaded();
    let (loaded, tables) = loaded.as_ref().ok_or_else(|| Fault::new(FRAMEWORK, 5, "the model is not loaded"))?;
    let functions = &loaded.compiled().functions;
    let [input_order, output_order] = tables.get(request.procedure).ok_or_else(wrong_symbol)?;
    let first = |outputs: bool| first_symbol(functions, request.procedure, outputs);
    let inputs = in_order(first(false), input_order, &request.inputs, false)?;
    let outputs = in_order(first(true), output_order, &request.outputs, true)?;
    let inputs: Vec<View> =
        inputs.iter().filter_map(|(start, bytes)| Some(View { start: NonNull::new(*start)?, bytes: *bytes })).collect();
    let outputs: Vec<ViewMut> =
        outputs.iter().filter_map(|(start, bytes)| Some(ViewMut { start: NonNull::new(*start)?, bytes: *bytes })).collect();
    // SAFETY: the surfaces are kept by the request, which its sender keeps through the message, and have this many bytes.
    unsafe { loaded.execute(request.procedure, &inputs, &outputs) }
}

/// The memory of each port, in the function's order.
fn in_order(first: usize, order: &[usize], bound: &[(Strong, usize)], outputs: bool) -> Result<Vec<(*mut u8, usize)>, Fault> {
    let mut found = vec![(std::ptr::null_mut::<u8>(), 0); order.len()];
    if bound.len() != order.len() {
        return Err(wrong_symbol());
    }
    for (surface, symbol) in bound {
        let port = symbol.checked_sub(first).and_then(|at| order.get(at)).ok_or_else(wrong_symbol)?;
        let surface = wrapped(surface.id()).ok_or_else(wrong_symbol)?;
        if !found[*port].0.is_null() {
            return Err(wrong_symbol());
        }
        engine_touches(surface, outputs);
        found[*port] = (surface.start(), surface.bytes());
    }
    Ok(found)
}

static OBJECT_METHODS: &[Method] = &[method!("ioSurface", surface, 0), method!("startOffset", start_offset, 0)];

static CLASS_METHODS: &[Method] = &[
    method!("requestWithInputs:inputIndices:outputs:outputIndices:procedureIndex:", with_five, 5),
    method!("requestWithInputs:inputIndices:outputs:outputIndices:weightsBuffer:procedureIndex:", with_extra, 6),
    method!("requestWithInputs:inputIndices:outputs:outputIndices:perfStats:procedureIndex:", with_extra, 6),
    method!("requestWithInputs:inputIndices:outputs:outputIndices:weightsBuffer:perfStats:procedureIndex:", with_all, 7),
];

static METHODS: &[Method] = &[
    method!("setCompletionHandler:", set_completion, 1),
    method!("setSharedEvents:", set_events, 1),
    method!("validate", is_valid, 0),
    method!("perfStats", no_stats, 0),
    method!("perfStatsArray", no_stats, 0),
];

pub(super) static SPECS: &[ClassSpec] = &[
    ClassSpec {
        name: "_ANEIOSurfaceObject",
        superclass: "NSObject",
        class_methods: &[method!("objectWithIOSurface:", with_surface, 1)],
        methods: OBJECT_METHODS,
    },
    ClassSpec { name: "_ANERequest", superclass: "NSObject", class_methods: CLASS_METHODS, methods: METHODS },
];
