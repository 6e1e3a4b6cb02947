//! A value that gradients do not pass.

use aneforge_core::Tensor;
use aneforge_core::op::{Case, GraphOp, Vjp, direct, given};

/// The value itself, which is a constant to the derivative. It lowers to nothing.
pub static DETACH: GraphOp = GraphOp {
    lower: |_, site| Ok(vec![site.value("x")?]),
    vjp: Vjp::Rule(|_| {}),
    tolerance: 0.0,
    cases: &[Case::values("is_the_value", &[given("x", &[2], &[1.0, -2.0])], &[], (&[2], &[1.0, -2.0]), "by definition")],
    ..direct("detach", "x, as a constant to the derivative.")
};

/// The value of `x` without its history: losses built on it have no gradient with respect to what `x` is made of.
pub fn detach(x: &Tensor) -> Tensor {
    x.graph().apply_one(&DETACH, &[x.into()], &[])
}
