//! `_ANEInMemoryModel`: compiles a descriptor in a folder that its user has filled, loads and evaluates it.

use super::client::shared;
use super::descriptor::Descriptor;
use super::model::model_of;
use super::program::Program;
use super::request::{evaluate, map, unmap};
use super::{FRAMEWORK, files};
use crate::counters::{COUNTERS, violation};
use crate::faults;
use crate::foundation::{bytes_of, dictionary, entries, put_error, string, temporary_folder};
use crate::interface::{Fault, ProgramKind, Route};
use crate::objc::{ClassSpec, ErrorOut, Id, Method, Sel, Strong, method};
use crate::settings;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI8, AtomicU32};

/// Body of a model.
pub struct MemoryModel {
    descriptor: Strong,
    program: Arc<Program>,
    model: Strong,
    queue_depth: AtomicI8,
    mask: AtomicU32,
}

impl MemoryModel {
    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn descriptor(&self) -> Option<&'static Descriptor> {
        self.descriptor.id().body::<Descriptor>()
    }
}

/// Commands that may wait for the engine (ANE guide, arXiv 2606.22283, chapter 14).
const QUEUE_DEPTH: i8 = 127;

extern "C" fn with_descriptor(_: Id, _: Sel, descriptor: Id) -> Id {
    let Some(body) = descriptor.body::<Descriptor>() else { return Id::NIL };
    let program = Program::new(format!("{}{}", temporary_folder(), body.identifier), body.identifier.clone(), Route::InMemory);
    let made = MemoryModel {
        descriptor: Strong::keep(descriptor),
        model: model_of(&program),
        program,
        queue_depth: AtomicI8::new(QUEUE_DEPTH),
        mask: AtomicU32::new(0),
    };
    Id::make("_ANEInMemoryModel", made).autoreleased()
}

fn body(this: Id) -> Option<&'static MemoryModel> {
    this.body::<MemoryModel>()
}

/// Does what a method asks; puts the error of a failure where it belongs.
pub fn done(out: ErrorOut, result: Result<(), Fault>) -> bool {
    match result {
        Ok(()) => true,
        Err(fault) => {
            put_error(out, &fault);
            false
        }
    }
}

/// The options of a call are a dictionary; nil is not reported to work.
pub fn check_options(what: &str, options: Id) {
    if entries(options).is_none() {
        violation(format!("{what}: options are no dictionary"));
    }
}

extern "C" fn identifier(this: Id, _: Sel) -> Id {
    body(this).map_or(Id::NIL, |model| string(&model.program.key).autoreleased())
}

extern "C" fn local_path(this: Id, _: Sel) -> Id {
    body(this).map_or(Id::NIL, |model| string(&model.program.folder).autoreleased())
}

/// Does not write what a compile needs: the folder has to be filled before (maderix/ANE issue 54).
extern "C" fn save_files(_this: Id, _: Sel) -> bool {
    true
}

fn compile(model: &MemoryModel) -> Result<(), Fault> {
    // The class leaks at each compile, and a process ends up without more of them (maderix/ANE, issue 54).
    let budget = settings::current().limits.compiles;
    let before = COUNTERS.in_memory_compiles.fetch_add(1, Relaxed);
    let spent = usize::try_from(before).unwrap_or(usize::MAX) >= budget;
    if spent || faults::take("budget") {
        return Err(Fault::new("com.apple.appleneuralengine.compiler", 1, "ANECCompile() FAILED: err=()"));
    }
    let Some(descriptor) = model.descriptor() else { return Ok(()) };
    let program = match descriptor.kind {
        ProgramKind::Mil => "model.mil",
        ProgramKind::Network => "net.plist",
    };
    let weights = descriptor.weights.iter().map(|(path, data)| (path.as_str(), data));
    for (path, data) in std::iter::once((program, &descriptor.text)).chain(weights) {
        let there = files::read(&model.program.file(path));
        if cfg!(feature = "engine") && there.as_deref() != bytes_of(data.id()) {
            let text = format!("ANECCompile() FAILED: err=({path} is missing in the model's folder)");
            return Err(Fault::new("com.apple.appleneuralengine.compiler", 1, text));
        }
    }
    model.program.compile(descriptor.kind)?;
    if descriptor.kind == ProgramKind::Mil {
        // maderix/ANE, pull request 22: a compile leaves `net.plist`, and `data` where there are weights.
        files::write(&model.program.file("net.plist"), model.program.key.as_bytes());
        if let Some((_, data)) = descriptor.weights.first() {
            files::write(&model.program.file("data"), bytes_of(data.id()).unwrap_or_default());
        }
    }
    Ok(())
}

extern "C" fn compile_method(this: Id, _: Sel, _qos: u32, options: Id, error: ErrorOut) -> bool {
    check_options("compileWithQoS:options:error:", options);
    body(this).is_some_and(|model| done(error, compile(model)))
}

fn load(model: &MemoryModel) -> Result<(), Fault> {
    if !model.program.is_compiled() {
        recall(model)?;
    }
    model.program.load()
}

