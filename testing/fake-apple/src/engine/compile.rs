//! Compiles a folder: reads the program, refuses it by the rules, keeps what loading needs.

use super::failure::{self, compiler_text};
use super::ports::{packed, padded};
use crate::counters::{COUNTERS, count};
use crate::interface::{Fault, Function, Options, ProgramKind, Route};
use crate::rules::{self, Setting};
use crate::{faults, settings};
use aneforge_core::{Chip, chips};
use aneforge_mil::op::builtin;
use aneforge_mil::{BlobFolder, Body, parse, resolve};
use aneforge_runtime::Program;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the compiler says of text that it cannot read or that breaks an operator's rules (Orion, arXiv 2603.06728).
pub const INVALID: &str = "InvalidMILProgram";

/// Largest text that is read.
const MAX_TEXT: u64 = 1 << 30;

/// A compiled program.
#[derive(Debug)]
pub struct Compiled {
    /// Its functions.
    pub functions: Vec<Function>,
    pub(super) programs: Vec<Arc<Program>>,
    pub(super) route: Route,
    pub(super) chip: &'static Chip,
    /// Whether it was compiled for another chip than this machine's.
    pub(super) foreign: bool,
}

impl Compiled {
    /// What the rules need to know beside the program.
    pub(super) fn setting(&self) -> Setting {
        Setting::new(self.chip, self.route)
    }
}

/// When a compile failed last.
static FAILED: Mutex<Option<Instant>> = Mutex::new(None);

/// Compiles the program in `folder`: `model.mil` or `net.plist`.
///
/// # Errors
/// What the compiler reports.
pub fn compile(folder: &Path, kind: ProgramKind, route: Route, options: &Options) -> Result<Arc<Compiled>, Fault> {
    guarded(route, || match kind {
        ProgramKind::Mil => text(&folder.join("model.mil"), route, options),
        ProgramKind::Network => network(folder, route, options),
    })
}

/// Takes the program in `folder` out of the daemon's cache: as compiled before, without compiling.
///
/// # Errors
/// What the compiler reports: the settings may have changed since.
pub fn cached(folder: &Path, kind: ProgramKind, route: Route, options: &Options) -> Result<Arc<Compiled>, Fault> {
    match kind {
        ProgramKind::Mil => cached_file(&folder.join("model.mil"), route, options),
        ProgramKind::Network => {
            count(&COUNTERS.cache_hits);
            network(folder, route, options).map(Arc::new)
        }
    }
}

/// The same for a file of program text.
///
/// # Errors
/// As [`cached`].
pub fn cached_file(file: &Path, route: Route, options: &Options) -> Result<Arc<Compiled>, Fault> {
    count(&COUNTERS.cache_hits);
    text(file, route, options).map(Arc::new)
}

/// Compiles a file of program text; weights stand beside it.
///
/// # Errors
/// What the compiler reports.
pub fn compile_file(file: &Path, route: Route, options: &Options) -> Result<Arc<Compiled>, Fault> {
    guarded(route, || text(file, route, options))
}

/// Counts, injects failures, remembers failures.
fn guarded(route: Route, compile: impl FnOnce() -> Result<Compiled, Fault>) -> Result<Arc<Compiled>, Fault> {
    let settings = settings::current();
    count(&COUNTERS.compiles);
    if let Some(entry) = faults::take_entry("slow-compile") {
        std::thread::sleep(Duration::from_millis(entry.ms.unwrap_or(0)));
    }
    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    if failed.is_some_and(|at| at.elapsed() < Duration::from_millis(settings.unreliable_ms)) {
        let text = compiler_text("CompilationFailure");
        return Err(failure::compile(route, 1, &text, "a compile failed a moment ago, and the next ones are unreliable"));
    }
    let injected = faults::take_entry("compile").map(|entry| {
        let usual = failure::compile(route, 1, &compiler_text(""), "injected");
        failure::injected(usual, &entry)
    });
    // Compiles run beside each other.
    drop(failed);
    let compiled = injected.map_or_else(compile, Err);
    failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    *failed = compiled.is_err().then(Instant::now);
    compiled.map(Arc::new)
}

