//! Functions of one value and of two.

use crate::graph::{Argument, Tensor};
use crate::op::{self, GraphOp};
use crate::{Attribute, DType};

/// Methods that take nothing but the tensor.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])* pub fn $name(&self) -> Tensor { self.with(&op::$op, &[]) })*
        }
    };
}

/// Methods that take another tensor of the same graph, broadcast against this one.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])* pub fn $name(&self, other: &Tensor) -> Tensor { self.against(&op::$op, other) })*
        }
    };
}

unary! {
    /// Magnitude.
    abs => ABS;
    /// -1, 0 or 1.
    sign => SIGN;
    /// The largest integer not above.
    floor => FLOOR;
    /// The smallest integer not below.
    ceil => CEIL;
    /// The nearest integer.
    round => ROUND;
    /// Square.
    square => SQUARE;
    /// Square root.
    sqrt => SQRT;
    /// e to the power of the value.
    exp => EXP;
    /// 2 to the power of the value.
    exp2 => EXP2;
    /// Gauss error function.
    erf => ERF;
    /// Hyperbolic tangent.
    tanh => TANH;
    /// Sine of radians.
    sin => SIN;
    /// Cosine of radians.
    cos => COS;
    /// Inverse tangent in radians.
    atan => ATAN;
    /// The value where positive, else 0.
    relu => RELU;
    /// The value kept between 0 and 6.
    relu6 => RELU6;
    /// Logistic function.
    sigmoid => SIGMOID;
    /// The value times its sigmoid.
    silu => SILU;
    /// `log(1 + exp(x))`.
    softplus => SOFTPLUS;
    /// `x / (1 + |x|)`.
    softsign => SOFTSIGN;
    /// Negation of a mask.
    logical_not => LOGICAL_NOT;
}

binary! {
    /// Sum.
    add => ADD;
    /// Difference.
    sub => SUB;
    /// Product, element by element.
    mul => MUL;
    /// Quotient.
    real_div => REAL_DIV;
    /// The larger of two.
    maximum => MAXIMUM;
    /// The smaller of two.
    minimum => MINIMUM;
    /// Power.
    pow => POW;
    /// Mask of `self > other`.
    greater => GREATER;
    /// Mask of `self >= other`.
    greater_equal => GREATER_EQUAL;
    /// Mask of `self < other`.
    less => LESS;
    /// Mask of `self <= other`.
    less_equal => LESS_EQUAL;
    /// Mask of equality.
    equal => EQUAL;
    /// Mask of difference.
    not_equal => NOT_EQUAL;
}

impl Tensor {
    /// Applies an operator to this tensor alone.
    pub(crate) fn with(&self, op: &'static GraphOp, attributes: &[(&str, Attribute)]) -> Tensor {
        self.graph().apply_one(op, &[Argument::One(self)], attributes)
    }

    pub(crate) fn against(&self, op: &'static GraphOp, other: &Tensor) -> Tensor {
        self.graph().apply_one(op, &[Argument::One(self), Argument::One(other)], &[])
    }

    /// A scalar constant of this tensor's element type.
    pub fn constant_like(&self, value: impl Into<f64>) -> Tensor {
        match self.dtype() {
            Ok(dtype) => self.graph().values(dtype, &[], &[value.into()]),
            Err(_) => self.clone(),
        }
    }

    /// Plus a number.
    pub fn adds(&self, value: impl Into<f64>) -> Tensor {
        self.add(&self.constant_like(value))
    }

    /// Times a number.
    pub fn muls(&self, value: impl Into<f64>) -> Tensor {
        self.mul(&self.constant_like(value))
    }

    /// Times a number; the same as [`Self::muls`].
    pub fn scale(&self, factor: impl Into<f64>) -> Tensor {
        self.muls(factor)
    }

    /// Times -1.
    pub fn neg(&self) -> Tensor {
        self.muls(-1.0)
    }

    /// `1 / sqrt(x + epsilon)`.
    pub fn rsqrt(&self, epsilon: impl Into<f64>) -> Tensor {
        self.with(&op::RSQRT, &[("epsilon", epsilon.into().into())])
    }

    /// `1 / (x + epsilon)`.
    pub fn inverse(&self, epsilon: impl Into<f64>) -> Tensor {
        self.with(&op::INVERSE, &[("epsilon", epsilon.into().into())])
    }

    /// Natural logarithm of `x + epsilon`.
    pub fn log(&self, epsilon: impl Into<f64>) -> Tensor {
        self.with(&op::LOG, &[("epsilon", epsilon.into().into())])
    }

