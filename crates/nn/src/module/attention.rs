//! Attention with rotary positions and shared key heads, and the dense blocks of transformers.

use super::Linear;
use crate::{NnError, Pass, Scope};
use aneforge_core::{DType, Tensor, concat};

/// Which elements of a head are rotated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeStyle {
    /// Element `i` with `i + width / 2`, as in Hugging Face's Llama.
    Halves,
    /// Element `2 i` with `2 i + 1`, as in the RoFormer paper (arXiv 2104.09864) and llama2.c.
    Pairs,
}

/// How an [`Attention`] is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionOptions {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads: query head `i` uses number `i / (heads / key_heads)`.
    pub key_heads: usize,
    /// Whether the projections have biases.
    pub bias: bool,
    /// Whether a position sees only itself and those before it.
    pub causal: bool,
    /// Base and style of rotary positions; none without it.
    pub rope: Option<(f64, RopeStyle)>,
}

impl AttentionOptions {
    /// As many key heads as query heads, no bias, no mask, no positions.
    pub fn new(heads: usize) -> Self {
        Self { heads, key_heads: heads, bias: false, causal: false, rope: None }
    }
}

/// Self-attention over `[batch, positions, width]`, with dense layers `q_proj`, `k_proj`, `v_proj` and `o_proj`.
#[derive(Clone, Debug)]
pub struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    head_width: usize,
    options: AttentionOptions,
}

impl Attention {
    /// Attention whose heads share `width`.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`], and [`NnError::Setting`] where the heads do not divide the width, the key heads the heads, or
    /// rotary positions meet heads of an odd width.
    pub fn new(scope: &mut Scope<'_>, width: usize, options: AttentionOptions) -> Result<Self, NnError> {
        let refuse = |what, got: usize, rule| Err(NnError::Setting { what, got: got.to_string(), rule });
        let AttentionOptions { heads, key_heads, bias, .. } = options;
        if heads == 0 || !width.is_multiple_of(heads) {
            return refuse("heads", heads, "the number of heads is positive and divides the width");
        }
        if key_heads == 0 || !heads.is_multiple_of(key_heads) {
            return refuse("key_heads", key_heads, "the number of key heads is positive and divides that of the heads");
        }
        let head_width = width / heads;
        if options.rope.is_some() && !head_width.is_multiple_of(2) {
            return refuse("width of a head", head_width, "rotary positions turn pairs: the width of a head is even");
        }
        let shared = key_heads * head_width;
        Ok(Self {
            query: Linear::new(&mut scope.scope("q_proj"), width, width, bias)?,
            key: Linear::new(&mut scope.scope("k_proj"), width, shared, bias)?,
            value: Linear::new(&mut scope.scope("v_proj"), width, shared, bias)?,
            output: Linear::new(&mut scope.scope("o_proj"), width, width, bias)?,
            head_width,
            options,
        })
    }

    /// Applies it to `[batch, positions, width]`. `mask` is added to the scores and broadcasts against
    /// `[batch, key heads, heads / key heads, positions, positions]`.
    pub fn apply(&self, pass: &Pass, x: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let Ok(&[batch, positions, _]) = x.shape().map(|shape| <&[usize; 3]>::try_from(shape).unwrap_or(&[0, 0, 0])) else {
            return x.clone();
        };
        let (batch, rows, width) = (batch as i64, positions as i64, self.head_width as i64);
        let (shared, ratio) = (self.options.key_heads as i64, (self.options.heads / self.options.key_heads) as i64);
        let turn = |tensor: Tensor| match self.options.rope {
            Some((base, style)) => rope(&tensor, base, style),
            None => tensor,
        };
        // Query heads of one key head lie side by side, so head i meets key head i / ratio by broadcasting.
        let split = |tensor: Tensor, heads: i64| tensor.reshape(&[batch, rows, heads, width]).transpose(&[0, 2, 1, 3]);
        let query = turn(split(self.query.apply(pass, x), shared * ratio)).reshape(&[batch, shared, ratio, rows, width]);
        let key = turn(split(self.key.apply(pass, x), shared)).expand_dims(2i64);
        let value = split(self.value.apply(pass, x), shared).expand_dims(2i64);
        let mut scores = query.muls((self.head_width as f64).sqrt().recip()).matmul_with(&key, false, true);
        if self.options.causal {
            scores = scores.add(&causal_mask(x, positions));
        }
        if let Some(mask) = mask {
            scores = scores.add(mask);
        }
        let mixed = scores.softmax(-1).matmul(&value).reshape(&[batch, shared * ratio, rows, width]);
        self.output.apply(pass, &mixed.transpose(&[0, 2, 1, 3]).reshape(&[batch, rows, shared * ratio * width]))
    }
}

