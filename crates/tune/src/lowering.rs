//! The fastest of the equivalent ways to compile a program.

use crate::store::{Chosen, Store, key};
use crate::trial::{Candidate, Trial, compile_all, judge, time};
use crate::variant::{Variant, lowerings};
use crate::{Calibration, TuneError, quality};
use aneforge_compile::{CompileOptions, Compiled, compile_body};
use aneforge_mil::Body;
use aneforge_runtime::Device;

/// How far tuning goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneOptions {
    /// Most programs that are run, the usual one counted.
    pub budget: usize,
    /// Largest norm of a difference over the norm of the outputs that a program may have.
    pub gate: f64,
    /// Programs whose estimate is that many times the best one's are not run.
    pub prune: f64,
    /// Calls that are timed; the least time counts.
    pub calls: usize,
    /// How many times as fast a program must be whose results differ from the usual one's.
    pub least_gain: f64,
}

impl Default for TuneOptions {
    fn default() -> Self {
        Self { budget: 8, gate: 5e-3, prune: 1.5, calls: 20, least_gain: 1.1 }
    }
}

/// What tuning chose.
#[derive(Debug)]
pub struct Tuned {
    /// The program.
    pub compiled: Compiled,
    /// How it was compiled.
    pub variant: Variant,
    /// All ways that were looked at, the chosen one first.
    pub trials: Vec<Trial>,
    /// Whether an earlier run had chosen.
    pub from_store: bool,
}

/// Devices that tuning works with.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// Runs programs to compare results.
    pub judge: &'a dyn Device,
    /// Times them; without one the cost model alone ranks.
    pub timer: Option<&'a dyn Device>,
}

/// Compiles a program in every way that the rewrites allow, ranks them by the cost model, runs the best, times them where there is a device
/// to time on, and gives the fastest whose results are near enough to the usual program's. What was chosen is kept in `store` for the
/// same program, target, device, system and version.
///
/// # Errors
/// What compiling or running the usual program reports; other ways that fail are trials that say so.
pub fn tune(
    body: &Body,
    options: &CompileOptions,
    limits: &TuneOptions,
    calibration: &Calibration,
    bench: Bench<'_>,
    store: Option<&Store>,
) -> Result<Tuned, TuneError> {
    let variants = lowerings(options);
    let key = store.map(|_| key(body, options, limits, calibration, bench)).transpose()?;
    if let (Some(store), Some(key)) = (store, &key)
        && let Some(Chosen { name, trials }) = store.read(key)
        && let Some(variant) = variants.iter().find(|variant| variant.name == name)
    {
        let compiled = compile_body(body.clone(), &variant.applied(options))?;
        return Ok(Tuned { compiled, variant: variant.clone(), trials, from_store: true });
    }
    let (candidates, refused) = compile_all(body, options, variants)?;
    let tuned = fastest(candidates, refused, limits, calibration, bench)?;
    if let (Some(store), Some(key)) = (store, &key) {
        store.write(key, &Chosen { name: tuned.variant.name.clone(), trials: tuned.trials.clone() })?;
    }
    Ok(tuned)
}

/// Runs the candidates that are worth it and gives the fastest; the first is the usual way.
pub(crate) fn fastest(
    mut candidates: Vec<Candidate>,
    refused: Vec<Trial>,
    limits: &TuneOptions,
    calibration: &Calibration,
    bench: Bench<'_>,
) -> Result<Tuned, TuneError> {
    let usual = candidates.first().ok_or(TuneError::Empty)?;
    let program = crate::trial::load(&usual.compiled, bench.judge)?;
    let wanted = quality::outputs_loaded(&program, calibration)?;
    let best = candidates.iter().filter_map(|candidate| candidate.trial.estimated_ms).fold(f64::INFINITY, f64::min);
    // Sorting keeps the order of those without an estimate; the usual way stays in front.
    candidates[1..].sort_by(|a, b| {
        let value = |candidate: &Candidate| candidate.trial.estimated_ms.unwrap_or(0.0);
        value(a).total_cmp(&value(b))
    });
    for (place, candidate) in candidates.iter_mut().enumerate() {
        let estimate = candidate.trial.estimated_ms;
        if place > 0 && estimate.is_some_and(|estimate| estimate > best * limits.prune) {
            candidate.trial.outcome = format!("not run: estimated above {} times the best", limits.prune);
            continue;
        }
        if place >= limits.budget.max(1) {
            candidate.trial.outcome = "not run: the budget was used up".to_string();
            continue;
        }
        let tried = judge(candidate, &wanted, calibration, bench.judge).and_then(|quality| {
            if quality.relative_error > limits.gate {
                candidate.trial.outcome =
                    format!("results differ by {:.2e}, more than {:.2e} is allowed", quality.relative_error, limits.gate);
                candidate.quality = None;
            } else if let Some(timer) = bench.timer {
                time(candidate, calibration, timer, limits.calls)?;
            }
            Ok(())
        });
        match tried {
            Err(error) if place == 0 => return Err(error),
            Err(error) => {
                candidate.trial.outcome = format!("cannot be run: {error}");
                candidate.quality = None;
            }
            Ok(()) => {}
        }
    }
    Ok(chosen(candidates, refused, limits))
}

fn chosen(mut candidates: Vec<Candidate>, refused: Vec<Trial>, limits: &TuneOptions) -> Tuned {
    let usual_ms = candidates[0].milliseconds();
    let gain = |candidate: &Candidate| match (usual_ms, candidate.milliseconds()) {
        (Some(usual), Some(own)) if own > 0.0 => usual / own,
        _ => 1.0,
    };
    let (mut place, mut most) = (0, 1.0);
    for (at, candidate) in candidates.iter_mut().enumerate().skip(1) {
        let Some(quality) = candidate.quality else { continue };
        let gained = gain(candidate);
        let asked = if quality.relative_error > 0.0 { limits.least_gain } else { 1.0 };
        candidate.trial.outcome = match gained {
            _ if usual_ms.is_none() => "nothing to compare by: the target is no chip and no device measures".to_string(),
            gained if gained <= 1.0 => "not faster than as usual".to_string(),
            gained if gained < asked => format!("{gained:.2} times as fast, less than {asked} for results that differ"),
            gained => format!("{gained:.2} times as fast as usual"),
        };
        if gained > most && gained >= asked {
            (place, most) = (at, gained);
        }
    }
    if candidates[0].trial.outcome.is_empty() {
        candidates[0].trial.outcome = "what the others are compared with".to_string();
    }
    let best = candidates.remove(place);
    let mut trial = best.trial;
    trial.outcome = if place == 0 { format!("chosen; {}", trial.outcome) } else { format!("chosen: {}", trial.outcome) };
    let rest = candidates.into_iter().map(|candidate| candidate.trial);
    let trials = std::iter::once(trial).chain(rest).chain(refused).collect();
    Tuned { compiled: best.compiled, variant: best.variant, trials, from_store: false }
}
