//! What the tests of whole programs share: through text and weights on disk, then over devices.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod graphs;

use aneforge::compile::bundle::TEXT;
use aneforge::mil::{BlobFolder, Body, op::builtin, parse, print, resolve};
use aneforge::runtime::Program;
use aneforge::{Array, CompileOptions, Compiled, HostArray, open};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Named values for the inputs of a program, in any order.
pub type Inputs = Vec<(String, Array)>;

/// A compiled program as a bundle in a folder of its own, which lives as long as this.
pub struct Bundle {
    pub folder: TempDir,
    pub text: String,
    pub program: Arc<Program>,
}

/// Writes a bundle and reads it back: the text must come back from the parser byte for byte, the computation from the resolver.
/// A program in segments has no text of its own.
pub fn written(compiled: &Compiled) -> Bundle {
    let folder = tempfile::tempdir().unwrap();
    compiled.write(folder.path()).unwrap();
    if compiled.segments.is_some() {
        let program = Arc::new(Program::open(folder.path()).unwrap_or_else(|error| panic!("{error}")));
        return Bundle { folder, text: String::new(), program };
    }
    let text = std::fs::read_to_string(folder.path().join(TEXT)).unwrap();
    let parsed = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(print(&parsed), text, "the text is not printed back as it was");
    let body = resolved(&text, folder.path());
    assert!(body.same_computation(&compiled.body), "read back as another computation:\n{text}");
    let program = Arc::new(Program::open(folder.path()).unwrap());
    Bundle { folder, text, program }
}

/// The only function of a text whose weights lie in a folder.
pub fn resolved(text: &str, folder: &Path) -> Body {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let name = &program.functions[0].name;
    resolve(&program, name, builtin(), &BlobFolder::new(folder)).unwrap_or_else(|error| panic!("{}", error.render(text)))
}

/// Runs a program once on a device.
pub fn run(device: &str, program: &Arc<Program>, inputs: &Inputs) -> Vec<Array> {
    let fail = |error: &dyn std::fmt::Display| -> ! { panic!("{} on {device}: {error}", program.name()) };
    let loaded = open(device).unwrap().load(program).unwrap_or_else(|error| fail(&error));
    let arrays: Vec<(&str, HostArray)> =
        inputs.iter().map(|(name, array)| (name.as_str(), HostArray::from_array(array).unwrap())).collect();
    // What no output needs is no input of the program.
    let named: Vec<(&str, &HostArray)> = arrays
        .iter()
        .filter(|(name, _)| loaded.inputs().iter().any(|port| port.name == *name))
        .map(|(name, array)| (*name, array))
        .collect();
    let results = loaded.run_named(&named).unwrap_or_else(|error| fail(&error));
    results.iter().map(|(_, array)| array.to_array()).collect()
}

/// The f64 meaning of a body, rounded to the types of its outputs as a device hands them back.
pub fn meaning(body: &Body, inputs: &Inputs) -> Vec<Array> {
    let find = |name: &String| inputs.iter().find(|(given, _)| given == name).map(|(_, array)| array.clone());
    let ordered: Vec<Array> = body.inputs.iter().map(|&id| find(&body.value(id).name).expect("a value for each input")).collect();
    let results = aneforge::core::evaluate(body, &ordered).unwrap_or_else(|error| panic!("{error}"));
    results.into_iter().map(Array::rounded).collect()
}

/// Options for a target by name, in the dialect of today.
pub fn options(target: &str) -> CompileOptions {
    CompileOptions { target: target.parse().unwrap(), ..CompileOptions::default() }
}

/// Keywords of the operations of a body, in order.
pub fn keywords(body: &Body) -> Vec<&'static str> {
    body.operations.iter().map(|operation| operation.op.name).collect()
}
