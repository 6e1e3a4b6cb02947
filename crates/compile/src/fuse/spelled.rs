//! Finds norms that are spelled out: something over the root of the mean of its square.

use super::pattern::{flag, number};
use crate::rewrite::{known_values, one, uniform};
use aneforge_mil::{Body, Operation, ValueId};

/// What is divided by the root of its mean square.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statistic {
    /// A value less its mean: a layer norm.
    Deviation,
    /// A value itself.
    MeanSquare,
}

/// A value, or what it is above its mean, over `sqrt(mean of the square + epsilon)`.
pub(super) struct Ratio {
    pub(super) statistic: Statistic,
    pub(super) x: ValueId,
    /// Axes of the mean, ascending.
    pub(super) axes: Vec<usize>,
    pub(super) epsilon: f64,
}

/// The norm that an operation ends. `Err` with what is in the way where it ends one that cannot be replaced.
pub(super) fn ratio(body: &Body, counts: &[u32], operation: &Operation) -> Result<Option<Ratio>, String> {
    if let Some((ratio, chain)) = by_length(body, operation) {
        return match chain.into_iter().find(|&(id, uses)| counts[id.index()] != uses) {
            Some((id, _)) => Err(format!("{:?} on its way has another use", body.value(id).name)),
            None => Ok(Some(ratio)),
        };
    }
    let Some(found) = quotient(body, operation) else { return Ok(None) };
    let Quotient { over, square, mut epsilon, mut chain } = found;
    let (Some(axes), Some(_)) = (mean_axes(body, square), one(square, "x")) else { return Ok(None) };
    chain.extend(square.outputs.first());
    let Some(squared) = one(square, "x").and_then(|id| Some((id, body.producer(id)?))) else { return Ok(None) };
    if squared_value(body, squared.1) != Some(over) {
        return Ok(None);
    }
    chain.push(squared.0);
    epsilon = epsilon.max(0.0);
    let mut ratio = Ratio { statistic: Statistic::MeanSquare, x: over, axes, epsilon };
    if let Some((x, mean)) = centred(body, over, &ratio.axes) {
        ratio = Ratio { statistic: Statistic::Deviation, x, ..ratio };
        chain.push(mean);
        // Its own square, twice where that is a product, and the quotient.
        let own = if squared.1.op.name == "mul" { 3 } else { 2 };
        if counts[over.index()] != own {
            return Err("the deviation from the mean has another use".to_string());
        }
    }
    match chain.into_iter().find(|id| counts[id.index()] != 1) {
        Some(id) => Err(format!("{:?} on its way has another use", body.value(id).name)),
        None => Ok(Some(ratio)),
    }
}

struct Quotient<'a> {
    /// What is divided.
    over: ValueId,
    /// The mean under the root.
    square: &'a Operation,
    epsilon: f64,
    /// Values on the way that may have no other use.
    chain: Vec<ValueId>,
}

/// `a * rsqrt(v + e)`, `a * (v + e)^-0.5`, `a / sqrt(v + e)` or `a / (v + e)^0.5`.
fn quotient<'a>(body: &'a Body, operation: &Operation) -> Option<Quotient<'a>> {
    let (x, y) = (one(operation, "x")?, one(operation, "y")?);
    let root = |id: ValueId, is_inverse: bool| -> Option<(ValueId, f64)> {
        let producer = body.producer(id)?;
        let inner = one(producer, "x")?;
        match (producer.op.name, is_inverse) {
            ("rsqrt", true) => Some((inner, number(body, producer, "epsilon").unwrap_or(0.0))),
            ("pow", true) if uniform(body, one(producer, "y")?) == Some(-0.5) => Some((inner, 0.0)),
            ("sqrt", false) => Some((inner, 0.0)),
            ("pow", false) if uniform(body, one(producer, "y")?) == Some(0.5) => Some((inner, 0.0)),
            _ => None,
        }
    };
    let (over, factor, (under, added)) = match operation.op.name {
        "mul" => root(y, true).map(|root| (x, y, root)).or_else(|| root(x, true).map(|root| (y, x, root)))?,
        "real_div" => root(y, false).map(|root| (x, y, root))?,
        _ => return None,
    };
    let mut chain = vec![factor];
    let producer = body.producer(under)?;
    chain.push(under);
    if producer.op.name != "add" {
        chain.pop();
        return Some(Quotient { over, square: producer, epsilon: added, chain });
    }
    let (a, b) = (one(producer, "x")?, one(producer, "y")?);
    let (mean, epsilon) = uniform(body, b).map(|e| (a, e)).or_else(|| uniform(body, a).map(|e| (b, e)))?;
    Some(Quotient { over, square: body.producer(mean)?, epsilon: added + epsilon, chain })
}

