//! The vector vocabulary of the kernels and the choice of instruction set.
//!
//! A kernel is written once, generic over `Simd`, and runs at every [`Level`]. The
//! implementors are zero-sized tokens: a token for an instruction set exists only after the
//! processor was asked for it, which is what makes its methods safe to call. `Level::dispatch`
//! is the only place that enters a function compiled for more than the baseline instructions;
//! everything generic is `#[inline(always)]` so that it ends up inside such a function.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod level;
mod portable;

pub use level::Level;

/// Operations on vectors of `LANES` f32, i32 (held as `u32` bit patterns where that reads
/// better) and half as many f64.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// f32 lanes of one vector.
    const LANES: usize;
    /// Whether [`Simd::fma`] rounds once. Where it does not, the exact path nudges the product
    /// instead of the weight.
    const FUSED: bool;
    /// Rows of the f32 micro tile that fit the register file with two vectors per row.
    const ROWS: usize;
    /// The same for the masked exact tile.
    const EXACT_ROWS: usize;
    /// The same for the f64 tile (four half vectors per row).
    const WIDE_ROWS: usize;

    /// f32 lanes.
    type F: Copy;
    /// 32-bit integer lanes.
    type I: Copy;
    /// One truth value per 32-bit lane.
    type M: Copy;
    /// f64 lanes, half as many.
    type D: Copy;

    /// The level of this token.
    fn level(self) -> Level;

    fn splat(self, value: f32) -> Self::F;
    /// # Safety
    /// `from` must be readable for `LANES` values. No alignment is needed (all loads, stores).
    unsafe fn load(self, from: *const f32) -> Self::F;
    /// # Safety
    /// `to` must be writable for `LANES` values.
    unsafe fn store(self, to: *mut f32, value: Self::F);
    /// Widens `LANES` fp16 bit patterns.
    /// # Safety
    /// `from` must be readable for `LANES` values.
    unsafe fn load_half(self, from: *const u16) -> Self::F;
    /// Rounds half to even to fp16 bit patterns.
    /// # Safety
    /// `to` must be writable for `LANES` values.
    unsafe fn store_half(self, to: *mut u16, value: Self::F);

    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// Stores `x0 t0 x1 t1 ..`, twice `LANES` values.
    /// # Safety
    /// `to` must be writable for `2 * LANES` values.
    unsafe fn store_pairs(self, to: *mut f32, x: Self::F, t: Self::F);
    /// `a < b ? a : b`, so `b` where either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a > b ? a : b`, so `b` where either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once where [`Simd::FUSED`].
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `keep ? a * b + c : c`.
    fn fma_where(self, keep: Self::M, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Truncation; lanes outside of i32 give an unspecified value.
    fn to_int(self, a: Self::F) -> Self::I;
    /// Nearest integer, ties to even.
    fn to_int_nearest(self, a: Self::F) -> Self::I;
    fn to_float(self, a: Self::I) -> Self::F;
    fn bits(self, a: Self::F) -> Self::I;
    #[allow(clippy::wrong_self_convention)]
    fn from_bits(self, a: Self::I) -> Self::F;

    fn splat_int(self, value: i32) -> Self::I;
    /// # Safety
    /// `from` must be readable for `LANES` values.
    unsafe fn load_int(self, from: *const i32) -> Self::I;
    /// # Safety
    /// `to` must be writable for `LANES` values.
    unsafe fn store_int(self, to: *mut i32, value: Self::I);
    /// Wrapping sum.
    fn add_int(self, a: Self::I, b: Self::I) -> Self::I;
    /// Wrapping difference.
    fn sub_int(self, a: Self::I, b: Self::I) -> Self::I;
    fn and(self, a: Self::I, b: Self::I) -> Self::I;
    fn or(self, a: Self::I, b: Self::I) -> Self::I;
    fn xor(self, a: Self::I, b: Self::I) -> Self::I;
    fn shift_left<const BITS: u32>(self, a: Self::I) -> Self::I;
    /// Fills with zeros.
    fn shift_right<const BITS: u32>(self, a: Self::I) -> Self::I;
    /// Fills with the sign.
    fn shift_right_signed<const BITS: u32>(self, a: Self::I) -> Self::I;
    fn max_int(self, a: Self::I, b: Self::I) -> Self::I;

    /// Ordered: false where either is NaN.
    fn less_equal(self, a: Self::F, b: Self::F) -> Self::M;
    /// Ordered: false where either is NaN.
    fn less(self, a: Self::F, b: Self::F) -> Self::M;
    fn greater_int(self, a: Self::I, b: Self::I) -> Self::M;
    fn and_mask(self, a: Self::M, b: Self::M) -> Self::M;
    fn or_mask(self, a: Self::M, b: Self::M) -> Self::M;
    /// `mask ? a : b`.
    fn select(self, mask: Self::M, a: Self::F, b: Self::F) -> Self::F;
    /// `mask ? a : b`.
    fn select_int(self, mask: Self::M, a: Self::I, b: Self::I) -> Self::I;

    fn sum(self, a: Self::F) -> f32;
    fn largest(self, a: Self::F) -> f32;

    fn splat_wide(self, value: f64) -> Self::D;
    /// Widens `LANES / 2` f32 that hold fp16 values; lower bits (a nudge) are cleared.
    /// # Safety
    /// `from` must be readable for `LANES / 2` values.
    unsafe fn load_wide(self, from: *const f32) -> Self::D;
    /// # Safety
    /// `to` must be writable for `LANES / 2` values.
    unsafe fn store_wide(self, to: *mut f64, value: Self::D);
    fn sub_wide(self, a: Self::D, b: Self::D) -> Self::D;
    /// `a * b + c`. Unfused, `a * b` is rounded to f64 first; a factor that was moved away from zero
    /// by one place still leaves the product at least one place away.
    fn fma_wide(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D;
    /// `threshold <= |w|` decides per lane whether `x` is kept or becomes 0.
    fn keep_wide(self, threshold: Self::D, w: Self::D, x: Self::D) -> Self::D;
    /// Absolute value.
    #[inline(always)]
    fn abs(self, a: Self::F) -> Self::F {
        self.from_bits(self.and(self.bits(a), self.splat_int(0x7fff_ffff)))
    }
}

/// Work that runs at any level.
pub(crate) trait Kernel {
    /// What it gives back.
    type Output;
    /// Does the work. Implementations must be `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}
