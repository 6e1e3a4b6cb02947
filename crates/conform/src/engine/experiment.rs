//! Experiments on questions that no public source answers. Each may hang, end the process or leave the system's daemon in a state
//! that takes a restart, so each runs alone, in a process of its own with a time limit, and only when somebody asked for it.

use super::bench::{BYTES, Bench, QUALITY, SURFACE, is_times, sum, words};
use super::weights;
use aneforge_mil::EmitOptions;
use aneforge_sys::Source;
use aneforge_sys::ane::{PerformanceStats, Request};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An experiment before it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Experiment {
    /// Number on the command line.
    pub number: u32,
    /// What it asks.
    pub question: &'static str,
    /// What is known to have gone wrong for others, or may.
    pub risks: &'static str,
    /// Why this version cannot run it.
    pub not_run: Option<&'static str>,
}

const fn experiment(number: u32, question: &'static str, risks: &'static str) -> Experiment {
    Experiment { number, question, risks, not_run: None }
}

/// All of them.
pub static EXPERIMENTS: [Experiment; 9] = [
    experiment(
        1,
        "does the limit of about 119 compilations vanish where models are compiled through the client?",
        "300 compilations in one process; past the limit compilations fail without a word (maderix/ANE) and may go on failing for some time",
    ),
    experiment(
        2,
        "in which order does the engine list the symbols of inputs whose names are not sorted?",
        "surfaces at wrong symbols give wrong answers in silence (Orion, arXiv 2603.06728); nothing is overwritten outside of them",
    ),
    experiment(
        3,
        "are weights that are overwritten in place used after a load, and those that are replaced not?",
        "the daemon maps the files that are overwritten",
    ),
    experiment(
        4,
        "which sizes of surfaces does the engine take: small, unequal, ascending, descending?",
        "evaluations fail with status 0x1d (Orion; Espresso), which others saw without lasting harm",
    ),
    experiment(
        5,
        "when does a completion handler run, and through which call?",
        "a handler that never runs leaves the call waiting: the time limit ends it",
    ),
    experiment(
        6,
        "does the engine give back its own time or its counters?",
        "a statistics mask makes loading fail on some systems (ANE guide, arXiv 2606.22283, chapter 33)",
    ),
    experiment(
        7,
        "may the procedures of one program have weights of their own?",
        "a wrong symbol index gives error 0x2 (ane-infer)",
    ),
    experiment(
        8,
        "does the engine read the element codes of int8 and int4 weights in a weight file?",
        "a compiler that trusts codes may read wrong bytes of the file; sizes stay right, so none beyond it",
    ),
    Experiment {
        number: 9,
        question: "does buffersReady succeed after a chain was prepared?",
        risks: "chains hung or were refused for everybody who tried (Espresso, ane-infer)",
        not_run: Some("this version has none of the calls of chains"),
    },
];

/// The experiment of a number.
pub fn find(number: u32) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.number == number)
}

/// Runs one, in this process. What it finds is data, refusals included.
///
/// # Errors
/// Why it could not be begun, in words.
pub fn run(number: u32, source: &Source) -> Result<Value, String> {
    let experiment = find(number).ok_or_else(|| format!("there is no experiment {number}; they are 1 to {}", EXPERIMENTS.len()))?;
    if let Some(reason) = experiment.not_run {
        return Err(format!("experiment {number} is not run: {reason}"));
    }
    let bench = Bench::open(source)?;
    match number {
        1 => compilations(&bench),
        2 => symbols(&bench),
        3 => weights::replaced(&bench),
        4 => sizes(&bench),
        5 => completion(&bench),
        7 => weights::procedures(&bench),
        8 => weights::codes(&bench),
        _ => statistics(&bench),
    }
}

fn doubles() -> Result<String, String> {
    sum(&["x"], &EmitOptions::default())
}

fn compilations(bench: &Bench) -> Result<Value, String> {
    const MOST: usize = 300;
    for index in 0..MOST {
        // Names make programs differ.
        let name = format!("x{index}");
        let text = sum(&[&name], &EmitOptions::default())?;
        if let Err(problem) = bench.model(&name, &text) {
            return Ok(json!({ "compiled": index, "of": MOST, "then": problem }));
        }
    }
    Ok(json!({ "compiled": MOST, "of": MOST }))
}