/// The axes of a mean that keeps them, ascending.
fn mean_axes(body: &Body, operation: &Operation) -> Option<Vec<usize>> {
    if operation.op.name == "reduce_mean" { kept_axes(body, operation) } else { None }
}

/// The axes of a reduction that keeps them, ascending.
fn kept_axes(body: &Body, operation: &Operation) -> Option<Vec<usize>> {
    if flag(body, operation, "keep_dims") != Some(true) {
        return None;
    }
    let rank = body.ty(one(operation, "x")?).rank();
    let given = known_values(body, one(operation, "axes")?)?;
    let mut axes: Vec<usize> =
        given.iter().map(|&axis| if axis < 0.0 { (axis + rank as f64) as usize } else { axis as usize }).collect();
    axes.sort_unstable();
    Some(axes)
}

/// What an operation squares.
fn squared_value(body: &Body, operation: &Operation) -> Option<ValueId> {
    let x = one(operation, "x")?;
    let is_square = match operation.op.name {
        "square" => true,
        "mul" => one(operation, "y") == Some(x),
        "pow" => uniform(body, one(operation, "y")?) == Some(2.0),
        _ => false,
    };
    is_square.then_some(x)
}

/// The value of which `id` is the deviation from its mean over those axes, and that mean.
fn centred(body: &Body, id: ValueId, axes: &[usize]) -> Option<(ValueId, ValueId)> {
    let difference = body.producer(id).filter(|operation| operation.op.name == "sub")?;
    let (x, mean) = (one(difference, "x")?, one(difference, "y")?);
    let made = body.producer(mean)?;
    (one(made, "x") == Some(x) && mean_axes(body, made)? == axes).then_some((x, mean))
}

/// A root mean square norm as this project writes it, where no square leaves fp16's range: with `l` the length of `x / sqrt(features)` and
/// `e` the root of epsilon, `x / (max(l, e) sqrt(1 + (min(l, e) / max(l, e))^2))`. Beside it the values on the way with how often each is
/// used.
fn by_length(body: &Body, operation: &Operation) -> Option<(Ratio, Vec<(ValueId, u32)>)> {
    let made = |id: ValueId, op: &str| body.producer(id).filter(|producer| producer.op.name == op);
    let two = |operation: &Operation| Some((one(operation, "x")?, one(operation, "y")?));
    let (x, divisor) = (operation.op.name == "real_div").then(|| two(operation)).flatten()?;
    let (larger, stretch) = two(made(divisor, "mul")?)?;
    let sum = one(made(stretch, "sqrt")?, "x")?;
    let (square, unit) = two(made(sum, "add")?)?;
    let (ratio, again) = two(made(square, "mul")?)?;
    let (smaller, under) = two(made(ratio, "real_div")?)?;
    let (length, root) = two(made(larger, "maximum")?)?;
    let same =
        ratio == again && under == larger && two(made(smaller, "minimum")?)? == (length, root) && uniform(body, unit) == Some(1.0);
    let norm = made(length, "reduce_l2_norm")?;
    let scaled = one(norm, "x")?;
    let (origin, factor) = two(made(scaled, "mul")?)?;
    let axes = kept_axes(body, norm)?;
    let features: usize = axes.iter().map(|&axis| body.ty(x).shape[axis]).product();
    // The factor was rounded to the element type.
    let is_mean = (uniform(body, factor)? * (features as f64).sqrt() - 1.0).abs() < 1e-3;
    let epsilon = uniform(body, root)?.powi(2);
    let ratio_of = Ratio { statistic: Statistic::MeanSquare, x, axes, epsilon };
    let chain =
        vec![(divisor, 1), (larger, 2), (stretch, 1), (sum, 1), (square, 1), (ratio, 2), (smaller, 1), (length, 2), (scaled, 1)];
    (same && is_mean && origin == x).then_some((ratio_of, chain))
}