/// 0 where a position may look, else a number that softmax turns into 0: far below every score, far inside fp16.
fn causal_mask(x: &Tensor, positions: usize) -> Tensor {
    const HIDDEN: f64 = -16384.0;
    let hidden = |place: usize| if place % positions > place / positions { HIDDEN } else { 0.0 };
    let values: Vec<f64> = (0..positions * positions).map(hidden).collect();
    x.graph().values(DType::Fp16, &[positions, positions], &values)
}

/// Rotary positions (arXiv 2104.09864) along the last two axes, `[..., positions, width]`: at position p, pair i is turned by
/// `p * base^(-2 i / width)`.
pub fn rope(x: &Tensor, base: f64, style: RopeStyle) -> Tensor {
    let Ok(shape) = x.shape().map(<[usize]>::to_vec) else { return x.clone() };
    let [.., positions, width] = *shape.as_slice() else { return x.clone() };
    let half = width / 2;
    let angle = |place: usize| {
        let (position, element) = (place / width, place % width);
        let pair = if style == RopeStyle::Halves { element % half.max(1) } else { element / 2 };
        position as f64 * base.powf(-2.0 * pair as f64 / width as f64)
    };
    // Minus the sine where an element takes its partner from behind.
    let sign = |place: usize| {
        let element = place % width;
        let first = if style == RopeStyle::Halves { element < half } else { element.is_multiple_of(2) };
        if first { -1.0 } else { 1.0 }
    };
    let table = |f: &dyn Fn(usize) -> f64| {
        let values: Vec<f64> = (0..positions * width).map(f).collect();
        x.graph().values(DType::Fp16, &[positions, width], &values)
    };
    let partner = match style {
        RopeStyle::Halves => {
            let halves = x.split(2, -1);
            halves.iter().rev().cloned().collect::<Vec<_>>()
        }
        RopeStyle::Pairs => {
            let mut apart: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
            let Some(last) = apart.pop() else { return x.clone() };
            // Leading axes are joined: a pair needs one axis more than the engine's five may leave.
            let rows: i64 = apart.iter().product();
            let pairs = x.reshape(&[rows, last / 2, 2]).split(2, -1);
            let swapped = concat(&pairs.iter().rev().cloned().collect::<Vec<_>>(), -1);
            apart.push(last);
            vec![swapped.reshape(&apart)]
        }
    };
    let partner = if partner.len() == 1 { partner[0].clone() } else { concat(&partner, -1) };
    x.mul(&table(&|place| angle(place).cos())).add(&partner.mul(&table(&|place| sign(place) * angle(place).sin())))
}

/// Two dense layers `fc1` and `fc2` with a gelu between them.
#[derive(Clone, Debug)]
pub struct Mlp {
    first: Linear,
    second: Linear,
}

impl Mlp {
    /// A block with `hidden` values between both layers.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`].
    pub fn new(scope: &mut Scope<'_>, width: usize, hidden: usize) -> Result<Self, NnError> {
        let first = Linear::new(&mut scope.scope("fc1"), width, hidden, true)?;
        Ok(Self { first, second: Linear::new(&mut scope.scope("fc2"), hidden, width, true)? })
    }

    /// Applies it to `[..., width]`.
    pub fn apply(&self, pass: &Pass, x: &Tensor) -> Tensor {
        self.second.apply(pass, &self.first.apply(pass, x).gelu("EXACT"))
    }
}

/// The gated block of Llama: `down(silu(gate(x)) * up(x))`, with `gate_proj`, `up_proj` and `down_proj` without biases.
#[derive(Clone, Debug)]
pub struct SwiGlu {
    gate: Linear,
    up: Linear,
    down: Linear,
}

impl SwiGlu {
    /// A block with `hidden` values inside.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`].
    pub fn new(scope: &mut Scope<'_>, width: usize, hidden: usize) -> Result<Self, NnError> {
        Ok(Self {
            gate: Linear::new(&mut scope.scope("gate_proj"), width, hidden, false)?,
            up: Linear::new(&mut scope.scope("up_proj"), width, hidden, false)?,
            down: Linear::new(&mut scope.scope("down_proj"), hidden, width, false)?,
        })
    }

    /// Applies it to `[..., width]`.
    pub fn apply(&self, pass: &Pass, x: &Tensor) -> Tensor {
        self.down.apply(pass, &self.gate.apply(pass, x).silu().mul(&self.up.apply(pass, x)))
    }
}
