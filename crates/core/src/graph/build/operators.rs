//! `+ - * /` and unary minus, between tensors and with numbers on either side.
//!
//! On the right stands any number that converts to f64. On the left stands f64 alone: with f32 beside it the type of a literal in
//! `(1.0 - &x).exp()` would be ambiguous.

use crate::graph::Tensor;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// One operator between tensors, owned or borrowed, and with numbers.
macro_rules! operator {
    ($trait:ident, $method:ident, $builder:ident) => {
        impl $trait<&Tensor> for &Tensor {
            type Output = Tensor;
            fn $method(self, other: &Tensor) -> Tensor {
                self.$builder(other)
            }
        }
        impl $trait<Tensor> for &Tensor {
            type Output = Tensor;
            fn $method(self, other: Tensor) -> Tensor {
                self.$builder(&other)
            }
        }
        impl $trait<&Tensor> for Tensor {
            type Output = Tensor;
            fn $method(self, other: &Tensor) -> Tensor {
                Tensor::$builder(&self, other)
            }
        }
        impl $trait<Tensor> for Tensor {
            type Output = Tensor;
            fn $method(self, other: Tensor) -> Tensor {
                Tensor::$builder(&self, &other)
            }
        }
        impl<N: Into<f64>> $trait<N> for &Tensor {
            type Output = Tensor;
            fn $method(self, other: N) -> Tensor {
                self.$builder(&self.constant_like(other))
            }
        }
        impl<N: Into<f64>> $trait<N> for Tensor {
            type Output = Tensor;
            fn $method(self, other: N) -> Tensor {
                Tensor::$builder(&self, &self.constant_like(other))
            }
        }
        impl $trait<&Tensor> for f64 {
            type Output = Tensor;
            fn $method(self, other: &Tensor) -> Tensor {
                other.constant_like(self).$builder(other)
            }
        }
        impl $trait<Tensor> for f64 {
            type Output = Tensor;
            fn $method(self, other: Tensor) -> Tensor {
                Tensor::$builder(&other.constant_like(self), &other)
            }
        }
    };
}

operator!(Add, add, add);
operator!(Sub, sub, sub);
operator!(Mul, mul, mul);
operator!(Div, div, real_div);

impl Neg for &Tensor {
    type Output = Tensor;
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}

impl Neg for Tensor {
    type Output = Tensor;
    fn neg(self) -> Tensor {
        Tensor::neg(&self)
    }
}
