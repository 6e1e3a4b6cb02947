//! Oracles and fixtures, which `make test` names in environment variables.
//!
//! Each function gives `None` where its variable is unset, after saying what was not run, and panics where the variable names
//! something that is not there: a typing error must not look like a passed test.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The Python with numpy, onnxruntime, coremltools and torch: `ANEFORGE_PYTHON`.
pub fn python() -> Option<PathBuf> {
    named("ANEFORGE_PYTHON", "no Python oracle", Path::is_file)
}

/// The Python with the package aneforge 0.4: `ANEFORGE_UPSTREAM_PYTHON`.
pub fn upstream_python() -> Option<PathBuf> {
    named("ANEFORGE_UPSTREAM_PYTHON", "no Python with the package aneforge", Path::is_file)
}

/// One set of fixtures, a folder below `ANEFORGE_FIXTURES`: `torchvision`, `minilm` or `upstream`.
pub fn fixtures(set: &str) -> Option<PathBuf> {
    let folder = named("ANEFORGE_FIXTURES", "no fixtures", Path::is_dir)?.join(set);
    assert!(folder.is_dir(), "ANEFORGE_FIXTURES has no {set:?}: {} is no folder; run scripts/fixtures.sh", folder.display());
    Some(folder)
}

/// The folder of the MiniLM sentence encoder: `ANEFORGE_MINILM`.
pub fn minilm() -> Option<PathBuf> {
    let folder = named("ANEFORGE_MINILM", "no MiniLM weights", Path::is_dir)?;
    assert!(folder.join("model.safetensors").is_file(), "ANEFORGE_MINILM: {} holds no model.safetensors", folder.display());
    Some(folder)
}

/// Runs a script of `testing/python` under [`python`] on a request and gives its answer; `None` where there is no Python.
///
/// # Panics
/// Where the script fails, with what it says.
pub fn oracle(script: &str, arguments: &[&str], request: &str) -> Option<String> {
    let python = python()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python").join(script);
    let mut command = Command::new(&python);
    command.arg(&script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", python.display()));
    child.stdin.take().expect("a pipe").write_all(request.as_bytes()).expect("the script reads its input");
    let output = child.wait_with_output().expect("the script ends");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {complaint}", script.display());
    Some(String::from_utf8(output.stdout).expect("the script answers in UTF-8"))
}

fn named(variable: &str, missing: &str, right: fn(&Path) -> bool) -> Option<PathBuf> {
    let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) else {
        eprintln!("not run: {missing}; {variable} is not set");
        return None;
    };
    let path = PathBuf::from(value);
    assert!(right(&path), "{variable} is set to {}, which is not there", path.display());
    Some(path)
}
