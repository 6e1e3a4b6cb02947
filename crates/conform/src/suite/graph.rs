//! Uses of graph operators: graphs of one operator.

use super::Options;
use super::usage::{Form, Use};
use super::values::{Dice, Extents, Range};
use crate::report::Origin;
use aneforge_core::op::{Case, Sample};
use aneforge_core::{Attribute, Graph, GraphOp, LowerOptions, Target, Tensor, TensorType, lower_with};
use aneforge_mil::Array;

/// Attempts per generated use before it is given up.
const ATTEMPTS: usize = 12;

/// Every written use and those generated from it.
pub(super) fn uses(op: &'static GraphOp, options: &Options) -> Vec<Use> {
    let mut uses = Vec::new();
    for case in op.cases {
        let mut add = |origin, count: usize| {
            for index in 0..count {
                let mut dice = Dice::new(options.seed, &["graph", op.name, case.name, &format!("{origin:?}{index}")]);
                let attempts = if origin == Origin::Written { 1 } else { ATTEMPTS };
                let attempt = |_| {
                    let arrays = arrays(op, case, origin, &mut dice)?;
                    usage(op, case, origin, arrays)
                };
                uses.extend((0..attempts).find_map(attempt));
            }
        };
        add(Origin::Written, 1);
        add(Origin::Reseeded, options.reseeded);
        add(Origin::Edges, usize::from(options.edges));
        add(Origin::Reshaped, options.reshaped);
    }
    uses
}

/// Values of a case's inputs. `None` where the origin would change nothing.
fn arrays(op: &GraphOp, case: &Case, origin: Origin, dice: &mut Dice) -> Option<Vec<Array>> {
    // A single input may be drawn even where its values are written; of several, only those that the record draws.
    let free = |sample: &Sample| sample.values.is_empty() || (case.inputs.len() == 1 && sample.dtype.is_float());
    if origin != Origin::Written && !case.inputs.iter().any(free) {
        return None;
    }
    let fixed = case.inputs.iter().filter(|sample| !free(sample)).flat_map(|sample| sample.shape.iter().copied()).collect();
    let extents = Extents::new(dice, fixed);
    let range = Range { low: op.domain.low, high: op.domain.high, avoid: op.domain.avoid };
    let array = |sample: &Sample| {
        let shape = if origin == Origin::Reshaped && free(sample) { extents.map(sample.shape) } else { sample.shape.to_vec() };
        let ty = TensorType::new(sample.dtype, shape);
        match origin {
            Origin::Written if !sample.values.is_empty() => Array { ty, data: sample.values.to_vec() },
            _ if !free(sample) => Array { ty, data: sample.values.to_vec() },
            Origin::Edges => range.edges(&ty),
            _ => range.draw(&ty, dice),
        }
    };
    Some(case.inputs.iter().map(array).collect())
}

/// The operator in a graph of its own.
fn usage(op: &'static GraphOp, case: &Case, origin: Origin, arrays: Vec<Array>) -> Option<Use> {
    let graph = Graph::new();
    let mut inputs = Vec::new();
    let mut ports: Vec<Vec<Tensor>> = vec![Vec::new(); op.inputs.len()];
    for (index, (sample, array)) in case.inputs.iter().zip(arrays).enumerate() {
        let tensor = if sample.constant {
            graph.values(sample.dtype, &array.ty.shape, &array.data)
        } else {
            let name = format!("{}{index}", sample.input);
            let tensor = graph.input(&name, sample.dtype, &array.ty.shape);
            inputs.push((name, array));
            tensor
        };
        ports[op.input(sample.input)?].push(tensor);
    }
    let attributes: Vec<(&str, Attribute)> = case.attributes.iter().map(|(name, value)| (*name, Attribute::from(*value))).collect();
    let results = graph.apply_lists(op, &ports, &attributes);
    let outputs: Vec<(String, Tensor)> =
        results.into_iter().enumerate().map(|(index, tensor)| (format!("result{index}"), tensor)).collect();
    let generic = LowerOptions { target: Target::Generic, keep_unused_inputs: true };
    let form = match lower_with(&outputs, generic) {
        Ok(body) => Form::Graph(outputs, body),
        Err(error) => Form::Faulty(error.to_string()),
    };
    Use::of(case.name, origin, form, inputs, op.tolerance)
}
