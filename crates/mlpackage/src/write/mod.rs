//! From bodies to a package.

mod description;
mod error;
mod folder;
mod function;
mod limits;
mod value;

pub use error::WriteError;

use crate::{OpSet, manifest, proto};
use aneforge_mil::{BlobFileWriter, Body, EmitOptions, Emitter, Program};
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;

/// Where the program finds its weights.
const WEIGHT_PATH: &str = "@model_path/weights/weight.bin";
/// File of the weights in their folder.
const WEIGHT_FILE: &str = "weight.bin";
/// Constants up to this many elements stand in the model file.
const LITERAL_LIMIT: usize = 10;
/// The function that is called where none is named.
const MAIN: &str = "main";

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Op-set of the functions.
    pub opset: OpSet,
    /// Bytes of the model file.
    pub model_bytes: u64,
    /// Bytes of the weight file.
    pub weight_bytes: u64,
}

/// Writes bodies as the functions of an ML Program package at `folder`, which must not exist or be a package, which is then
/// replaced. One body becomes the function `main`; several keep their names and share their weights, which needs iOS 18. The
/// op-set is the oldest that has all operators, so that as many systems as possible can load the package.
///
/// Inputs and outputs become multi-arrays of fp16, fp32 or int32 with the names that the bodies give them, letters, digits and
/// underscores kept and other characters replaced by underscores. The folder is written under a temporary name and renamed.
///
/// # Errors
/// [`WriteError`]; the folder is then as it was.
pub fn write(bodies: &[&Body], folder: &Path) -> Result<Written, WriteError> {
    let opset = opset(bodies)?;
    let staging = folder::staging(folder)?;
    let place = |relative: &str| staging.path().join(manifest::DATA).join(relative);
    folder::create(&place(manifest::WEIGHTS))?;
    let mut weights = BlobFileWriter::create(place(manifest::WEIGHTS).join(WEIGHT_FILE))?;
    let options = EmitOptions {
        opset: Some(opset.keyword().to_string()),
        weight_path: WEIGHT_PATH.to_string(),
        literal_limit: LITERAL_LIMIT,
        ..EmitOptions::default()
    };
    let mut emitter = Emitter::new(options, weights.blobs()?);
    for body in bodies {
        emitter.function(body)?;
    }
    let mut program = emitter.finish();
    if let [only] = program.functions.as_mut_slice() {
        only.name = MAIN.to_string();
    }
    let bytes = model(&program, opset)?.encode_to_vec();
    folder::write(&place(manifest::MODEL), &bytes)?;
    let weight_bytes = weights.finish()?;
    let text = manifest::text().map_err(|error| WriteError::Functions { problem: error.to_string() })?;
    folder::write(&staging.path().join(manifest::MANIFEST), text.as_bytes())?;
    folder::place(staging, folder)?;
    Ok(Written { opset, model_bytes: bytes.len() as u64, weight_bytes })
}

fn opset(bodies: &[&Body]) -> Result<OpSet, WriteError> {
    if bodies.is_empty() {
        return Err(WriteError::Functions { problem: "a package needs at least one function".to_string() });
    }
    let mut opset = if bodies.len() > 1 { OpSet::Ios18 } else { OpSet::Ios15 };
    for body in bodies {
        opset = opset.max(OpSet::needed(body).map_err(|op| {
            let used = body.operations.iter().find(|operation| operation.op.name == op.name);
            let name = used.and_then(|operation| operation.outputs.first()).map(|&id| body.value(id).name.clone());
            WriteError::Operator { op: op.name, name: name.unwrap_or_default() }
        })?);
        limits::check(body)?;
    }
    Ok(opset)
}

fn model(program: &Program, opset: OpSet) -> Result<proto::Model, WriteError> {
    let mut functions = BTreeMap::new();
    let mut description = proto::ModelDescription::default();
    for function in &program.functions {
        let description::Features { inputs, outputs, states } = description::features(function)?;
        if program.functions.len() == 1 {
            (description.inputs, description.outputs, description.states) = (inputs, outputs, states);
        } else {
            let name = function.name.clone();
            description.functions.push(proto::FunctionDescription { name, inputs, outputs, states });
        }
        if functions.insert(function.name.clone(), function::function(function, opset)?).is_some() {
            return Err(WriteError::Functions { problem: format!("two functions are called {:?}: rename one", function.name) });
        }
    }
    if let [first, _, ..] = program.functions.as_slice() {
        let main = program.functions.iter().find(|function| function.name == MAIN).unwrap_or(first);
        description.default_function.clone_from(&main.name);
    }
    let program = proto::Program { version: 1, functions, attributes: BTreeMap::new() };
    Ok(proto::Model {
        specification_version: opset.specification(),
        description: Some(description),
        kind: Some(proto::ModelKind::MlProgram(program)),
    })
}
