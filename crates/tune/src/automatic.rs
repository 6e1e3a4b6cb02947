//! The smallest format for each weight that the results allow.

use crate::layer::{Activations, Layer};
use crate::quality::{Quality, compare, outputs};
use crate::{Calibration, TuneError};
use aneforge_compile::compress::{
    CompressError, CompressedWeight, Encoded, Format, Slot, Streaming, WEIGHT_THRESHOLD, apply, encode, read, slots,
};
use aneforge_core::Target;
use aneforge_mil::Body;
use aneforge_runtime::Device;
use half::f16;
use std::collections::HashMap;

/// What [`automatic`] chose.
#[derive(Debug)]
pub struct Automatic {
    /// The program with its weights in the chosen formats.
    pub body: Body,
    /// What became of each weight, and why.
    pub weights: Vec<CompressedWeight>,
    /// Agreement with the uncompressed program on the samples.
    pub quality: Quality,
    /// Programs that were run to find it.
    pub evaluations: usize,
}

/// Formats that are tried, where the target streams them.
const CANDIDATES: &[&str] = &["sparse", "palette4", "palette4-group16", "int4-block32", "palette6", "int8"];

/// A weight with what each candidate makes of its layer, smallest first.
struct Weighed {
    slot: Slot,
    values: Vec<f16>,
    candidates: Vec<(Encoded, f64)>,
}

impl Weighed {
    /// The smallest candidate whose layer error is within a limit.
    fn within(&self, limit: f64) -> Option<&(Encoded, f64)> {
        self.candidates.iter().find(|(_, error)| *error <= limit)
    }
}

/// Chooses for each large weight the smallest format that `target` reads compressed and that keeps the program's outputs.
///
/// Every candidate is measured on its layer alone, with what the layer receives in the uncompressed program. One limit on that error
/// then decides for all weights; it is as large as the lowest cosine of an output, measured with all choices in place, stays at
/// least `cosine`. Samples that are not like the real inputs give choices that are not fit for them.
///
/// # Errors
/// [`TuneError`]; [`CompressError::Target`] for targets without compressed weights.
pub fn automatic(
    body: &Body,
    target: &Target,
    calibration: &Calibration,
    cosine: f64,
    device: &dyn Device,
) -> Result<Automatic, TuneError> {
    if !(0.0..=1.0).contains(&cosine) {
        return Err(TuneError::Calibration { problem: format!("the lowest cosine must be from 0 to 1, got {cosine}") });
    }
    let formats: Vec<Format> = CANDIDATES.iter().filter_map(|name| name.parse().ok()).collect();
    if let Some(format) = formats.iter().find(|format| format.streaming(target) == Streaming::Refused) {
        return Err(CompressError::Target { target: target.to_string(), format: format.to_string() }.into());
    }
    let formats: Vec<Format> = formats.into_iter().filter(|format| format.streaming(target) == Streaming::Streams).collect();
    let wanted = outputs(body, calibration, device)?;
    let slots = slots(body, WEIGHT_THRESHOLD);
    let activations = Activations::capture(body, &slots, calibration, device)?;
    let mut weighed = Vec::with_capacity(slots.len());
    for slot in slots {
        weighed.push(weigh(body, slot, &formats, &activations, device)?);
    }
    // Every limit at which a choice changes; the largest that holds is found by halving. Errors of layers do not add up exactly,
    // so what holds is measured, never inferred.
    let mut limits: Vec<f64> = weighed.iter().flat_map(|weight| weight.candidates.iter().map(|(_, error)| *error)).collect();
    limits.sort_by(f64::total_cmp);
    limits.dedup();
    let (mut low, mut high) = (0, limits.len());
    let mut best = (None, Quality::SAME);
    let mut evaluations = 0;
    while low < high {
        let middle = low.midpoint(high);
        let changed = apply(body, &choice(&weighed, limits[middle]))?;
        let quality = compare(&changed, &wanted, calibration, device)?;
        evaluations += 1;
        if quality.cosine >= cosine {
            best = (Some(limits[middle]), quality);
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let limit = best.0.unwrap_or(-1.0);
    let weights = weighed.iter().map(|weight| explain(body, weight, limit, cosine)).collect();
    Ok(Automatic { body: apply(body, &choice(&weighed, limit))?, weights, quality: best.1, evaluations })
}

fn weigh(
    body: &Body,
    slot: Slot,
    formats: &[Format],
    activations: &Activations,
    device: &dyn Device,
) -> Result<Weighed, TuneError> {
    let values = read(body, &slot)?;
    let importance = activations.importance(body, &slot);
    let layer = Layer::new(body, &slot, &values, activations, device)?;
    let mut candidates = Vec::new();
    for &format in formats {
        match encode(body, &slot, &values, format, importance.as_deref()) {
            Ok(encoded) => {
                let error = match &layer {
                    Some(layer) => layer.error(&encoded.dense, device)?,
                    None => encoded.relative_error(&values),
                };
                candidates.push((encoded, error));
            }
            // A format that cannot hold the weight is no candidate.
            Err(CompressError::Rule { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    candidates.retain(|(encoded, error)| error.is_finite() && encoded.bytes() < values.len() * 2);
    candidates.sort_by_key(|(encoded, _)| encoded.bytes());
    drop(layer);
    Ok(Weighed { slot, values, candidates })
}

fn choice(weighed: &[Weighed], limit: f64) -> HashMap<aneforge_mil::ValueId, Encoded> {
    let chosen = |weight: &Weighed| weight.within(limit).map(|(encoded, _)| (weight.slot.value, encoded.clone()));
    weighed.iter().filter_map(chosen).collect()
}

fn explain(body: &Body, weight: &Weighed, limit: f64, cosine: f64) -> CompressedWeight {
    let mut row = CompressedWeight::left(body, &weight.slot);
    let chosen = weight.within(limit);
    if let Some((encoded, _)) = chosen {
        row.becomes(encoded, &weight.values);
    }
    let smaller =
        weight.candidates.iter().take_while(|(encoded, _)| chosen.is_none_or(|(chosen, _)| encoded.format != chosen.format));
    let mut parts: Vec<String> = chosen.iter().map(|(_, error)| format!("layer error {error:.1e}")).collect();
    parts.extend(smaller.map(|(encoded, error)| format!("{} would lose {error:.1e}", encoded.format)));
    if weight.candidates.is_empty() {
        parts.push("no format that the target reads compressed makes it smaller".to_string());
    } else if limit < 0.0 {
        parts.push(format!("no choice keeps a cosine of {cosine}"));
    } else {
        parts.push(format!("limit {limit:.1e} keeps a cosine of {cosine}"));
    }
    row.reason = parts.join("; ");
    row
}