/// The chip that is compiled for, and whether it is another one than this machine's. An architecture that the compiler does not know
/// counts as none, without a word (PyPI package aneforge 0.4.0).
fn chip(options: &Options) -> Result<(&'static Chip, bool), String> {
    let host = settings::current().chip.clone();
    let host = Chip::find(&host).ok_or_else(|| format!("the setting chip is {host:?}, which is none"))?;
    let wanted = options.target_architecture.as_deref();
    Ok(match chips().iter().find(|chip| Some(chip.compiler_target) == wanted) {
        Some(chip) if chip.compiler_target != host.compiler_target => (chip, true),
        _ => (host, false),
    })
}

fn text(file: &Path, route: Route, options: &Options) -> Result<Compiled, Fault> {
    let invalid = |reason: String| failure::compile(route, 1, &compiler_text(INVALID), reason);
    let (chip, foreign) = chip(options).map_err(invalid)?;
    let setting = Setting::new(chip, route);
    let text = read(file).map_err(invalid)?;
    let program = parse(&text).map_err(|error| invalid(error.to_string()))?;
    rules::check_text(&setting, &program)?;
    let blobs = BlobFolder::new(file.parent().unwrap_or(Path::new(".")));
    let (mut functions, mut programs) = (Vec::new(), Vec::new());
    for function in &program.functions {
        let body = resolve(&program, &function.name, builtin(), &blobs).map_err(|error| invalid(error.render(&text)))?;
        let body = rules::check_body(&setting, body)?;
        functions.push(ports(&body, packed).map_err(invalid)?);
        programs.push(Arc::new(Program::from_body(function.name.clone(), body)));
    }
    if functions.is_empty() {
        return Err(invalid("the program has no function".to_string()));
    }
    Ok(Compiled { functions, programs, route, chip, foreign })
}

fn network(folder: &Path, route: Route, options: &Options) -> Result<Compiled, Fault> {
    let refused = |reason: String| failure::compile(route, 1, &compiler_text(""), reason);
    let (chip, foreign) = chip(options).map_err(refused)?;
    let body = aneforge_native::net::read(folder).map_err(|error| refused(error.to_string()))?;
    let body = rules::check_body(&Setting::new(chip, route), body)?;
    let mut main = ports(&body, padded).map_err(refused)?;
    main.name = "main".to_string();
    let programs = vec![Arc::new(Program::from_body("net.plist", body))];
    Ok(Compiled { functions: vec![main], programs, route, chip, foreign })
}

fn read(file: &Path) -> Result<String, String> {
    let at = |problem: String| format!("{}: {problem}", file.display());
    let length = std::fs::metadata(file).map_err(|error| at(error.to_string()))?.len();
    if length > MAX_TEXT {
        return Err(at(format!("it has {length} bytes, the limit is {MAX_TEXT}")));
    }
    std::fs::read_to_string(file).map_err(|error| at(error.to_string()))
}

fn ports(
    body: &Body,
    port: impl Fn(&str, &aneforge_mil::TensorType) -> Option<crate::interface::Port>,
) -> Result<Function, String> {
    let known = |name: &str, ty: &aneforge_mil::TensorType| {
        port(name, ty).ok_or_else(|| format!("Unsupported function output dtype {}: port {name:?}", ty.dtype.keyword()))
    };
    let inputs = body.inputs.iter().map(|&id| known(&body.value(id).name, body.ty(id))).collect::<Result<_, _>>()?;
    let outputs = body.outputs.iter().map(|output| known(&output.name, body.ty(output.value))).collect::<Result<_, _>>()?;
    Ok(Function { name: body.name.clone(), inputs, outputs })
}
