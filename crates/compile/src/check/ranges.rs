//! Between what bounds the values of a program lie, and how large they typically are.
//!
//! Bounds are intervals: they hold for every input inside the assumed one, and grow faster than values do. The scale is a root mean
//! square under the model that elements are independent and about zero; it is what the error of products depends on. What was observed
//! in a run replaces both.

use super::single;
use crate::rewrite::one;
use aneforge_mil::{Body, Constant, DType, Operand, Operation, TensorType, ValueId, Weight};
use std::collections::HashMap;

/// Where the values of a tensor lie.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Range {
    /// None is below.
    pub low: f64,
    /// None is above.
    pub high: f64,
    /// Root mean square.
    pub scale: f64,
}

/// What is taken for granted.
#[derive(Clone, Debug)]
pub struct Assumptions {
    /// Bounds of inputs that nothing else is said about.
    pub inputs: (f64, f64),
    /// Weights are read as long as they have no more elements than this together; the others are taken to be normal with deviation
    /// `1 / sqrt(inner extent)`.
    pub weight_elements: usize,
    /// What was seen in a run, by SSA name.
    pub observed: HashMap<String, Range>,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self { inputs: (-4.0, 4.0), weight_elements: 200_000_000, observed: HashMap::new() }
    }
}

impl Range {
    /// Bounds with the scale of values spread evenly between them.
    pub fn between(low: f64, high: f64) -> Self {
        Self { low, high, scale: ((low * low + low * high + high * high) / 3.0).sqrt() }
    }

    /// The largest magnitude.
    pub fn magnitude(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    fn map(self, value: impl Fn(f64) -> f64, scale: f64) -> Self {
        let (a, b) = (value(self.low), value(self.high));
        Self { low: a.min(b), high: a.max(b), scale }
    }

    fn clipped(self, low: f64, high: f64) -> Self {
        let scale = self.scale.min(low.abs().max(high.abs()));
        Self { low: self.low.clamp(low, high), high: self.high.clamp(low, high), scale }
    }

    fn joined(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high), scale: self.scale.max(other.scale) }
    }
}

/// The largest number of fp16.
pub const FP16_LARGEST: f64 = 65504.0;

/// A weight as its products see it.
#[derive(Clone, Copy, Debug)]
struct WeightRange {
    range: Range,
    /// Largest sum of magnitudes that one result meets.
    row: f64,
}

/// The range of every value; `None` where nothing is known, integers, bools and texts among them.
pub fn ranges(body: &Body, assumptions: &Assumptions) -> Vec<Option<Range>> {
    let constant = single::constants(body);
    let mut finder =
        Finder { body, left: assumptions.weight_elements, known: vec![None; body.values.len()], weights: HashMap::new() };
    let (low, high) = assumptions.inputs;
    for &input in body.inputs.iter().chain(body.states.iter().map(|state| &state.input)) {
        let is_float = matches!(body.ty(input).dtype, DType::Fp16 | DType::Fp32);
        finder.known[input.index()] = is_float.then(|| Range::between(low, high));
    }
    for (index, value) in body.values.iter().enumerate() {
        if let Some(Constant::Values(values)) = body.constant(ValueId(index as u32))
            && matches!(value.ty.dtype, DType::Fp16 | DType::Fp32)
        {
            finder.known[index] = of_values(values);
        }
    }
    for operation in &body.operations {
        let result = finder.result(operation);
        for &output in &operation.outputs {
            let is_float = matches!(body.ty(output).dtype, DType::Fp16 | DType::Fp32);
            let seen = assumptions.observed.get(&body.value(output).name).copied();
            finder.known[output.index()] = seen.or(result).filter(|_| is_float && !constant[output.index()]);
        }
    }
    finder.known
}

fn of_values(values: &[f64]) -> Option<Range> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    let square = values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64;
    Some(Range { low, high, scale: square.sqrt() })
}

struct Finder<'a> {
    body: &'a Body,
    /// Elements of weights that may still be read.
    left: usize,
    known: Vec<Option<Range>>,
    weights: HashMap<(ValueId, bool), WeightRange>,
}

