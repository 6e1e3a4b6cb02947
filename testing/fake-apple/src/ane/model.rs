//! `_ANEModel`: a folder and a key.

use super::attributes::symbols;
use super::memory_model::MemoryModel;
use super::program::Program;
use crate::foundation::{dictionary, index_set, path_of, string, text_of, url, value};
use crate::interface::Route;
use crate::objc::{ClassSpec, Id, Method, Sel, Strong, method};
use std::sync::Arc;

/// Body of a model.
struct Model(Arc<Program>);

/// The model of a program.
pub fn model_of(program: &Arc<Program>) -> Strong {
    Id::make("_ANEModel", Model(program.clone()))
}

/// The program behind a model. The client takes an in-memory model too (thebasedcapital/ane-infer).
pub fn program_of(id: Id) -> Option<&'static Arc<Program>> {
    id.body::<Model>().map(|model| &model.0).or_else(|| id.body::<MemoryModel>().map(MemoryModel::program))
}

extern "C" fn at_url(_: Id, _: Sel, address: Id, key: Id) -> Id {
    let (Some(path), Some(key)) = (path_of(address), text_of(key)) else { return Id::NIL };
    let program = Program::new(path.trim_end_matches('/').to_string(), key.to_string(), Route::Client);
    model_of(&program).autoreleased()
}

extern "C" fn at_url_with_attributes(this: Id, selector: Sel, address: Id, key: Id, _attributes: Id) -> Id {
    at_url(this, selector, address, key)
}

fn set(this: Id, procedure: u32, outputs: bool) -> Id {
    let Some(program) = program_of(this) else { return Id::NIL };
    let loaded = program.loaded();
    let functions = loaded.as_ref().map_or(&[][..], |(loaded, _)| &loaded.compiled().functions);
    let found = usize::try_from(procedure).ok().and_then(|procedure| symbols(functions, procedure, outputs));
    // Tables are empty before a load (thebasedcapital/ane-infer).
    found.unwrap_or_else(|| index_set([])).autoreleased()
}

extern "C" fn input_symbols(this: Id, _: Sel, procedure: u32) -> Id {
    set(this, procedure, false)
}

extern "C" fn output_symbols(this: Id, _: Sel, procedure: u32) -> Id {
    set(this, procedure, true)
}

extern "C" fn procedure_info(this: Id, _: Sel, procedure: u32) -> Id {
    let procedures = program_of(this)
        .and_then(|program| program.attributes())
        .and_then(|all| value(all.id(), "ANEFModelDescription"))
        .and_then(|description| value(description.id(), "ANEFModelProcedures"))
        .and_then(|list| crate::foundation::elements(list.id()));
    let found = usize::try_from(procedure).ok().and_then(|procedure| procedures.and_then(|list| list.get(procedure).cloned()));
    found.map_or(Id::NIL, Strong::autoreleased)
}

extern "C" fn attributes(this: Id, _: Sel) -> Id {
    let found = program_of(this).and_then(|program| program.attributes());
    found.unwrap_or_else(|| dictionary([])).autoreleased()
}

extern "C" fn model_url(this: Id, _: Sel) -> Id {
    program_of(this).map_or(Id::NIL, |program| url(&program.folder).autoreleased())
}

extern "C" fn key(this: Id, _: Sel) -> Id {
    program_of(this).map_or(Id::NIL, |program| string(&program.key).autoreleased())
}

extern "C" fn handle(this: Id, _: Sel) -> u64 {
    program_of(this).map_or(0, |program| program.handle())
}

extern "C" fn state(this: Id, _: Sel) -> usize {
    program_of(this).map_or(0, |program| program.state())
}

/// Accepted and without effect: no source got statistics from it.
extern "C" fn set_mask(_: Id, _: Sel, _mask: u32) {}

static CLASS_METHODS: &[Method] =
    &[method!("modelAtURL:key:", at_url, 2), method!("modelAtURL:key:modelAttributes:", at_url_with_attributes, 3)];

static METHODS: &[Method] = &[
    method!("inputSymbolIndicesForProcedureIndex:", input_symbols, 1),
    method!("outputSymbolIndicesForProcedureIndex:", output_symbols, 1),
    method!("procedureInfoForProcedureIndex:", procedure_info, 1),
    method!("modelAttributes", attributes, 0),
    method!("modelURL", model_url, 0),
    method!("key", key, 0),
    method!("programHandle", handle, 0),
    method!("state", state, 0),
    method!("setPerfStatsMask:", set_mask, 1),
];

pub(super) static SPECS: &[ClassSpec] =
    &[ClassSpec { name: "_ANEModel", superclass: "NSObject", class_methods: CLASS_METHODS, methods: METHODS }];
