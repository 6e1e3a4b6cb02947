//! `_ANEClient`: the connection to the daemon.

use super::FRAMEWORK;
use super::memory_model::{check_options, done};
use super::model::program_of;
use super::program::Program;
use super::request::{evaluate, map, unmap};
use crate::counters::violation;
use crate::foundation::{text_of, value};
use crate::interface::{Fault, ProgramKind};
use crate::objc::{ClassSpec, ErrorOut, Id, Method, Sel, method};
use std::sync::{Arc, OnceLock};

/// Body of a client.
struct Client;

/// The client that a process shares.
pub fn shared() -> Id {
    static SHARED: OnceLock<Id> = OnceLock::new();
    *SHARED.get_or_init(|| Id::make("_ANEClient", Client).into_id().immortal())
}

extern "C" fn shared_connection(_: Id, _: Sel) -> Id {
    shared()
}

extern "C" fn init(this: Id, _: Sel, _allowed: bool) -> Id {
    this.fill(Client);
    this
}

fn program(what: &str, model: Id) -> Result<&'static Arc<Program>, Fault> {
    program_of(model).ok_or_else(|| {
        violation(format!("{what}: the model is none"));
        Fault::new(FRAMEWORK, 4, "no model")
    })
}

/// The form that the options name. Without them the daemon takes the folder for an Espresso model (dev-erik/ANE passed none and saw
/// its file missing; maderix/ANE commit f213c8d passes both keys and runs).
fn compile(model: Id, options: Id) -> Result<(), Fault> {
    let program = program("compileModel:options:qos:error:", model)?;
    let option = |key: &str| value(options, key).and_then(|found| text_of(found.id()));
    let file = option("kANEFNetPlistFilenameKey");
    match (option("kANEFModelType"), file) {
        (Some("kANEFModelMIL"), Some("model.mil")) => program.compile(ProgramKind::Mil),
        (Some("kANEFModelMIL"), file) => Err(missing(program, file.unwrap_or("model.espresso.net"))),
        _ => Err(missing(program, file.unwrap_or("model.espresso.net"))),
    }
}

fn missing(program: &Program, file: &str) -> Fault {
    let path = program.file(file);
    Fault::new("com.apple.appleneuralengine.compiler", 1, format!("ANECCompile() FAILED: err=(no file {})", path.display()))
}

extern "C" fn compile_model(_: Id, _: Sel, model: Id, options: Id, _qos: u32, error: ErrorOut) -> bool {
    check_options("compileModel:options:qos:error:", options);
    done(error, compile(model, options))
}

extern "C" fn load_model(_: Id, _: Sel, model: Id, options: Id, _qos: u32, error: ErrorOut) -> bool {
    check_options("loadModel:options:qos:error:", options);
    done(error, program("loadModel:options:qos:error:", model).and_then(|program| program.load()))
}

extern "C" fn unload_model(_: Id, _: Sel, model: Id, options: Id, _qos: u32, error: ErrorOut) -> bool {
    check_options("unloadModel:options:qos:error:", options);
    let unloaded = program("unloadModel:options:qos:error:", model).and_then(|program| {
        program.unload().then_some(()).ok_or_else(|| Fault::new(FRAMEWORK, 6, "unload of a model that is not loaded"))
    });
    done(error, unloaded)
}

fn run(what: &str, model: Id, options: Id, request: Id, error: ErrorOut) -> bool {
    check_options(what, options);
    match program(what, model) {
        Ok(program) => evaluate(program, request, error),
        Err(fault) => done(error, Err(fault)),
    }
}

extern "C" fn evaluate_model(_: Id, _: Sel, model: Id, options: Id, request: Id, _qos: u32, error: ErrorOut) -> bool {
    run("evaluateWithModel:options:request:qos:error:", model, options, request, error)
}

/// Works without the real-time entitlement on a model that is loaded as usual (dev-erik/ANE, M4 Max).
extern "C" fn evaluate_real_time(_: Id, _: Sel, model: Id, options: Id, request: Id, error: ErrorOut) -> bool {
    run("evaluateRealTimeWithModel:options:request:error:", model, options, request, error)
}

extern "C" fn map_surfaces(_: Id, _: Sel, _model: Id, request: Id, _cache: bool, error: ErrorOut) -> bool {
    done(error, map(request))
}

extern "C" fn unmap_surfaces(_: Id, _: Sel, _model: Id, request: Id) {
    unmap(request);
}

extern "C" fn compiled_exists(_: Id, _: Sel, model: Id) -> bool {
    program_of(model).is_some_and(|program| program.is_compiled())
}

extern "C" fn purge(_: Id, _: Sel, model: Id) {
    if let Some(program) = program_of(model) {
        program.purge();
    }
}

/// Needs an entitlement that no third party has (Espresso, dev-erik/ANE, ane-infer).
extern "C" fn real_time_task(_: Id, _: Sel) -> bool {
    false
}

/// Fails without an error (Espresso, M3 Max).
extern "C" fn real_time_model(_: Id, _: Sel, _model: Id, _options: Id, _qos: u32, _error: ErrorOut) -> bool {
    false
}

/// Nobody has run a chain; preparing one fails with code 15 (maderix/ANE, dev-erik/ANE).
extern "C" fn prepare_chaining(_: Id, _: Sel, _model: Id, _options: Id, _chain: Id, _qos: u32, error: ErrorOut) -> bool {
    done(error, Err(Fault::new(FRAMEWORK, 15, "ANEProgramChainingPrepare() Failed")))
}

/// Fails without an error (Espresso).
extern "C" fn chain_step(_: Id, _: Sel, _model: Id, _what: Id, _options: Id, _qos: u32, _error: ErrorOut) -> bool {
    false
}

static METHODS: &[Method] = &[
    method!("initWithRestrictedAccessAllowed:", init, 1),
    method!("compileModel:options:qos:error:", compile_model, 4),
    method!("loadModel:options:qos:error:", load_model, 4),
    method!("doLoadModel:options:qos:error:", load_model, 4),
    method!("unloadModel:options:qos:error:", unload_model, 4),
    method!("doUnloadModel:options:qos:error:", unload_model, 4),
    method!("evaluateWithModel:options:request:qos:error:", evaluate_model, 5),
    method!("doEvaluateDirectWithModel:options:request:qos:error:", evaluate_model, 5),
    method!("evaluateRealTimeWithModel:options:request:error:", evaluate_real_time, 4),
    method!("doMapIOSurfacesWithModel:request:cacheInference:error:", map_surfaces, 4),
    method!("mapIOSurfacesWithModel:request:cacheInference:error:", map_surfaces, 4),
    method!("unmapIOSurfacesWithModel:request:", unmap_surfaces, 2),
    method!("compiledModelExistsFor:", compiled_exists, 1),
    method!("purgeCompiledModel:", purge, 1),
    method!("beginRealTimeTask", real_time_task, 0),
    method!("endRealTimeTask", real_time_task, 0),
    method!("loadRealTimeModel:options:qos:error:", real_time_model, 4),
    method!("unloadRealTimeModel:options:qos:error:", real_time_model, 4),
    method!("prepareChainingWithModel:options:chainingReq:qos:error:", prepare_chaining, 5),
    method!("enqueueSetsWithModel:outputSet:options:qos:error:", chain_step, 5),
    method!("buffersReadyWithModel:inputBuffers:options:qos:error:", chain_step, 5),
];

pub(super) static SPECS: &[ClassSpec] = &[ClassSpec {
    name: "_ANEClient",
    superclass: "NSObject",
    class_methods: &[method!("sharedConnection", shared_connection, 0)],
    methods: METHODS,
}];
