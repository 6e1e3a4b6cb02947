//! Layers with named parameters. A module keeps handles only: the same one serves training and inference, in any graph.

mod attention;
mod layers;
mod norm;

pub use attention::{Attention, AttentionOptions, Mlp, RopeStyle, SwiGlu, rope};
pub use layers::{Conv2d, Embedding, Linear};
pub use norm::{BatchNorm, GroupNorm, LayerNorm, RmsNorm};
