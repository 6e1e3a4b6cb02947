//! One operation with its weight, taken out of a program, and what it receives there.

use crate::quality::{Quality, load, run};
use crate::{Calibration, TuneError};
use aneforge_compile::alone;
use aneforge_compile::compress::Slot;
use aneforge_core::{HostArray, Weight};
use aneforge_mil::{Body, Constant, Operand, Operation, Output, ValueId, ValueKind};
use aneforge_runtime::Device;
use half::f16;
use std::collections::{HashMap, HashSet};

/// Samples on which a layer is measured; the program is measured on all.
const LAYER_SAMPLES: usize = 4;

/// What a product receives along the input channels of a weight: the value and its axis. `None` where channels are not the
/// activation's own, as with groups.
pub(crate) fn channels(body: &Body, slot: &Slot) -> Option<(ValueId, usize)> {
    let operation = reader(body, slot)?;
    let port = |name: &str| operation.op.port(name).and_then(|port| operation.arguments[port].values().first().copied());
    let flag = |name: &str| {
        let known = port(name).and_then(|id| body.constant(id).and_then(|constant| constant.to_array(body.ty(id))));
        known.is_some_and(|array| array.data.first() == Some(&1.0))
    };
    let (id, axis) = match operation.op.name {
        "conv" | "conv_transpose" => port("x").map(|id| (id, 1))?,
        "linear" => port("x").map(|id| (id, body.ty(id).rank().wrapping_sub(1)))?,
        "matmul" => {
            let (x, y) = (port("x")?, port("y")?);
            let (id, last) = if y == slot.value { (x, !flag("transpose_x")) } else { (y, flag("transpose_y")) };
            (id, body.ty(id).rank().checked_sub(if last { 1 } else { 2 })?)
        }
        _ => return None,
    };
    let same = body.ty(id).shape.get(axis) == Some(&body.ty(slot.value).shape[slot.input_axis]);
    (same && body.constant(id).is_none()).then_some((id, axis))
}

/// What every layer with a weight receives in the uncompressed program, value by value and sample by sample.
pub(crate) struct Activations(HashMap<ValueId, Vec<HostArray>>);

/// The operation that reads a weight first.
fn reader<'a>(body: &'a Body, slot: &Slot) -> Option<&'a Operation> {
    body.operations.iter().find(|operation| operation.arguments.iter().flat_map(Operand::values).any(|&id| id == slot.value))
}

/// Values that an operation takes from others at run time, in the order of the inputs of [`alone`].
fn received(body: &Body, operation: &Operation) -> Vec<ValueId> {
    let mut ids: Vec<ValueId> = operation.arguments.iter().flat_map(Operand::values).copied().collect();
    ids.retain(|&id| body.constant(id).is_none());
    let mut seen = HashSet::new();
    ids.retain(|&id| seen.insert(id));
    ids
}