/// Loads without compiling: what an earlier compile left lies in the folder (maderix/ANE pull request 22, Espresso, Orion).
fn recall(model: &MemoryModel) -> Result<(), Fault> {
    let Some(descriptor) = model.descriptor() else { return Ok(()) };
    let missing = |what: &str| Fault::new(FRAMEWORK, 6, format!("Program load failure: {what}; the model is not compiled"));
    if descriptor.kind == ProgramKind::Mil {
        let kept = files::read(&model.program.file("net.plist"));
        if kept.as_deref() != Some(model.program.key.as_bytes()) {
            return Err(missing("no net.plist of this model"));
        }
        if !descriptor.weights.is_empty() && !files::exists(&model.program.file("data")) {
            return Err(missing("no data"));
        }
    }
    model.program.recall(descriptor.kind)
}

extern "C" fn load_method(this: Id, _: Sel, _qos: u32, options: Id, error: ErrorOut) -> bool {
    check_options("loadWithQoS:options:error:", options);
    body(this).is_some_and(|model| done(error, load(model)))
}

extern "C" fn evaluate_method(this: Id, _: Sel, _qos: u32, options: Id, request: Id, error: ErrorOut) -> bool {
    check_options("evaluateWithQoS:options:request:error:", options);
    body(this).is_some_and(|model| evaluate(&model.program, request, error))
}

extern "C" fn unload(this: Id, _: Sel, _qos: u32, error: ErrorOut) -> bool {
    let Some(model) = body(this) else { return false };
    let unloaded = model.program.unload();
    done(error, unloaded.then_some(()).ok_or_else(|| Fault::new(FRAMEWORK, 6, "unload of a model that is not loaded")))
}

extern "C" fn map_method(this: Id, _: Sel, request: Id, _cache: bool, error: ErrorOut) -> bool {
    let Some(model) = body(this) else { return false };
    let text = model.descriptor().is_some_and(|descriptor| descriptor.kind == ProgramKind::Mil);
    // thebasedcapital/ane-infer: error 13 on models from program text.
    let result = if text { Err(Fault::new(FRAMEWORK, 13, "mapIOSurfacesWithRequest failed")) } else { map(request) };
    done(error, result)
}

extern "C" fn unmap_method(_this: Id, _: Sel, request: Id) {
    unmap(request);
}

extern "C" fn compiled_exists(this: Id, _: Sel) -> bool {
    body(this).is_some_and(|model| {
        model.program.is_compiled()
            || files::read(&model.program.file("net.plist")).as_deref() == Some(model.program.key.as_bytes())
    })
}

extern "C" fn purge(this: Id, _: Sel) {
    if let Some(model) = body(this) {
        model.program.purge();
        if model.descriptor().is_some_and(|descriptor| descriptor.kind == ProgramKind::Mil) {
            files::remove(&model.program.file("net.plist"));
        }
    }
}

extern "C" fn attributes(this: Id, _: Sel) -> Id {
    let found = body(this).and_then(|model| model.program.attributes());
    found.unwrap_or_else(|| dictionary([])).autoreleased()
}

extern "C" fn model(this: Id, _: Sel) -> Id {
    body(this).map_or(Id::NIL, |model| model.model.id())
}

extern "C" fn connection(_this: Id, _: Sel) -> Id {
    shared()
}

extern "C" fn handle(this: Id, _: Sel) -> u64 {
    body(this).map_or(0, |model| model.program.handle())
}

extern "C" fn state(this: Id, _: Sel) -> usize {
    body(this).map_or(0, |model| model.program.state())
}

extern "C" fn queue_depth(this: Id, _: Sel) -> i8 {
    body(this).map_or(0, |model| model.queue_depth.load(Relaxed))
}

extern "C" fn set_queue_depth(this: Id, _: Sel, depth: i8) {
    if let Some(model) = body(this) {
        model.queue_depth.store(depth, Relaxed);
    }
}

extern "C" fn mask(this: Id, _: Sel) -> u32 {
    body(this).map_or(0, |model| model.mask.load(Relaxed))
}

extern "C" fn set_mask(this: Id, _: Sel, mask: u32) {
    if let Some(model) = body(this) {
        model.mask.store(mask, Relaxed);
    }
}

static METHODS: &[Method] = &[
    method!("hexStringIdentifier", identifier, 0),
    method!("localModelPath", local_path, 0),
    method!("saveModelFiles", save_files, 0),
    method!("compileWithQoS:options:error:", compile_method, 3),
    method!("loadWithQoS:options:error:", load_method, 3),
    method!("evaluateWithQoS:options:request:error:", evaluate_method, 4),
    method!("unloadWithQoS:error:", unload, 2),
    method!("mapIOSurfacesWithRequest:cacheInference:error:", map_method, 3),
    method!("unmapIOSurfacesWithRequest:", unmap_method, 1),
    method!("compiledModelExists", compiled_exists, 0),
    method!("purgeCompiledModel", purge, 0),
    method!("modelAttributes", attributes, 0),
    method!("model", model, 0),
    method!("sharedConnection", connection, 0),
    method!("programHandle", handle, 0),
    method!("state", state, 0),
    method!("queueDepth", queue_depth, 0),
    method!("setQueueDepth:", set_queue_depth, 1),
    method!("perfStatsMask", mask, 0),
    method!("setPerfStatsMask:", set_mask, 1),
];

pub(super) static SPECS: &[ClassSpec] = &[ClassSpec {
    name: "_ANEInMemoryModel",
    superclass: "NSObject",
    class_methods: &[method!("inMemoryModelWithDescriptor:", with_descriptor, 1)],
    methods: METHODS,
}];
