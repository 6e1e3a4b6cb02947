//! Which passes there are, in which order they run, and what is checked between them.

use crate::legalise::{self, in_memory};
use crate::pass::{Context, Pass};
use crate::{CompileError, Notes, canonicalise, fuse};
use aneforge_mil::Body;
use std::time::{Duration, Instant};

/// All passes, by name within their stage; [`ordered`] says when each runs.
pub const PASSES: &[Pass] = &[
    canonicalise::FOLD,
    canonicalise::IDENTITY,
    canonicalise::DUPLICATE,
    fuse::GROUPED_HEADS,
    fuse::QUERY_TILES,
    fuse::ATTENTION_OPERATOR,
    fuse::NATIVE_NORMS,
    fuse::LENGTH_NORMS,
    fuse::SCALE_FOLDING,
    fuse::SUM_BY_PRODUCT,
    fuse::CHANNELS_FIRST,
    legalise::SINE,
    legalise::ROUND,
    legalise::SOFTPLUS,
    legalise::SQUARE,
    legalise::ZERO_PRODUCT,
    legalise::SCALAR_AFTER_ROUNDING,
    legalise::LAYER_NORM_AFFINE,
    legalise::BATCHED_WEIGHT,
    legalise::BLOCKWISE_WEIGHT,
    in_memory::DENSE_WEIGHTS,
    in_memory::CONVOLUTION_BIAS,
    in_memory::LINEAR,
    in_memory::GELU,
    in_memory::SILU,
    in_memory::ATTENTION,
    in_memory::SOFTMAX,
    in_memory::LAYER_NORM,
    in_memory::MEAN,
    in_memory::RECIPROCAL_ROOT,
    in_memory::INVERSE,
    in_memory::QUOTIENT,
    in_memory::CONCAT,
    in_memory::SLICE,
    in_memory::INNER_EXTENT,
    legalise::MADE_OUTPUTS,
    canonicalise::DEAD,
];

/// Time that one pass took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The pass.
    pub pass: &'static str,
    /// Wall time.
    pub time: Duration,
}

/// The passes in the order in which they run: by stage, then as `after` asks, then as the list has them.
///
/// # Errors
/// [`CompileError::Passes`] where `after` names no pass of the stage or goes in a circle.
pub fn ordered(passes: &'static [Pass]) -> Result<Vec<&'static Pass>, CompileError> {
    let mut waiting: Vec<&'static Pass> = passes.iter().collect();
    waiting.sort_by_key(|pass| pass.stage);
    let mut done: Vec<&'static Pass> = Vec::with_capacity(waiting.len());
    for pass in &waiting {
        if let Some(unknown) = pass.after.iter().find(|name| !passes.iter().any(|p| p.name == **name && p.stage == pass.stage)) {
            return Err(CompileError::Passes(format!(
                "pass {} wants to run after {unknown}, which its stage does not have",
                pass.name
            )));
        }
    }
    while !waiting.is_empty() {
        let ready = waiting.iter().position(|pass| {
            let earlier_stages_done = waiting.iter().all(|other| other.stage >= pass.stage);
            earlier_stages_done && pass.after.iter().all(|name| done.iter().any(|p| p.name == *name))
        });
        match ready {
            Some(index) => done.push(waiting.remove(index)),
            None => {
                let names: Vec<_> = waiting.iter().map(|pass| pass.name).collect();
                return Err(CompileError::Passes(format!("passes wait for each other: {}", names.join(", "))));
            }
        }
    }
    Ok(done)
}

/// Runs every pass that the target needs. Debug builds check the body after each.
///
/// # Errors
/// What a pass reports, and [`CompileError::Pass`] where one leaves an illegal body.
pub fn run(mut body: Body, context: &Context<'_>, notes: &mut Notes) -> Result<(Body, Vec<Timing>), CompileError> {
    let mut timings = Vec::with_capacity(PASSES.len());
    for pass in ordered(PASSES)? {
        if !context.runs(pass) {
            continue;
        }
        let start = Instant::now();
        body = run_one(pass, body, context, notes)?;
        timings.push(Timing { pass: pass.name, time: start.elapsed() });
    }
    legalise::check_limits(&body, context.target)?;
    Ok((body, timings))
}

/// Runs one pass and, in debug builds, checks what it leaves.
///
/// # Errors
/// As [`run`].
pub fn run_one(pass: &Pass, body: Body, context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    notes.begin(pass.name);
    let body = (pass.run)(body, context, notes)?;
    if cfg!(debug_assertions) {
        body.verify().map_err(|source| CompileError::Pass { pass: pass.name, source })?;
    }
    Ok(body)
}
