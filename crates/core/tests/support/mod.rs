//! Builds the examples of operator records into graphs.
#![allow(dead_code)]

use aneforge_core::op::{Case, GraphOp, Sample};
use aneforge_core::{Array, Attribute, Body, Graph, GraphError, LowerOptions, Target, Tensor, evaluate, lower_with};

/// An example in a graph of its own.
pub struct Built {
    pub graph: Graph,
    /// Program inputs in call order, with their values.
    pub inputs: Vec<Tensor>,
    pub arrays: Vec<Array>,
    pub outputs: Vec<Tensor>,
}

impl Built {
    pub fn named_outputs(&self) -> Vec<(String, Tensor)> {
        self.outputs.iter().enumerate().map(|(index, tensor)| (format!("y{index}"), tensor.clone())).collect()
    }

    pub fn body(&self) -> Result<Body, GraphError> {
        lower_with(&self.named_outputs(), LowerOptions { target: Target::Generic, keep_unused_inputs: true })
    }

    pub fn results(&self) -> Result<Vec<Array>, String> {
        let body = self.body().map_err(|error| error.to_string())?;
        evaluate(&body, &self.arrays).map_err(|error| error.to_string())
    }
}

pub fn build(op: &'static GraphOp, case: &Case) -> Built {
    let graph = Graph::new();
    let (mut inputs, mut arrays) = (Vec::new(), Vec::new());
    let mut ports: Vec<Vec<Tensor>> = vec![Vec::new(); op.inputs.len()];
    for (index, sample) in case.inputs.iter().enumerate() {
        let values = values(op, sample, index);
        let tensor = if sample.constant {
            graph.values(sample.dtype, sample.shape, &values)
        } else {
            let tensor = graph.input(&format!("{}{index}", sample.input), sample.dtype, sample.shape);
            inputs.push(tensor.clone());
            arrays.push(Array::new(sample.dtype, sample.shape, values));
            tensor
        };
        ports[op.input(sample.input).unwrap_or_else(|| panic!("{}: no input {}", op.name, sample.input))].push(tensor);
    }
    let attributes: Vec<(&str, Attribute)> = case.attributes.iter().map(|(name, value)| (*name, Attribute::from(*value))).collect();
    let outputs = graph.apply_lists(op, &ports, &attributes);
    Built { graph, inputs, arrays, outputs }
}

/// The values of a use's inputs and constants, in the order of its samples.
pub fn arrays(op: &GraphOp, case: &Case) -> Vec<Array> {
    let array = |(index, sample): (usize, &Sample)| Array::new(sample.dtype, sample.shape, values(op, sample, index));
    case.inputs.iter().enumerate().map(array).collect()
}

/// Given values, or a fixed pseudo-random sequence inside the operator's domain: SplitMix64, all values multiples of 2^-8 so that
/// fp16 holds them exactly, and distinct so that no two tie.
fn values(op: &GraphOp, sample: &Sample, salt: usize) -> Vec<f64> {
    if !sample.values.is_empty() {
        return sample.values.to_vec();
    }
    let mut state = 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(salt as u64 + 1);
    let mut seen = Vec::new();
    let count: usize = sample.shape.iter().product();
    while seen.len() < count {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let unit = ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        let value = ((op.domain.low + unit * (op.domain.high - op.domain.low)) * 256.0).round() / 256.0;
        let allowed = op.domain.avoid.iter().all(|kink| (value - kink).abs() >= 0.05);
        if allowed && (count > 200 || !seen.contains(&value)) {
            seen.push(value);
        }
    }
    seen
}

/// Operators of a body in order.
pub fn values_of(body: &Body) -> Vec<&'static str> {
    body.operations.iter().map(|operation| operation.op.name).collect()
}
