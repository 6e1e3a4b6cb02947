//! Arithmetic on two tensors, broadcast against each other.

use super::*;

const PAIR: &[InputSpec] = &[input("x", FLOATS), input("y", FLOATS)];
/// Integers too: positions and indices are computed with the same operators.
const NUMBER_PAIR: &[InputSpec] = &[input("x", NUMBERS), input("y", NUMBERS)];

pub(super) const RULES: &[Constraint] = &[
    rule(
        "C1",
        "x and y have the same element type: cast one of them",
        |s| s.dtype("x") == s.dtype("y"),
        Case::refused(&[drawn("x", &[3]), drawn("y", &[3]).of(DType::Fp32)], &[]),
    ),
    rule(
        "C2",
        "x and y broadcast: seen from the last axis, extents are equal or one of them is 1",
        |s| broadcast_shape(s.shape("x"), s.shape("y")).is_some(),
        Case::refused(&[drawn("x", &[2, 3]), drawn("y", &[2, 4])], &[]),
    ),
];

const CASES: &[Case] = &[
    Case::shape("equal_shapes", &[drawn("x", &[2, 3]), drawn("y", &[2, 3])], &[], &[2, 3]),
    Case::shape("row_against_matrix", &[drawn("x", &[2, 3]), drawn("y", &[3])], &[], &[2, 3]),
    Case::shape("both_stretch", &[drawn("x", &[2, 1, 3]), drawn("y", &[4, 1])], &[], &[2, 4, 3]),
    Case::shape("scalar_constant", &[drawn("x", &[2, 3]), given("y", &[], &[0.75]).fixed()], &[], &[2, 3]),
];

pub(super) const fn pair(name: &'static str, summary: &'static str, vjp: fn(&mut Backward<'_>)) -> GraphOp {
    GraphOp { inputs: PAIR, constraints: RULES, vjp: Vjp::Rule(vjp), cases: CASES, ..direct(name, summary) }
}

/// Numpy's broadcast of two shapes.
pub fn broadcast_shape(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (a, b) if a == b || b == 1 => Some(a),
            (1, b) => Some(b),
            _ => None,
        })
        .collect()
}

/// Sum.
pub static ADD: GraphOp = GraphOp {
    aliases: &[("adds", "x + number, or x.adds(number)")],
    inputs: NUMBER_PAIR,
    ..pair("add", "x + y.", |b| {
        let grad = b.grad();
        b.give_broadcast("x", grad.clone());
        b.give_broadcast("y", grad);
    })
};
/// Difference.
pub static SUB: GraphOp = GraphOp {
    inputs: NUMBER_PAIR,
    ..pair("sub", "x - y.", |b| {
        let grad = b.grad();
        b.give_broadcast("x", grad.clone());
        if b.wants("y") {
            b.give_broadcast("y", grad.neg());
        }
    })
};
/// Product.
pub static MUL: GraphOp = GraphOp {
    aliases: &[("muls", "x * number, or x.muls(number)")],
    inputs: NUMBER_PAIR,
    ..pair("mul", "x times y.", |b| {
        let (x, y, grad) = (b.input("x"), b.input("y"), b.grad());
        if b.wants("x") {
            b.give_broadcast("x", grad.mul(&y));
        }
        if b.wants("y") {
            b.give_broadcast("y", grad.mul(&x));
        }
    })
};
/// Quotient.
pub static REAL_DIV: GraphOp = GraphOp {
    domain: domain(0.25, 4.0, &[]),
    ..pair("real_div", "x divided by y.", |b| {
        let (y, grad) = (b.input("y"), b.grad());
        let over = grad.real_div(&y);
        if b.wants("y") {
            b.give_broadcast("y", over.mul(&b.output()).neg());
        }
        b.give_broadcast("x", over);
    })
};
/// The larger of two.
pub static MAXIMUM: GraphOp =
    GraphOp { tolerance: 0.0, ..pair("maximum", "The larger of x and y.", |b| choose(b, Tensor::greater)) };
/// The smaller of two.
pub static MINIMUM: GraphOp = GraphOp { tolerance: 0.0, ..pair("minimum", "The smaller of x and y.", |b| choose(b, Tensor::less)) };
/// Power.
pub static POW: GraphOp = GraphOp {
    domain: domain(0.25, 2.0, &[]),
    ..pair("pow", "x to the power of y.", |b| {
        let (x, y, grad) = (b.input("x"), b.input("y"), b.grad());
        if b.wants("x") {
            b.give_broadcast("x", grad.mul(&y).mul(&x.pow(&y.adds(-1.0))));
        }
        if b.wants("y") {
            // Finite also at x = 0, where the exponent's derivative is 0.
            let logarithm = x.threshold(2f64.powi(-14)).log(0.0);
            b.give_broadcast("y", grad.mul(&b.output()).mul(&logarithm));
        }
    })
};

/// The gradient goes to the side that was chosen; two equal values share it evenly.
fn choose(b: &mut Backward<'_>, wins: fn(&Tensor, &Tensor) -> Tensor) {
    let (x, y, grad) = (b.input("x"), b.input("y"), b.grad());
    let zero = x.constant_like(0.0);
    let half = x.equal(&y).select(&grad.scale(0.5), &zero);
    for (input, won) in [("x", wins(&x, &y)), ("y", wins(&y, &x))] {
        if b.wants(input) {
            b.give_broadcast(input, won.select(&grad, &half));
        }
    }
}

pub(super) const ALL: &[&GraphOp] = &[&ADD, &SUB, &MUL, &REAL_DIV, &MAXIMUM, &MINIMUM, &POW];
