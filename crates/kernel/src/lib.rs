//! The micro-kernel family of the `cpu` and `emulator` devices.
//!
//! Plain slices and small structs in, results out; nothing here knows the MIL language. Storage
//! is fp16, activations are NHWC or row-major. Every function takes a [`Context`] (threads and
//! instruction set) and allocates nothing unless it says so: plans are made by constructors,
//! scratch is passed in.
//!
//! | module | what it offers |
//! |---|---|
//! | [`pool`] | [`Pool`]: fork-join threads, [`Pool::run`] |
//! | [`simd`] | [`Level`]: instruction set, chosen once or given by tests |
//! | [`types`] | [`Context`], [`Rows`], [`Run`], [`Epilogue`], [`Activation`], [`Output`], [`Operand`] |
//! | [`convert`] | fp16 <-> f32 slices |
//! | [`pack`] | [`PackedWeights`] (fp16 panels) |
//! | [`gemm`] | [`gemm::gemm`], [`gemm::gemm_f32`], [`gemm::dense`]: rows of a scratch times packed weights |
//! | [`matmul`] | [`matmul::matmul`] of two activations (strides for transposes, heads), [`matmul::attention`] |
//! | [`conv`] | [`conv::Conv2d`]: 2-D convolution, NHWC, groups and depthwise included |
//! | [`exact`] | the engine's arithmetic: [`exact::scalar`] (twin), [`exact::dense`], [`exact::matmul`], [`exact::ExactConv2d`] (direct and Winograd) |
//! | [`pointwise`] | element-wise operations, fast (f32, ties to even) and [`pointwise::exact`] |
//! | [`norm`] | softmax, layer norm, rms norm over the last axis |
//! | [`spatial`] | pooling, transposition, layout changes |
//! | [`pool_gradient`] | the gradient of a maximum over windows side by side |
//!
//! Signatures (`cx` is `Context<'_>`, `ep` is `&Epilogue<'_>`; lengths are asserted):
//!
//! ```text
//! convert::widen(cx, &[f16], &mut [f32])            convert::narrow(cx, &[f32], &mut [f16])
//!
//! PackedWeights::from_rows(level, n, k, &[f16] /* [N][K] */) -> PackedWeights
//! PackedWeights::from_columns(level, n, k, &[f16] /* [K][N] */)
//! PackedWeights::from_fn(level, n, k, |column, depth| f16)
//!
//! gemm::gemm(cx, &[f32] scratch, Rows, &PackedWeights, ep, Output<f16>)
//! gemm::gemm_f32(cx, &[f32] scratch, Rows, &PackedWeights, ep, Output<f32>)
//! gemm::dense(cx, &[f16] /* [M][K] */, m, &PackedWeights, ep, &mut [f32] /* M * K */, Output<f16>)
//!
//! MatmulShape { batch: [usize; 2], m, n, k }
//! matmul::scratch_len(level, &shape) -> usize
//! matmul::matmul(cx, MatmulShape, x: Operand /* [M][K] */, y: Operand /* [K][N] */, ep,
//!                &mut [f32], out: &mut [f16], out_place: Place)
//! AttentionShape { batch, heads, queries, keys, width, value_width }
//! matmul::attention_scratch_len(level, threads, &shape) -> usize
//! matmul::attention(cx, AttentionShape, q, k, v: Operand /* [S][D], batch_strides = (batch, head) */,
//!                scale: f32, mask: Option<Operand> /* [queries][keys], added to scaled scores */,
//!                &mut [f32], out: &mut [f16], Place)
//! Place { offset, batch_strides: [usize; 2], row_stride }
//!
//! ConvShape { batch, input: [h, w], channels_in, channels_out, kernel, stride, dilation: [h, w],
//!             pads: [top, bottom, left, right], groups }
//! Conv2d::new(level, ConvShape, &[f16] /* OIHW */) -> Result<Conv2d, ShapeError>
//!   .output() -> [h, w]   .scratch_len() -> usize
//!   .run(cx, &[f16], Layout /* Nhwc | Nchw */, ep, &mut [f32], Output<f16> /* rows are pixels */)
//!
//! exact::MacRules { subnormal_inputs: Subnormals::{Counted, Zero}, saturate_partials: bool }
//! ExactWeights::from_rows / from_columns / from_fn  (level, n, k, .., rules)
//! exact::dense(cx, &[f16], m, &ExactWeights, ep, &mut [f32] /* exact::scratch_len(m * k) */, Output<f16>)
//! exact::matmul(cx, MatmulShape, x, y, rules, ep, &mut exact::MatmulScratch, &mut [f16], Place)
//! ExactConv2d::new(level, ConvShape, &[f16], rules, Form::{Direct, Winograd}) ; rest like Conv2d
//! exact::scalar::{product, dot, round_units, half_away, add, sub, mul, div, ...}  the i64 twin
//!   In an exact epilogue every stage rounds to fp16 half away, as a separate operation would.
//!
//! pointwise::binary(cx, Binary::{Add, Sub, Mul, Div, Max, Min}, &[f16], Other, &mut [f16])
//!   Other::{Same(&[f16]), Row(&[f16]) /* repeated */, Scalar(f16)}
//! pointwise::unary(cx, Activation, &[f16], &mut [f16])
//! pointwise::exact::binary / relu / clip  same shapes, the engine's rounding
//!
//! norm::softmax(cx, width, &[f16], &mut [f16])
//! norm::layer_norm(cx, width, &[f16], Option<&[f16]> residual, gamma: Option<&[f32]>,
//!                  beta: Option<&[f32]>, epsilon, &mut [f16])
//! norm::rms_norm(cx, width, &[f16], gamma, epsilon, &mut [f16])
//!
//! spatial::max_pool(cx, PoolShape, &[f16], &mut [f16]) -> Result    spatial::average_pool(cx, PoolShape, ..)
//! spatial::global_average(cx, batch, pixels, channels, &[f16], &mut [f16])
//! spatial::transpose(cx, batch, rows, columns, &[f16], &mut [f16])   also NCHW <-> NHWC
//! ```

// Register tiles are indexed by constants that the compiler unrolls, and a closure inside a vector
// kernel is compiled without its instruction set.
#![allow(clippy::needless_range_loop, clippy::manual_map)]

pub mod conv;
pub mod convert;
mod depthwise;
mod epilogue;
pub mod exact;
pub mod gemm;
mod math;
pub mod matmul;
pub mod norm;
pub mod pack;
pub mod pointwise;
pub mod pool;
pub mod pool_gradient;
pub mod simd;
pub mod spatial;
#[cfg(test)]
mod tests;
mod tile;
pub mod types;

pub use pack::PackedWeights;
pub use pool::Pool;
pub use simd::Level;
pub use types::{Activation, Bases, Context, Epilogue, Operand, Output, Residual, Rows, Run};
