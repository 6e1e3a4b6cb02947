//! What records share: write one's own with these, inside this crate or outside it.

use super::general::result;
use super::{ALL_FAMILIES, Arguments, Arithmetic, Constraint, Default, FLOATS, INTS, MilOp, OpError, PortSpec, constant, tensor};
use crate::{Array, TensorType};

/// The only port of most unary operators.
pub const X: &[PortSpec] = &[tensor("x", FLOATS)];

/// Functions that the engine reads from a table.
pub const TABLE: Arithmetic = Arithmetic::Modelled(
    "piecewise linear between 33 knots that nobody has published; stand-in: exact function, fp16 result, within the worst error \
     published in arXiv 2606.22283, chapter 3",
);
/// Operators whose result needs no rounding and whose published error is zero.
pub const PICKS: Arithmetic = Arithmetic::Exact(
    "nothing to round: arXiv 2606.17090's operator sweep measured no error, and relu reproduces its longer figures",
);
/// Operators whose result needs no rounding, of which only presence is published.
pub const CHOOSES: Arithmetic = Arithmetic::Modelled("nothing to round; presence on the engine is published, its accuracy is not");
/// One rounding of the exact result, by analogy with subtraction.
pub const ROUNDED_ONCE: Arithmetic =
    Arithmetic::Modelled("exact result rounded once to fp16, half away from zero, as subtraction is known to be");
/// Long sums on the planar engine.
pub const REDUCED: Arithmetic = Arithmetic::Modelled(
    "exact sum rounded once on short axes (eight terms 257 + 7 x 256 give 2050, arXiv 2606.22283), binary tree with fp16 \
     partials on long ones: error of the published size, other bits",
);
/// Products on the multiply-accumulate array.
pub const PRODUCTS: Arithmetic = Arithmetic::Exact(
    "products on the 2^-16 grid, exact sum, stored half away from zero, infinite from 2^15: reproduces the errors that arXiv \
     2606.17090 publishes for every chip but M3, of which there are none",
);
/// Products of an operator for which no figure is published.
pub const PRODUCTS_TOO: Arithmetic =
    Arithmetic::Modelled("the multiply-accumulate array's rule for matrix products, of which it is presumably a case");
/// Several steps, each modelled.
pub const COMPOSED: Arithmetic =
    Arithmetic::Modelled("its steps on the planar engine one after the other, fp16 between them; published errors by size only");

/// A unary operator on floats with a meaning of its own. Its arithmetic is a table unless the record says otherwise.
pub const fn unary(name: &'static str, summary: &'static str, meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>) -> MilOp {
    MilOp { ports: X, arithmetic: TABLE, ..base(name, summary, same_as_x, meaning) }
}

/// A record with everything left at its usual value; ports are what most records replace.
pub const fn base(
    name: &'static str,
    summary: &'static str,
    infer: fn(&Arguments<'_>) -> Result<Vec<TensorType>, OpError>,
    meaning: fn(&Arguments<'_>) -> Result<Vec<Array>, OpError>,
) -> MilOp {
    MilOp {
        name,
        opset: "ios15",
        summary,
        ports: &[],
        constraints: &[],
        infer,
        meaning,
        arithmetic: Arithmetic::Copy,
        support: ALL_FAMILIES,
        domain: &[],
        tolerance: 2e-3,
        published_error: None,
        cases: &[],
    }
}

/// A rule.
pub const fn rule(label: &'static str, rule: &'static str, holds: fn(&Arguments<'_>) -> bool) -> Constraint {
    Constraint { label, rule, holds }
}

/// A required float attribute.
pub const fn required(name: &'static str) -> PortSpec {
    constant(name, FLOATS, Default::Required)
}

/// A float attribute with a default.
pub const fn or(name: &'static str, value: f64) -> PortSpec {
    constant(name, FLOATS, Default::Float(value))
}

/// An integer attribute or vector.
pub const fn integers(name: &'static str, default: Default) -> PortSpec {
    constant(name, INTS, default)
}

/// The result has the type of `x`.
pub fn same_as_x(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let x = a.ty("x")?;
    result(a, x.dtype, x.shape.clone())
}

/// `f` of every element of `x`.
pub fn map(a: &Arguments<'_>, f: impl Fn(f64) -> f64) -> Result<Vec<Array>, OpError> {
    let x = a.array("x")?;
    Ok(vec![Array { ty: x.ty.clone(), data: x.data.iter().map(|&x| f(x)).collect() }])
}

/// A float attribute; an absent one reads NaN, which no legal use shows.
pub fn attribute(a: &Arguments<'_>, port: &str) -> f64 {
    a.number(port).unwrap_or(f64::NAN)
}

/// Resolved, distinct axes at a port; all axes where it is left out. `None` where one is out of range or repeated.
pub fn axes(a: &Arguments<'_>, port: &str, rank: usize) -> Option<Vec<usize>> {
    if !a.has(port) {
        return Some((0..rank).collect());
    }
    let mut resolved = Vec::new();
    for axis in a.ints(port)? {
        let axis = a.axis(axis, rank)?;
        if resolved.contains(&axis) {
            return None;
        }
        resolved.push(axis);
    }
    Some(resolved)
}

/// A scalar axis at a port or its default, resolved.
pub fn axis(a: &Arguments<'_>, port: &str, rank: usize) -> Option<usize> {
    a.axis(a.int(port)?, rank)
}

/// The axis a legal use names; 0 where there is none, so that an unchecked use cannot panic.
pub fn legal_axis(a: &Arguments<'_>, port: &str, rank: usize) -> usize {
    axis(a, port, rank).unwrap_or(0)
}

/// Extents before an axis, at it and after it, each as one product.
pub fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    let extent = shape.get(axis).copied().unwrap_or(1);
    (shape.iter().take(axis).product(), extent, shape.iter().skip(axis + 1).product())
}
