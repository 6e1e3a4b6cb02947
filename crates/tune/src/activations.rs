//! Eight bits between layers too: what products receive is quantised, with ranges seen on samples.

use crate::layer::{Activations, channels};
use crate::quality::{Quality, compare, outputs};
use crate::{Calibration, TuneError};
use aneforge_compile::compress::{CompressedWeight, Format, Slot, WEIGHT_THRESHOLD, compress, read, slots};
use aneforge_compile::{CompileError, Notes, rewrite};
use aneforge_core::{DType, TensorType, Weight};
use aneforge_mil::{Body, Operand, ValueId};
use aneforge_runtime::{Device, DeviceError};
use half::f16;
use std::collections::{BTreeMap, HashMap};

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

/// How an activation is quantised.
struct Grid {
    axis: usize,
    /// Factor per channel, a power of two, that the activation is divided by and the weights are multiplied by.
    smoothing: Vec<f32>,
    scale: f16,
    readers: Vec<Slot>,
}

/// Weights as int8 with a scale per channel, and `quantize` and `dequantize` of int8 with one scale before every product that reads
/// such a weight, in the form that coremltools gives networks with quantised activations.
///
/// Channels of very different range would share that one scale badly, so range is moved from activations to weights first: a channel
/// is divided by the square root of its largest magnitude over that of its weights (Xiao et al., "SmoothQuant", arXiv 2211.10438),
/// here rounded to a power of two, which fp16 scales exactly. Values of other inputs beyond the range of the samples are cut off.
/// The arithmetic is that of `quantize` and `dequantize`; how an engine fuses the two is not published: devices label it modelled.
///
/// # Errors
/// [`TuneError`].
pub fn quantise_activations(body: &Body, calibration: &Calibration, device: &dyn Device) -> Result<Quantised, TuneError> {
    let wanted = outputs(body, calibration, device)?;
    let slots: Vec<Slot> = slots(body, WEIGHT_THRESHOLD).into_iter().filter(|slot| slot.op != "gather").collect();
    let activations = Activations::capture(body, &slots, calibration, device)?;
    let grids = grids(body, &slots, &activations)?;
    let smoothed = smoothed(body, &grids)?;
    let mut made: HashMap<ValueId, ValueId> = HashMap::new();
    let mut scales = Vec::new();
    let quantised = rewrite(&smoothed, |rewriter, operation| {
        let ids = || operation.arguments.iter().flat_map(Operand::values).copied();
        let meets = |grid: &Grid| ids().any(|id| grid.readers.iter().any(|slot| slot.value == id));
        let mut before = Vec::new();
        for (id, grid) in ids().filter_map(|id| grids.get(&id).filter(|grid| meets(grid)).map(|grid| (id, grid))) {
            let old = rewriter.value(id)?;
            let new = match made.get(&id) {
                Some(&new) => new,
                None => {
                    let (name, rank) = (rewriter.name(id), rewriter.ty(id).rank());
                    let builder = rewriter.builder();
                    let mut narrowed = old;
                    if grid.smoothing.iter().any(|&factor| factor != 1.0) {
                        let mut shape = vec![1; rank];
                        shape[grid.axis] = grid.smoothing.len();
                        let factors = grid.smoothing.iter().map(|factor| f64::from(factor.recip())).collect();
                        let factors = builder.values(TensorType::new(DType::Fp16, shape), factors);
                        narrowed = builder.op_named("mul", &[("x", old.into()), ("y", factors.into())], &format!("{name}_s"))?;
                    }
                    let step = builder.scalar(DType::Fp16, grid.scale.to_f64());
                    let int8 = builder.text("int8");
                    let given = [("input", narrowed.into()), ("scale", step.into()), ("output_dtype", int8.into())];
                    let codes = builder.op_named("quantize", &given, &format!("{name}_q"))?;
                    let new = builder.op_named(
                        "dequantize",
                        &[("input", codes.into()), ("scale", step.into())],
                        &format!("{name}_dq"),
                    )?;
                    scales.push((name.to_string(), grid.scale.to_f64()));
                    made.insert(id, new);
                    new
                }
            };
            rewriter.replace(id, new);
            before.push((id, old));
        }
        if before.is_empty() {
            return Ok(false);
        }
        rewriter.copy(operation)?;
        before.into_iter().for_each(|(id, old)| rewriter.replace(id, old));
        Ok::<bool, CompileError>(true)
    })?;
    let (body, weights) = compress(&quantised, Format::Int8 { symmetric: true }, WEIGHT_THRESHOLD, &mut Notes::default())?;
    let quality = compare(&body, &wanted, calibration, device)?;
    Ok(Quantised { body, weights, scales, quality })
}

