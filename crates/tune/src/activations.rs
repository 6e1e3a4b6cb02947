//! Eight bits between layers too: what products receive is quantised, with ranges seen on samples.

use crate::layer::Activations;
use crate::quality::{Quality, compare, outputs};
use crate::{Calibration, TuneError};
use aneforge_compile::compress::{CompressedWeight, Format, WEIGHT_THRESHOLD, compress, slots};
use aneforge_compile::{CompileError, Notes, rewrite};
use aneforge_core::DType;
use aneforge_mil::{Body, Operand, ValueId};
use aneforge_runtime::Device;
use std::collections::HashMap;

/// What [`quantise_activations`] made.
#[derive(Debug)]
pub struct Quantised {
    /// The program.
    pub body: Body,
    /// What became of each weight.
    pub weights: Vec<CompressedWeight>,
    /// Scales of the quantised activations by SSA name.
    pub scales: Vec<(String, f64)>,
    /// Agreement with the original on the samples.
    pub quality: Quality,
}

/// Weights as int8 with a scale per channel, and `quantize` and `dequantize` of int8 with one scale before every product that reads
/// such a weight, in the form that coremltools gives networks with quantised activations.
///
/// The scale of an activation is its largest magnitude on the samples over 127, so larger values of other inputs are cut off there.
/// The arithmetic is that of `quantize` and `dequantize`; how an engine fuses the two is not published: devices label it modelled.
///
/// # Errors
/// [`TuneError`].
pub fn quantise_activations(body: &Body, calibration: &Calibration, device: &dyn Device) -> Result<Quantised, TuneError> {
    let wanted = outputs(body, calibration, device)?;
    let slots: Vec<_> = slots(body, WEIGHT_THRESHOLD).into_iter().filter(|slot| slot.op != "gather").collect();
    let activations = Activations::capture(body, &slots, calibration, device)?;
    let weights: Vec<ValueId> = slots.iter().map(|slot| slot.value).collect();
    let mut made: HashMap<ValueId, ValueId> = HashMap::new();
    let mut scales = Vec::new();
    let quantised = rewrite(body, |rewriter, operation| {
        let ids = || operation.arguments.iter().flat_map(Operand::values).copied();
        if !ids().any(|id| weights.contains(&id)) || operation.op.name == "gather" {
            return Ok(false);
        }
        let received: Vec<ValueId> = ids().filter(|&id| body.constant(id).is_none() && body.ty(id).dtype == DType::Fp16).collect();
        let mut before = Vec::with_capacity(received.len());
        for id in received {
            let Some(largest) = activations.largest(id).filter(|&largest| largest > 0.0) else { continue };
            let old = rewriter.value(id)?;
            let new = match made.get(&id) {
                Some(&new) => new,
                None => {
                    let name = rewriter.name(id);
                    // fp16 holds the scale; above its least normal number it is exact enough.
                    let scale = half::f16::from_f32((largest / 127.0).max(6.2e-5)).to_f64();
                    let builder = rewriter.builder();
                    let step = builder.scalar(DType::Fp16, scale);
                    let int8 = builder.text("int8");
                    let given = [("input", old.into()), ("scale", step.into()), ("output_dtype", int8.into())];
                    let codes = builder.op_named("quantize", &given, &format!("{name}_q"))?;
                    let new = builder.op_named(
                        "dequantize",
                        &[("input", codes.into()), ("scale", step.into())],
                        &format!("{name}_dq"),
                    )?;
                    scales.push((name.to_string(), scale));
                    made.insert(id, new);
                    new
                }
            };
            rewriter.replace(id, new);
            before.push((id, old));
        }
        rewriter.copy(operation)?;
        before.into_iter().for_each(|(id, old)| rewriter.replace(id, old));
        Ok::<bool, CompileError>(true)
    })?;
    let (body, weights) = compress(&quantised, Format::Int8 { symmetric: true }, WEIGHT_THRESHOLD, &mut Notes::default())?;
    let quality = compare(&body, &wanted, calibration, device)?;
    Ok(Quantised { body, weights, scales, quality })
}
