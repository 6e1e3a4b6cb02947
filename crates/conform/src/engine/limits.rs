//! Limits that an engine can be asked for without going over one: which surfaces it takes, how many programs stay loaded together.

use super::bench::{self, BYTES, Bench, QUALITY, SURFACE, is_times, words};
use super::{Outcome, RIGHT, judged};
use aneforge_mil::EmitOptions;
use aneforge_runtime::ane::{Ane, AneOptions, AneRoute, CachePlace};
use aneforge_runtime::{Device, Executable, Program};
use aneforge_sys::Source;
use std::sync::Arc;

/// Sizes of surfaces at two inputs and an output: those that the device makes, then two that some sources saw work and others saw fail
/// with an error (Orion, arXiv 2603.06728; maderix/ANE). Orders of sizes that gave wrong answers in silence are left to experiment 4.
const SIZES: [(&str, [usize; 3]); 3] = [
    ("equal, 49152 bytes", [SURFACE; 3]),
    ("equal, no larger than the tensors", [BYTES; 3]),
    ("unequal, ascending", [SURFACE, 2 * SURFACE, SURFACE]),
];

/// What the client makes of surfaces of these sizes.
pub(super) fn surfaces(source: &Source) -> Vec<Outcome> {
    let outcome = |what: &str, outcome: String| Outcome { what: what.to_string(), outcome };
    let opened = Bench::open(source).and_then(|bench| {
        let model = bench.model("surfaces", &bench::sum(&["a", "b"], &EmitOptions::default())?)?;
        Ok((bench, model))
    });
    let (bench, mut model) = match opened {
        Ok(opened) => opened,
        Err(problem) => return SIZES.iter().map(|(what, _)| outcome(what, problem.clone())).collect(),
    };
    let mut tried = |[a, b, to]: [usize; 3]| {
        let (a, b, to) = (bench.surface(a)?, bench.surface(b)?, bench.surface(to)?);
        let mut request = bench.request(&model, &[&a, &b], &to)?;
        bench.client.evaluate(&mut model, &mut request, QUALITY).map_err(words)?;
        Ok(is_times(&bench.read(&to)?, 2.0))
    };
    SIZES.iter().map(|(what, sizes)| outcome(what, judged(tried(*sizes)))).collect()
}

/// Whether as many programs as the device keeps loaded can be, through e5rt, and still give right answers.
pub(super) fn together(source: &Source, most: usize) -> Outcome {
    let what = format!("{most} programs loaded together");
    let mut loaded: Vec<Arc<dyn Executable>> = Vec::with_capacity(most);
    let outcome = match load(source, most, &mut loaded) {
        Ok(()) => RIGHT.to_string(),
        Err(problem) => format!("{} were, then: {problem}", loaded.len()),
    };
    Outcome { what, outcome }
}

fn load(source: &Source, most: usize, loaded: &mut Vec<Arc<dyn Executable>>) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(|error| text(&error))?;
    let cache = CachePlace::Folder(folder.path().join("cache"));
    let options =
        AneOptions { source: source.clone(), route: AneRoute::E5rt, cache, loaded_programs: most, ..AneOptions::default() };
    let device = Ane::open(options).map_err(|error| text(&error))?;
    let before = device.usage().evicted;
    for index in 0..most {
        let place = folder.path().join(index.to_string());
        // Names make programs differ.
        bench::write(&place, &bench::sum(&[&format!("x{index}")], &EmitOptions::default())?)?;
        let program = Arc::new(Program::open(&place).map_err(|error| text(&error))?);
        loaded.push(device.load(&program).map_err(|error| text(&error))?);
    }
    for executable in loaded.iter() {
        let mut out = vec![0; BYTES];
        executable.execute(&[&bench::input()], &mut [&mut out]).map_err(|error| text(&error))?;
        if !is_times(&out, 2.0) {
            return Err("a wrong answer".to_string());
        }
    }
    match device.usage().evicted - before {
        0 => Ok(()),
        left => Err(format!("{left} had to leave for others")),
    }
}