/// A grid for every activation that meets a weight of its own along their channels. Weights that several products read stay out:
/// their factors would have to serve activations that differ.
fn grids(body: &Body, slots: &[Slot], activations: &Activations) -> Result<BTreeMap<ValueId, Grid>, TuneError> {
    let mut grids: BTreeMap<ValueId, Grid> = BTreeMap::new();
    let mut readers: HashMap<ValueId, usize> = HashMap::new();
    for operation in &body.operations {
        operation.arguments.iter().flat_map(Operand::values).for_each(|&id| *readers.entry(id).or_default() += 1);
    }
    for slot in slots.iter().filter(|slot| readers.get(&slot.value) == Some(&1)) {
        if let Some((id, axis)) = channels(body, slot).filter(|(id, _)| body.ty(*id).dtype == DType::Fp16) {
            let grid =
                grids.entry(id).or_insert_with(|| Grid { axis, smoothing: Vec::new(), scale: f16::ONE, readers: Vec::new() });
            if grid.axis == axis {
                grid.readers.push(slot.clone());
            }
        }
    }
    for (&id, grid) in &mut grids {
        let ranges = activations.largest(body, id, grid.axis).unwrap_or_default();
        let mut weights = vec![0f32; ranges.len()];
        for slot in &grid.readers {
            let step: usize = body.ty(slot.value).shape[slot.input_axis + 1..].iter().product();
            for (place, value) in read(body, slot)?.iter().enumerate() {
                let channel = &mut weights[place / step % ranges.len()];
                *channel = channel.max(value.to_f32().abs());
            }
        }
        let factor = |(range, weight): (&f32, &f32)| {
            let wanted = (range / weight).sqrt().log2().round().clamp(-6.0, 6.0);
            if *range > 0.0 && *weight > 0.0 { wanted.exp2() } else { 1.0 }
        };
        grid.smoothing = ranges.iter().zip(&weights).map(factor).collect();
        let largest = ranges.iter().zip(&grid.smoothing).map(|(range, factor)| range / factor).fold(0.0, f32::max);
        // fp16 holds the scale; above its least normal number it is exact enough.
        grid.scale = f16::from_f32((largest / 127.0).max(f16::MIN_POSITIVE.to_f32()));
    }
    Ok(grids)
}

/// The program with the weights that meet smoothed activations multiplied accordingly.
fn smoothed(body: &Body, grids: &BTreeMap<ValueId, Grid>) -> Result<Body, TuneError> {
    let mut body = body.clone();
    for grid in grids.values() {
        for slot in &grid.readers {
            let values = read(&body, slot)?;
            let shape = body.ty(slot.value).shape.clone();
            let step: usize = shape[slot.input_axis + 1..].iter().product();
            let factor = |place: usize| grid.smoothing[place / step % grid.smoothing.len()];
            let scaled: Vec<f16> =
                values.iter().enumerate().map(|(place, value)| f16::from_f32(value.to_f32() * factor(place))).collect();
            let weight = Weight::from_fp16(shape, &scaled).map_err(DeviceError::from)?;
            body.values[slot.value.index()].kind = aneforge_mil::ValueKind::Constant(aneforge_mil::Constant::Weight(weight));
        }
    }
    Ok(body)
}
