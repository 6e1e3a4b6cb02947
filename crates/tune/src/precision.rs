//! Speed against exactness.

use crate::lowering::{Bench, TuneOptions, Tuned};
use crate::trial::{Candidate, compile_all, judge, time};
use crate::variant::Variant;
use crate::{Calibration, TuneError, quality};
use aneforge_compile::compress::Format;
use aneforge_compile::{CompileOptions, Rewrite};
use aneforge_mil::Body;
use aneforge_runtime::Device;

/// What is asked of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// The most exact.
    Exact,
    /// The fastest whose relative error is at most this.
    Error(f64),
    /// The most exact that takes at most this many milliseconds.
    Milliseconds(f64),
}

/// Compiles a program with and without the rewrites that change rounding, each with weights as they are and in int8, compares the results of
/// `bench.judge` with those of `exact` (the device `reference`) and gives what is wanted. Where nothing meets the wish, it is the nearest, and
/// its trial says so.
///
/// # Errors
/// What compiling or running the usual program reports.
pub fn tune_precision(
    body: &Body,
    options: &CompileOptions,
    wanted: Wanted,
    limits: &TuneOptions,
    calibration: &Calibration,
    bench: Bench<'_>,
    exact: &dyn Device,
) -> Result<Tuned, TuneError> {
    let usual = Variant::usual(options);
    let with = |name: &str, rewrites: &[Rewrite], format| Variant {
        name: name.to_string(),
        rewrites: rewrites.iter().fold(options.rewrites, |chosen, &rewrite| chosen.with(rewrite, true)),
        format,
    };
    const WIDER: &[Rewrite] = &[Rewrite::SumByProduct, Rewrite::AttentionOperator, Rewrite::NativeNorms];
    let int8 = Some(Format::Int8 { symmetric: true });
    let variants = vec![
        usual,
        with("with sum-by-product", &[Rewrite::SumByProduct], options.compress),
        with("with attention-operator", &[Rewrite::AttentionOperator], options.compress),
        with("with native-norms", &[Rewrite::NativeNorms], options.compress),
        with("with all that round less", WIDER, options.compress),
        with("int8 weights", &[], int8),
        with("int8 weights, with all that round less", WIDER, int8),
    ];
    let (mut candidates, refused) = compile_all(body, options, variants)?;
    let exact = quality::outputs(body, calibration, exact)?;
    for (place, candidate) in candidates.iter_mut().enumerate() {
        let tried = judge(candidate, &exact, calibration, bench.judge).and_then(|_| match bench.timer {
            Some(timer) => time(candidate, calibration, timer, limits.calls).map(|_| ()),
            None => Ok(()),
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
    let error = |candidate: &Candidate| candidate.quality.map_or(f64::INFINITY, |quality| quality.relative_error);
    let time = |candidate: &Candidate| candidate.milliseconds().unwrap_or(f64::INFINITY);
    let meets = |candidate: &Candidate| match wanted {
        Wanted::Exact => true,
        Wanted::Error(most) => error(candidate) <= most,
        Wanted::Milliseconds(most) => time(candidate) <= most,
    };
    let any = candidates.iter().any(meets);
    let rank = |candidate: &Candidate| match (wanted, any) {
        // The fastest that is exact enough, or the fastest at all where none is fast enough.
        (Wanted::Error(_), true) | (Wanted::Milliseconds(_), false) => [time(candidate), error(candidate)],
        _ => [error(candidate), time(candidate)],
    };
    let best = |at: &usize, other: &usize| {
        let (a, b) = (rank(&candidates[*at]), rank(&candidates[*other]));
        a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
    };
    let eligible = |at: &usize| candidates[*at].quality.is_some() && (!any || meets(&candidates[*at]));
    let place = (0..candidates.len()).filter(eligible).min_by(best).ok_or(TuneError::Empty)?;
    let mut best = candidates.remove(place);
    best.trial.outcome = if any { "chosen".to_string() } else { "chosen: nothing meets the wish, this is the nearest".to_string() };
    let rest = candidates.into_iter().map(|candidate| candidate.trial);
    let trials = std::iter::once(best.trial).chain(rest).chain(refused).collect();
    Ok(Tuned { compiled: best.compiled, variant: best.variant, trials, from_store: false })
}