impl Activations {
    /// Runs the program with what the layers receive as further outputs.
    pub(crate) fn capture(body: &Body, slots: &[Slot], calibration: &Calibration, device: &dyn Device) -> Result<Self, TuneError> {
        let mut wanted: Vec<ValueId> =
            slots.iter().filter_map(|slot| reader(body, slot)).flat_map(|operation| received(body, operation)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut found: HashMap<ValueId, Vec<HostArray>> = wanted.iter().map(|&id| (id, Vec::new())).collect();
        let computed: Vec<ValueId> =
            wanted.into_iter().filter(|&id| matches!(body.value(id).kind, ValueKind::Result { .. })).collect();
        let mut open = body.clone();
        open.outputs = computed.iter().map(|&value| Output { name: body.value(value).name.clone(), value }).collect();
        let executable = load(&open, device)?;
        for (number, sample) in calibration.samples().iter().take(LAYER_SAMPLES).enumerate() {
            let results = if computed.is_empty() { Vec::new() } else { run(&executable, sample)? };
            let inputs = body.inputs.iter().copied().zip(sample.iter().cloned());
            for (id, array) in computed.iter().copied().zip(results).chain(inputs) {
                if let Some(arrays) = found.get_mut(&id) {
                    if let Some(value) = array.to_f32().into_iter().find(|value| !value.is_finite()) {
                        return Err(TuneError::NotFinite { value_name: body.value(id).name.clone(), sample: number, value });
                    }
                    arrays.push(array);
                }
            }
        }
        Ok(Self(found))
    }

    /// The largest magnitude in each channel along an axis of a value.
    pub(crate) fn largest(&self, body: &Body, id: ValueId, axis: usize) -> Option<Vec<f32>> {
        let shape = &body.ty(id).shape;
        let step: usize = shape[axis + 1..].iter().product();
        let mut largest = vec![0f32; shape[axis]];
        for array in self.0.get(&id)? {
            for (place, value) in array.to_f32().into_iter().enumerate() {
                let channel = &mut largest[place / step % shape[axis]];
                *channel = channel.max(value.abs());
            }
        }
        Some(largest)
    }

    /// Mean square of what each input channel of a weight receives; `None` where channels are not the activation's own, as with
    /// groups.
    pub(crate) fn importance(&self, body: &Body, slot: &Slot) -> Option<Vec<f32>> {
        let (id, axis) = channels(body, slot)?;
        let (shape, extent) = (&body.ty(id).shape, body.ty(id).shape[axis]);
        let step: usize = shape[axis + 1..].iter().product();
        let mut sums = vec![0f64; extent];
        let arrays = self.0.get(&id)?;
        for array in arrays {
            for (place, value) in array.to_f32().into_iter().enumerate() {
                sums[place / step % extent] += f64::from(value) * f64::from(value);
            }
        }
        let whole: f64 = sums.iter().sum();
        // Weighed alike where nothing arrives; a channel that stays at zero here may not do so elsewhere.
        let floor = whole / extent as f64 * 1e-3;
        (whole > 0.0 && whole.is_finite()).then(|| sums.iter().map(|sum| ((sum + floor) / whole * extent as f64) as f32).collect())
    }
}

/// A layer alone.
pub(crate) struct Layer<'a> {
    body: &'a Body,
    slot: &'a Slot,
    operation: &'a Operation,
    inputs: Vec<Vec<HostArray>>,
    wanted: Vec<Vec<f32>>,
}

impl<'a> Layer<'a> {
    /// The layer that reads a weight, with what it answers uncompressed. `None` where it receives nothing at run time.
    pub(crate) fn new(
        body: &'a Body,
        slot: &'a Slot,
        values: &[f16],
        activations: &Activations,
        device: &dyn Device,
    ) -> Result<Option<Self>, TuneError> {
        let Some(operation) = reader(body, slot) else { return Ok(None) };
        let received = received(body, operation);
        let arrays: Option<Vec<&Vec<HostArray>>> = received.iter().map(|id| activations.0.get(id)).collect();
        let Some(arrays) = arrays.filter(|arrays| !arrays.is_empty()) else { return Ok(None) };
        let samples = arrays.iter().map(|arrays| arrays.len()).min().unwrap_or(0);
        let inputs = (0..samples).map(|sample| arrays.iter().map(|arrays| arrays[sample].clone()).collect()).collect();
        let mut layer = Self { body, slot, operation, inputs, wanted: Vec::new() };
        layer.wanted = layer.answers(values, device)?;
        Ok(Some(layer))
    }

    /// Relative error of its result with other numbers in the weight, the worst over the samples.
    pub(crate) fn error(&self, values: &[f16], device: &dyn Device) -> Result<f64, TuneError> {
        let answers = self.answers(values, device)?;
        let errors = answers.iter().zip(&self.wanted).map(|(answer, wanted)| Quality::of(answer, wanted).relative_error);
        Ok(errors.fold(0.0, f64::max))
    }

    fn answers(&self, values: &[f16], device: &dyn Device) -> Result<Vec<Vec<f32>>, TuneError> {
        let executable = load(&self.alone(values)?, device)?;
        let mut answers = Vec::with_capacity(self.inputs.len());
        for inputs in &self.inputs {
            answers.push(run(&executable, inputs)?.first().map(HostArray::to_f32).unwrap_or_default());
        }
        Ok(answers)
    }

    fn alone(&self, values: &[f16]) -> Result<Body, TuneError> {
        let shape = self.body.ty(self.slot.value).shape.clone();
        let weight = Weight::from_fp16(shape, values).map_err(aneforge_runtime::DeviceError::from)?;
        Ok(alone(self.body, self.operation, |id| (id == self.slot.value).then(|| Constant::Weight(weight.clone()))))
    }
}
