//! Arithmetic written out, for functions that no engine has: every step is one MIL operation.

use crate::lower::{Arg, Lowering};
use crate::{DType, GraphError};
use aneforge_mil::ValueId;

/// One side of a step: a value, or a number in the element type of the formula.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Value(ValueId),
    Number(f64),
}

impl From<ValueId> for Side {
    fn from(value: ValueId) -> Self {
        Self::Value(value)
    }
}

impl From<f64> for Side {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// Result of a step.
pub(super) type Step = Result<ValueId, GraphError>;

/// A formula under construction.
pub(super) struct Steps<'l> {
    lowering: &'l mut Lowering,
    dtype: DType,
}

impl<'l> Steps<'l> {
    /// A formula whose numbers have the element type of `like`.
    pub fn new(lowering: &'l mut Lowering, like: ValueId) -> Self {
        let dtype = lowering.ty(like).dtype;
        Self { lowering, dtype }
    }

    fn argument(&self, side: impl Into<Side>) -> Arg {
        match side.into() {
            Side::Value(value) => value.into(),
            Side::Number(number) => Arg::Float(self.dtype, number),
        }
    }

    /// A function of one value.
    pub fn one(&mut self, op: &str, x: ValueId) -> Step {
        self.lowering.op(op, &[("x", x.into())])
    }

    /// A function of one value to which nothing is added inside.
    pub fn bare(&mut self, op: &str, x: ValueId) -> Step {
        let zero = self.argument(0.0);
        self.lowering.op(op, &[("x", x.into()), ("epsilon", zero)])
    }

    /// A function of two values.
    pub fn two(&mut self, op: &str, x: impl Into<Side>, y: impl Into<Side>) -> Step {
        let arguments = [("x", self.argument(x)), ("y", self.argument(y))];
        self.lowering.op(op, &arguments)
    }

    /// `a` where the mask is true, else `b`.
    pub fn select(&mut self, mask: ValueId, a: impl Into<Side>, b: impl Into<Side>) -> Step {
        let arguments = [("cond", mask.into()), ("a", self.argument(a)), ("b", self.argument(b))];
        self.lowering.op("select", &arguments)
    }

    /// `c0 + z (c1 + z (c2 + ...))`.
    pub fn polynomial(&mut self, z: ValueId, coefficients: &[f64]) -> Step {
        let Some((&last, rest)) = coefficients.split_last() else { return Ok(z) };
        let Some((&next, rest)) = rest.split_last() else { return Ok(z) };
        let mut sum = self.two("mul", z, last)?;
        sum = self.two("add", sum, next)?;
        for &coefficient in rest.iter().rev() {
            sum = self.two("mul", sum, z)?;
            sum = self.two("add", sum, coefficient)?;
        }
        Ok(sum)
    }

    /// `t + t^3 (c0 + c1 t^2 + ...)`: an odd function whose slope at 0 is 1.
    pub fn odd(&mut self, t: ValueId, coefficients: &[f64]) -> Step {
        let square = self.two("mul", t, t)?;
        let tail = self.polynomial(square, coefficients)?;
        let cube = self.two("mul", square, t)?;
        let bend = self.two("mul", cube, tail)?;
        self.two("add", t, bend)
    }
}