impl Finder<'_> {
    fn at(&mut self, operation: &Operation, port: &str) -> Option<Range> {
        let id = one(operation, port)?;
        match (self.known[id.index()], self.body.constant(id)) {
            (None, Some(Constant::Weight(_))) => Some(self.weight(id, false).range),
            // What overflows is told where it does, and does not make all that follows overflow as well.
            (known, _) => known.map(|range| range.clipped(-FP16_LARGEST, FP16_LARGEST)),
        }
    }

    fn number(&self, operation: &Operation, port: &str) -> Option<f64> {
        match self.body.constant(one(operation, port)?)? {
            Constant::Values(values) => values.first().copied(),
            _ => None,
        }
    }

    fn result(&mut self, operation: &Operation) -> Option<Range> {
        let name = operation.op.name;
        if let Some(range) = self.multiplied(operation) {
            return Some(range);
        }
        let x = self.at(operation, "x");
        let y = self.at(operation, "y");
        let pair = x.zip(y);
        Some(match name {
            "relu" => x?.clipped(0.0, f64::INFINITY),
            "relu6" => x?.clipped(0.0, 6.0),
            "sigmoid" | "sigmoid_hard" | "softmax" => Range { low: 0.0, high: 1.0, scale: self.probability(operation) },
            "tanh" | "erf" | "softsign" | "sin" | "cos" => x?.map(f64::tanh, x?.scale.min(1.0)).joined(Range::between(-1.0, 1.0)),
            "gelu" => Range { low: -0.17, high: x?.high.max(0.0), scale: x?.scale },
            "silu" => Range { low: -0.28, high: x?.high.max(0.0), scale: x?.scale },
            "abs" => Range { low: 0.0, high: x?.magnitude(), scale: x?.scale },
            "square" => Range { low: 0.0, high: x?.magnitude().powi(2), scale: x?.scale.powi(2) * 3f64.sqrt() },
            "exp" => x?.map(f64::exp, x?.scale.exp()),
            "sqrt" if x?.low >= 0.0 => x?.map(f64::sqrt, x?.scale.sqrt()),
            "rsqrt" => {
                let epsilon = self.number(operation, "epsilon").unwrap_or(0.0);
                let least = (x?.low + epsilon).max(f64::MIN_POSITIVE);
                Range { low: 0.0, high: 1.0 / least.sqrt(), scale: 1.0 / (x?.scale + epsilon).sqrt() }
            }
            "add" => {
                let (x, y) = pair?;
                Range { low: x.low + y.low, high: x.high + y.high, scale: x.scale.hypot(y.scale) }
            }
            "sub" => {
                let (x, y) = pair?;
                Range { low: x.low - y.high, high: x.high - y.low, scale: x.scale.hypot(y.scale) }
            }
            "mul" => {
                let (x, y) = pair?;
                let corners = [x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high];
                let is_square = one(operation, "x") == one(operation, "y");
                let low = if is_square { 0.0 } else { corners.into_iter().fold(f64::INFINITY, f64::min) };
                Range { low, high: corners.into_iter().fold(f64::NEG_INFINITY, f64::max), scale: x.scale * y.scale }
            }
            "real_div" => {
                let (x, y) = pair.filter(|(_, y)| y.low > 0.0 || y.high < 0.0)?;
                let most = x.magnitude() / y.low.abs().min(y.high.abs());
                Range { low: if x.low >= 0.0 && y.low > 0.0 { 0.0 } else { -most }, high: most, scale: x.scale / y.scale }
            }
            "maximum" => {
                let (x, y) = pair?;
                Range { low: x.low.max(y.low), high: x.high.max(y.high), scale: x.scale.max(y.scale) }
            }
            "minimum" => {
                let (x, y) = pair?;
                Range { low: x.low.min(y.low), high: x.high.min(y.high), scale: x.scale.max(y.scale) }
            }
            "clip" => {
                let (low, high) = (self.number(operation, "alpha")?, self.number(operation, "beta")?);
                x?.clipped(low, high)
            }
            "layer_norm" | "instance_norm" | "batch_norm" => self.normalised(operation)?,
            "l2_norm" => Range { low: -1.0, high: 1.0, scale: 0.1 },
            "reduce_sum" => {
                let terms = self.terms(operation);
                Range { low: x?.low * terms, high: x?.high * terms, scale: x?.scale * terms.sqrt() }
            }
            "reduce_mean" | "avg_pool" => Range { scale: x?.scale, ..x? },
            "concat" | "stack" => self.all(operation)?,
            "reshape" | "transpose" | "expand_dims" | "squeeze" | "slice_by_index" | "slice_by_size" | "split" | "gather"
            | "tile" | "reduce_max" | "reduce_min" | "max_pool" | "cast" | "identity" | "pad" | "gather_along_axis"
            | "gather_nd" | "reverse" | "pixel_shuffle" | "pixel_unshuffle" | "space_to_depth" | "depth_to_space" => x?,
            "select" => self.at(operation, "a")?.joined(self.at(operation, "b")?),
            _ => return None,
        })
    }

    /// Root mean square of probabilities: those of a softmax over `n` are about `1 / n` each.
    fn probability(&self, operation: &Operation) -> f64 {
        let x = one(operation, "x").map(|id| self.body.ty(id));
        match (operation.op.name, x.and_then(|ty| ty.shape.last())) {
            ("softmax", Some(&extent)) => 1.0 / extent.max(1) as f64,
            _ => 0.58,
        }
    }

    fn terms(&self, operation: &Operation) -> f64 {
        let before = one(operation, "x").map_or(1, |id| self.body.ty(id).count());
        let after = operation.outputs.first().map_or(1, |&id| self.body.ty(id).count());
        before as f64 / after.max(1) as f64
    }

    fn all(&mut self, operation: &Operation) -> Option<Range> {
        let ids: Vec<ValueId> = operation.arguments.iter().flat_map(Operand::values).copied().collect();
        let floats = ids.into_iter().filter(|&id| self.body.ty(id).dtype == DType::Fp16);
        floats.map(|id| self.known[id.index()]).reduce(|a, b| Some(a?.joined(b?)))?
    }

    /// No element of `n` normalised ones is beyond `sqrt(n)`.
    fn normalised(&mut self, operation: &Operation) -> Option<Range> {
        let x = one(operation, "x")?;
        let count = self.body.ty(x).shape.last().copied().unwrap_or(1) as f64;
        let one = Range { low: 1.0, high: 1.0, scale: 1.0 };
        let zero = Range { low: 0.0, high: 0.0, scale: 0.0 };
        let gamma = self.at(operation, "gamma").unwrap_or(one);
        let beta = self.at(operation, "beta").unwrap_or(zero);
        if operation.op.name == "batch_norm" {
            let x = self.at(operation, "x")?;
            let variance = self.at(operation, "variance").unwrap_or(one);
            let mean = self.at(operation, "mean").unwrap_or(zero);
            let steepest = gamma.magnitude() / variance.low.max(1e-5).sqrt();
            let most = (x.magnitude() + mean.magnitude()) * steepest + beta.magnitude();
            return Some(Range { low: -most, high: most, scale: gamma.scale.hypot(beta.scale) });
        }
        let most = count.sqrt() * gamma.magnitude() + beta.magnitude();
        Some(Range { low: -most, high: most, scale: gamma.scale.hypot(beta.scale) })
    }

    fn multiplied(&mut self, operation: &Operation) -> Option<Range> {
        let name = operation.op.name;
        if !matches!(name, "linear" | "matmul" | "conv" | "conv_transpose") {
            return None;
        }
        let x = one(operation, "x")?;
        let other = one(operation, "weight").or_else(|| one(operation, "y"))?;
        let left = self.at(operation, "x")?;
        let inner = inner(self.body, operation)?;
        let (right, row) = match self.body.constant(other) {
            Some(Constant::Weight(_) | Constant::Values(_)) => {
                // Rows of a linear layer's weight and of a kernel are what one result meets; of a product's right side, columns.
                let columns = name == "matmul" && self.number(operation, "transpose_y").is_none_or(|flag| flag == 0.0);
                let weight = self.weight(other, columns);
                (weight.range, weight.row)
            }
            _ => {
                let right = self.known[other.index()]?.clipped(-FP16_LARGEST, FP16_LARGEST);
                let is_average = self.body.producer(x).is_some_and(|producer| producer.op.name == "softmax");
                // Probabilities sum to one: their product with values is an average of values.
                (right, if is_average { right.magnitude() / left.magnitude() } else { inner * right.magnitude() })
            }
        };
        let bias = self.at(operation, "bias").unwrap_or(Range { low: 0.0, high: 0.0, scale: 0.0 });
        let most = left.magnitude() * row + bias.magnitude();
        Some(Range { low: -most, high: most, scale: (left.scale * right.scale * inner.sqrt()).hypot(bias.scale) })
    }

    fn weight(&mut self, id: ValueId, columns: bool) -> WeightRange {
        if let Some(known) = self.weights.get(&(id, columns)) {
            return *known;
        }
        let ty = self.body.ty(id);
        let read = match self.body.constant(id) {
            Some(Constant::Weight(weight)) if ty.count() <= self.left => {
                self.left -= ty.count();
                read(weight, columns)
            }
            Some(Constant::Values(values)) => {
                of_values(values).map(|range| WeightRange { range, row: values.iter().map(|value| value.abs()).sum() })
            }
            _ => None,
        };
        let range = read.unwrap_or_else(|| assumed(ty, columns));
        self.known[id.index()] = Some(range.range);
        self.weights.insert((id, columns), range);
        range
    }
}