fn symbols(bench: &Bench) -> Result<Value, String> {
    let names = ["z", "a", "m"];
    let model = bench.model("order", &sum(&names, &EmitOptions::default())?)?;
    let attributes = model.attributes().map_err(words)?;
    let description = attributes.get("ANEFModelDescription");
    let list = |key: &str| -> Vec<String> {
        let found = description.and_then(|description| description.get(key));
        found.map_or_else(Vec::new, |value| value.list().iter().filter_map(|symbol| symbol.text().map(str::to_string)).collect())
    };
    Ok(json!({
        "declared": names,
        "input_symbols": list("InputSymbols"),
        "output_symbols": list("OutputSymbols"),
        "input_indices": model.input_symbols(0).map_err(words)?,
        "output_indices": model.output_symbols(0).map_err(words)?,
    }))
}

fn sizes(bench: &Bench) -> Result<Value, String> {
    let mut model = bench.model("sizes", &sum(&["a", "b"], &EmitOptions::default())?)?;
    let cases: [(&str, [usize; 3]); 6] = [
        ("as reported to work", [SURFACE; 3]),
        ("exactly the tensors", [BYTES; 3]),
        ("one page", [16384; 3]),
        ("inputs ascending", [SURFACE, 2 * SURFACE, SURFACE]),
        ("inputs descending", [2 * SURFACE, SURFACE, SURFACE]),
        ("a larger output", [SURFACE, SURFACE, 2 * SURFACE]),
    ];
    let mut all = Vec::new();
    for (name, [a, b, to]) in cases {
        let tried = (|| {
            let (a, b, to) = (bench.surface(a)?, bench.surface(b)?, bench.surface(to)?);
            let mut request = bench.request(&model, &[&a, &b], &to)?;
            bench.client.evaluate(&mut model, &mut request, QUALITY).map_err(words)?;
            Ok::<bool, String>(is_times(&bench.read(&to)?, 2.0))
        })();
        let outcome = match tried {
            Ok(true) => "right answer".to_string(),
            Ok(false) => "a wrong answer".to_string(),
            Err(problem) => problem,
        };
        all.push(json!({ "case": name, "bytes": [a, b, to], "outcome": outcome }));
    }
    Ok(json!(all))
}

fn completion(bench: &Bench) -> Result<Value, String> {
    let mut model = bench.model("completion", &doubles()?)?;
    let (from, to) = (bench.surface(SURFACE)?, bench.surface(SURFACE)?);
    let mut all = Vec::new();
    for direct in [false, true] {
        let calls = Arc::new(AtomicUsize::new(0));
        let mut request = bench.request(&model, &[&from], &to)?;
        let counted = calls.clone();
        let work = move || {
            counted.fetch_add(1, Ordering::SeqCst);
        };
        request.set_completion(Box::new(work)).map_err(words)?;
        let outcome = match direct {
            false => bench.client.evaluate(&mut model, &mut request, QUALITY),
            true => bench.client.evaluate_directly(&mut model, &mut request, QUALITY),
        };
        let at_return = calls.load(Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(200));
        let outcome = outcome.map_or_else(words, |()| "ok".to_string());
        let later = calls.load(Ordering::SeqCst);
        all.push(json!({ "direct": direct, "outcome": outcome, "handler_runs_at_return": at_return, "handler_runs_later": later }));
    }
    Ok(json!(all))
}

fn statistics(bench: &Bench) -> Result<Value, String> {
    let mut model = bench.model("statistics", &doubles()?)?;
    let mut all = Vec::new();
    for mask in [0_u32, 1, 2, 4, 8, 15] {
        let tried = (|| {
            model.set_performance_mask(mask).map_err(words)?;
            let stats = PerformanceStats::new(&bench.engine).map_err(words)?;
            let (from, to) = (bench.surface(SURFACE)?, bench.surface(SURFACE)?);
            let (inputs, outputs) = (model.input_symbols(0).map_err(words)?, model.output_symbols(0).map_err(words)?);
            let inputs: Vec<_> = inputs.into_iter().zip([&from]).collect();
            let outputs: Vec<_> = outputs.into_iter().zip([&to]).collect();
            let mut request = Request::with_extras(&bench.engine, &inputs, &outputs, 0, None, Some(&stats)).map_err(words)?;
            bench.client.evaluate(&mut model, &mut request, QUALITY).map_err(words)?;
            request.hardware_nanoseconds().map_err(words)
        })();
        all.push(match tried {
            Ok(time) => json!({ "mask": mask, "hardware_nanoseconds": time }),
            Err(problem) => json!({ "mask": mask, "problem": problem }),
        });
    }
    Ok(json!(all))
}
