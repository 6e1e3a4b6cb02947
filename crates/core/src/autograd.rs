//! Reverse-mode derivatives as graph nodes.

use crate::Tensor;
use std::marker::PhantomData;

/// What the derivative rule of an operator works with.
#[derive(Debug)]
pub struct Backward<'a> {
    grads: Vec<Option<Tensor>>,
    marker: PhantomData<&'a ()>,
}