/// A weight that was not read.
fn assumed(ty: &TensorType, columns: bool) -> WeightRange {
    let last = ty.shape.len().saturating_sub(1);
    let inner: usize = if columns { ty.shape[last.saturating_sub(1)] } else { ty.shape.iter().skip(1).product() };
    let scale = 1.0 / (inner.max(1) as f64).sqrt();
    let mean_magnitude = scale * (2.0 / std::f64::consts::PI).sqrt();
    WeightRange { range: Range { low: -6.0 * scale, high: 6.0 * scale, scale }, row: inner as f64 * mean_magnitude }
}

/// Extent that a product sums over.
pub fn inner(body: &Body, operation: &Operation) -> Option<f64> {
    let at = |port: &str| one(operation, port);
    let flag = |port: &str| {
        let constant = at(port).and_then(|id| body.constant(id));
        matches!(constant, Some(Constant::Values(values)) if values.first().is_some_and(|value| *value != 0.0))
    };
    match operation.op.name {
        "linear" | "matmul" => {
            let shape = &body.ty(at("x")?).shape;
            let back = if flag("transpose_x") { 2 } else { 1 };
            shape.get(shape.len().checked_sub(back)?).map(|&extent| extent as f64)
        }
        "conv" | "conv_transpose" => {
            let kernel = &body.ty(at("weight")?).shape;
            Some(kernel.iter().skip(1).map(|&extent| extent as f64).product())
        }
        _ => None,
    }
}