    /// The value kept between two ends.
    pub fn clip(&self, low: impl Into<f64>, high: impl Into<f64>) -> Tensor {
        self.with(&op::CLIP, &[("alpha", low.into().into()), ("beta", high.into().into())])
    }

    /// The larger of the value and a number.
    pub fn threshold(&self, alpha: impl Into<f64>) -> Tensor {
        self.with(&op::THRESHOLD, &[("alpha", alpha.into().into())])
    }

    /// The value where it is at least `alpha`, else 0.
    pub fn thresholded_relu(&self, alpha: impl Into<f64>) -> Tensor {
        self.with(&op::THRESHOLDED_RELU, &[("alpha", alpha.into().into())])
    }

    /// Gaussian error linear unit; `mode` is `EXACT`, `TANH_APPROXIMATION` or `SIGMOID_APPROXIMATION`.
    pub fn gelu(&self, mode: &str) -> Tensor {
        self.with(&op::GELU, &[("mode", mode.into())])
    }

    /// The value where not negative, else `alpha (exp(x) - 1)`.
    pub fn elu(&self, alpha: impl Into<f64>) -> Tensor {
        self.with(&op::ELU, &[("alpha", alpha.into().into())])
    }

    /// The value where not negative, else `alpha` times it.
    pub fn leaky_relu(&self, alpha: impl Into<f64>) -> Tensor {
        self.with(&op::LEAKY_RELU, &[("alpha", alpha.into().into())])
    }

    /// The value where not negative, else a constant per channel (`[C]`, axis 1) times it.
    pub fn prelu(&self, alpha: &Tensor) -> Tensor {
        self.against(&op::PRELU, alpha)
    }

    /// `alpha log(1 + exp(beta x))` with constants per channel (`[C]`, axis 1).
    pub fn softplus_parametric(&self, alpha: &Tensor, beta: &Tensor) -> Tensor {
        let inputs = [Argument::One(self), Argument::One(alpha), Argument::One(beta)];
        self.graph().apply_one(&op::SOFTPLUS_PARAMETRIC, &inputs, &[])
    }

    /// `alpha tanh(beta x)`.
    pub fn scaled_tanh(&self, alpha: impl Into<f64>, beta: impl Into<f64>) -> Tensor {
        self.with(&op::SCALED_TANH, &[("alpha", alpha.into().into()), ("beta", beta.into().into())])
    }

    /// `alpha x + beta` kept between 0 and 1.
    pub fn sigmoid_hard(&self, alpha: impl Into<f64>, beta: impl Into<f64>) -> Tensor {
        self.with(&op::SIGMOID_HARD, &[("alpha", alpha.into().into()), ("beta", beta.into().into())])
    }

    /// The smaller of `beta` and the leaky rectifier with slope `alpha`.
    pub fn clamped_relu(&self, alpha: impl Into<f64>, beta: impl Into<f64>) -> Tensor {
        self.with(&op::CLAMPED_RELU, &[("alpha", alpha.into().into()), ("beta", beta.into().into())])
    }

    /// `alpha x + beta`.
    pub fn linear_activation(&self, alpha: impl Into<f64>, beta: impl Into<f64>) -> Tensor {
        self.with(&op::LINEAR_ACTIVATION, &[("alpha", alpha.into().into()), ("beta", beta.into().into())])
    }

    /// `exp(x)` divided by its sum along an axis.
    pub fn softmax(&self, axis: i64) -> Tensor {
        self.with(&op::SOFTMAX, &[("axis", self.front(axis).into())])
    }

    /// Conversion to another element type.
    pub fn cast(&self, dtype: DType) -> Tensor {
        if self.dtype().is_ok_and(|own| own == dtype) {
            self.clone()
        } else {
            self.with(&op::CAST, &[("dtype", dtype.keyword().into())])
        }
    }

    /// Where this mask is true `a`, else `b`, both broadcast.
    pub fn select(&self, a: &Tensor, b: &Tensor) -> Tensor {
        self.graph().apply_one(&op::SELECT, &[Argument::One(self), Argument::One(a), Argument::One(b)], &[])
    }

    /// An axis counted from the front, so that both spellings give one node; as it is where it is out of range.
    pub(crate) fn front(&self, axis: i64) -> i64 {
        let resolved = self.rank().ok().and_then(|rank| crate::op::resolve_axis(axis, rank));
        resolved.map_or(axis, |axis| axis as i64)
    }
}
