//! Finds attention: a product, steps on its scores, a softmax over the keys and the product with the values.

use super::pattern::{Uses, flag, is_last, number};
use crate::rewrite::{one, uniform};
use aneforge_mil::{Body, Operation, ValueId};

/// Attention as it stands in a program.
pub(super) struct Attention<'a> {
    /// The product of queries and keys.
    pub(super) scores: &'a Operation,
    /// Whether the keys are `[..., keys, features]`.
    pub(super) keys_are_rows: bool,
    /// What happens to the scores before the softmax: each operation with the port at which they stand.
    pub(super) steps: Vec<(&'a Operation, &'static str)>,
    /// The softmax.
    pub(super) softmax: &'a Operation,
    /// The product with the values.
    pub(super) mixed: &'a Operation,
    /// Whether the values are `[..., keys, features]`.
    pub(super) values_are_rows: bool,
    /// The result.
    pub(super) result: ValueId,
}

/// Steps on scores that work element by element.
const STEPS: &[&str] = &["mul", "real_div", "add", "sub", "select", "maximum", "minimum"];

/// The attention around a softmax. `Err` with a reason where one is nearly there, without one where there is nothing like it.
pub(super) fn find<'a>(body: &'a Body, uses: &Uses, softmax: &'a Operation) -> Result<Attention<'a>, Option<String>> {
    let input = one(softmax, "x").ok_or(None)?;
    let &[shares] = &softmax.outputs[..] else { return Err(None) };
    let shape = &body.ty(input).shape;
    let (mut at, mut steps) = (input, Vec::new());
    let scores = loop {
        let producer = body.producer(at).ok_or(None)?;
        if producer.op.name == "matmul" {
            break producer;
        }
        if !STEPS.contains(&producer.op.name) {
            return Err(None);
        }
        let ports = ["x", "y", "a", "b"].into_iter();
        let mut chain = ports.filter_map(|port| one(producer, port).map(|id| (port, id)));
        let (port, inner) = chain.find(|&(_, id)| leads_to_product(body, id) && &body.ty(id).shape == shape).ok_or(None)?;
        steps.push((producer, port));
        at = inner;
    };
    // From here on it is attention, and what is missing is worth a word.
    let axis = number(body, softmax, "axis").unwrap_or(-1.0);
    let mixed = match uses.only(body, shares) {
        Some(operation) if operation.op.name == "matmul" && one(operation, "x") == Some(shares) => operation,
        Some(_) => return Err(None),
        None => return Err(Some("attention kept: its shares have another use than the product with the values".to_string())),
    };
    if !is_last(axis, shape.len()) {
        return Err(Some(format!("attention kept: its softmax runs over axis {axis} and not over the keys")));
    }
    let mut chain = std::iter::once(at).chain(steps.iter().filter_map(|(step, _)| step.outputs.first().copied()));
    if let Some(id) = chain.find(|&id| uses.only(body, id).is_none()) {
        return Err(Some(format!("attention kept: {:?} before its softmax has another use", body.value(id).name)));
    }
    let computed = || Some("attention kept: a transpose flag of its products is computed".to_string());
    let flags = |operation| Some([flag(body, operation, "transpose_x")?, flag(body, operation, "transpose_y")?]);
    let ([queries_turned, keys_are_rows], [shares_turned, values_turned]) = flags(scores).zip(flags(mixed)).ok_or_else(computed)?;
    if queries_turned || shares_turned {
        return Err(Some("attention kept: its queries or shares are transposed".to_string()));
    }
    let (query, result) = (one(scores, "x").ok_or(None)?, mixed.outputs.first().copied().ok_or(None)?);
    let rank = shape.len();
    if rank < 2 || body.ty(query).rank() != rank || body.ty(result).rank() != rank {
        return Err(Some("attention kept: its queries have fewer axes than its scores".to_string()));
    }
    steps.reverse();
    Ok(Attention { scores, keys_are_rows, steps, softmax, mixed, values_are_rows: !values_turned, result })
}

/// Whether a value is scores: a product, or steps on one.
fn leads_to_product(body: &Body, id: ValueId) -> bool {
    body.producer(id).is_some_and(|operation| operation.op.name == "matmul" || STEPS.contains(&operation.op.name))
        && body.constant(id).is_none()
}

impl Attention<'_> {
    /// The queries.
    pub(super) fn query(&self) -> Option<ValueId> {
        one(self.scores, "x")
    }

    /// The keys.
    pub(super) fn key(&self) -> Option<ValueId> {
        one(self.scores, "y")
    }

    /// The values.
    pub(super) fn value(&self) -> Option<ValueId> {
        one(self.mixed, "y")
    }

    /// The factor of the scores, and what is added to them, where nothing else happens to them.
    pub(super) fn scale_and_mask(&self, body: &Body) -> Option<(f64, Option<ValueId>)> {
        let (mut scale, mut mask) = (1.0, None);
        for &(step, port) in &self.steps {
            let other = one(step, if port == "x" { "y" } else { "x" })?;
            match (step.op.name, uniform(body, other), mask) {
                ("mul", Some(factor), None) => scale *= factor,
                ("real_div", Some(divisor), None) if port == "x" => scale /= divisor,
                ("add", _, None) => mask = Some(other),
                _ => return None,
            }
        }
        Some((scale, mask))
    }
}
