//! An operator of one's own, written outside of ANEForge's crates.
//!
//! The record below is all there is: builder checks, text form, lowering, gradient, and every test that ANEForge runs on its own
//! operators come from it. `tests/gate.rs` runs them.
//!
//! ```
//! use aneforge::{DType, Graph};
//! use aneforge_own_operator::SoftShrink;
//!
//! let graph = Graph::new();
//! let x = graph.input("x", DType::Fp16, &[2, 3]);
//! assert_eq!(x.soft_shrink(0.5).shape()?, [2, 3]);
//! let error = x.soft_shrink(-1.0).check().unwrap_err().to_string();
//! assert!(error.starts_with("soft_shrink breaks rule C1"));
//! # Ok::<(), aneforge::GraphError>(())
//! ```
#![forbid(unsafe_code)]

use aneforge::Tensor;
use aneforge::core::op::{Case, GraphOp, Vjp, direct, domain, drawn, float, given, rule};
use aneforge::core::{Arg, Attribute};
use aneforge::mil::op::Default;

/// Soft shrinkage: `x` moved towards zero by `lambd`, and zero where it is nearer to zero than that.
pub static SOFT_SHRINK: GraphOp = GraphOp {
    // PyTorch's name for it.
    attributes: &[float("lambd", 0.5)],
    constraints: &[rule(
        "C1",
        "lambd is at least 0 and at most 65504: for growth away from zero, add sign(x) times a number",
        |site| site.float("lambd").is_some_and(|lambd| (0.0..=65504.0).contains(&lambd)),
        Case::refused(&[drawn("x", &[2, 3])], &[("lambd", Default::Float(-1.0))]),
    )],
    // What is subtracted is x itself near zero, and lambd with x's sign beyond: two operations that every engine has.
    lower: |lowering, site| {
        let (x, lambd) = (site.value("x")?, site.float("lambd").unwrap_or(0.0));
        let end = |value| Arg::Float(site.dtype("x"), value);
        let near = lowering.op("clip", &[("x", x.into()), ("alpha", end(-lambd)), ("beta", end(lambd))])?;
        Ok(vec![lowering.op("sub", &[("x", x.into()), ("y", near.into())])?])
    },
    vjp: Vjp::Rule(|backward| {
        // The slope is 1 where something is left, else 0.
        let (x, grad) = (backward.input("x"), backward.grad());
        let lambd = backward.site().float("lambd").unwrap_or(0.0);
        let left = x.abs().greater(&x.constant_like(lambd));
        backward.give("x", left.select(&grad, &x.constant_like(0.0)));
    }),
    // Tests compare the slope with a difference quotient, which has no meaning at the kinks of the default lambd.
    domain: domain(-2.0, 2.0, &[-0.5, 0.5, -1.0, 1.0]),
    tolerance: 1e-3,
    cases: &[
        Case::values(
            "both_sides_and_between",
            &[given("x", &[5], &[-2.0, -0.5, 0.25, 0.75, 3.0])],
            &[],
            (&[5], &[-1.5, 0.0, 0.0, 0.25, 2.5]),
            "torch.nn.functional.softshrink, PyTorch 2",
        ),
        Case::shape("wider", &[drawn("x", &[2, 3, 4])], &[("lambd", Default::Float(1.0))], &[2, 3, 4]),
    ],
    ..direct("soft_shrink", "x moved towards zero by lambd, zero where it is nearer than that.")
};

/// The method that makes the operator look like the others.
pub trait SoftShrink {
    /// Moved towards zero by `lambd`, zero where nearer than that.
    fn soft_shrink(&self, lambd: f64) -> Tensor;
}

impl SoftShrink for Tensor {
    fn soft_shrink(&self, lambd: f64) -> Tensor {
        self.graph().apply_one(&SOFT_SHRINK, &[self.into()], &[("lambd", Attribute::from(lambd))])
    }
}
