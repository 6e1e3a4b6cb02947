//! One method per operator on [`Tensor`](super::Tensor).

mod arithmetic;
mod elementwise;
mod functions;
mod index;
mod layers;
mod native;
mod operators;
mod places;
mod shapes;
mod special;
mod window;

pub use functions::{Heads, attention, concat, cross_attention, geglu, mha, stack};
pub use index::{Index, IntoIndices};
pub use native::sdpa;
pub use special::einsum;
pub use window::Window;