/// Bounds, scale and the largest row or column sum of magnitudes of a weight, chunk by chunk.
fn read(weight: &Weight, columns: bool) -> Option<WeightRange> {
    let ty = weight.ty();
    let last = *ty.shape.last()?;
    let length = if columns { last } else { ty.count() / ty.shape.first().copied().unwrap_or(1).max(1) };
    if length == 0 {
        return None;
    }
    let (mut low, mut high, mut square, mut at) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0usize);
    let mut sums = vec![0.0f64; if columns { length } else { 1 }];
    let mut most = 0.0f64;
    let streamed = weight.stream(&mut |bytes| {
        let bits = ty.dtype.packed_bytes(1).max(1);
        let Some(values) = aneforge_mil::unpack(ty.dtype, bytes, bytes.len() / bits) else { return Ok(()) };
        for value in values {
            (low, high) = (low.min(value), high.max(value));
            square += value * value;
            if columns {
                sums[at % length] += value.abs();
            } else {
                sums[0] += value.abs();
                if (at + 1) % length == 0 {
                    most = most.max(sums[0]);
                    sums[0] = 0.0;
                }
            }
            at += 1;
        }
        Ok(())
    });
    streamed.ok()?;
    let row = if columns { sums.iter().copied().fold(0.0, f64::max) } else { most };
    let scale = (square / (at.max(1) as f64)).sqrt();
    (at > 0).then_some(WeightRange { range: Range { low, high, scale }, row })
}
