//! Plain Rust over arrays of four lanes: every processor, and the check on the others.

use half::f16;

use super::{Level, Simd};

/// Four lanes in arrays; the compiler vectorises what the baseline instruction set allows.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const LANES: usize = 4;
type F = [f32; LANES];
type I = [i32; LANES];
type M = [bool; LANES];
type D = [f64; LANES / 2];

#[inline(always)]
fn map<A: Copy, B: Copy, C: Copy + Default, const N: usize>(a: [A; N], b: [B; N], f: impl Fn(A, B) -> C) -> [C; N] {
    let mut out = [C::default(); N];
    for lane in 0..N {
        out[lane] = f(a[lane], b[lane]);
    }
    out
}

/// Whether the baseline target has a fused multiply-add; elsewhere `mul_add` is a slow call.
const HAS_FMA: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

#[inline(always)]
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    if HAS_FMA { a.mul_add(b, c) } else { a * b + c }
}

impl Simd for Portable {
    const LANES: usize = LANES;
    const FUSED: bool = HAS_FMA;
    const ROWS: usize = 4;
    const EXACT_ROWS: usize = 4;
    const WIDE_ROWS: usize = 2;
    type F = F;
    type I = I;
    type M = M;
    type D = D;

    #[inline(always)]
    fn level(self) -> Level {
        Level::PORTABLE
    }
    #[inline(always)]
    fn splat(self, value: f32) -> F {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> F {
        // SAFETY: the caller promises LANES readable values; an array has no padding.
        unsafe { from.cast::<F>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, value: F) {
        // SAFETY: the caller promises LANES writable values.
        unsafe { to.cast::<F>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn load_half(self, from: *const u16) -> F {
        // SAFETY: the caller promises LANES readable values.
        let halves = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        halves.map(|bits| f16::from_bits(bits).to_f32())
    }
    #[inline(always)]
    unsafe fn store_half(self, to: *mut u16, value: F) {
        let halves = value.map(|v| f16::from_f32(v).to_bits());
        // SAFETY: the caller promises LANES writable values.
        unsafe { to.cast::<[u16; LANES]>().write_unaligned(halves) }
    }
    #[inline(always)]
    unsafe fn store_pairs(self, to: *mut f32, x: F, t: F) {
        let mut pairs = [[0.0; 2]; LANES];
        for lane in 0..LANES {
            pairs[lane] = [x[lane], t[lane]];
        }
        // SAFETY: the caller promises twice LANES writable values.
        unsafe { to.cast::<[[f32; 2]; LANES]>().write_unaligned(pairs) }
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        map(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        map(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        map(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        map(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        map(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        map(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        let mut out = c;
        for lane in 0..LANES {
            out[lane] = multiply_add(a[lane], b[lane], c[lane]);
        }
        out
    }
    #[inline(always)]
    fn fma_where(self, keep: M, a: F, b: F, c: F) -> F {
        let mut out = c;
        for lane in 0..LANES {
            let a = if keep[lane] { a[lane] } else { 0.0 };
            out[lane] = multiply_add(a, b[lane], c[lane]);
        }
        out
    }
    #[inline(always)]
    fn to_int(self, a: F) -> I {
        a.map(|v| v as i32)
    }
    #[inline(always)]
    fn to_int_nearest(self, a: F) -> I {
        a.map(|v| v.round_ties_even() as i32)
    }
    #[inline(always)]
    fn to_float(self, a: I) -> F {
        a.map(|v| v as f32)
    }
    #[inline(always)]
    fn bits(self, a: F) -> I {
        a.map(|v| v.to_bits() as i32)
    }
    #[inline(always)]
    fn from_bits(self, a: I) -> F {
        a.map(|v| f32::from_bits(v as u32))
    }
    #[inline(always)]
    fn splat_int(self, value: i32) -> I {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn load_int(self, from: *const i32) -> I {
        // SAFETY: the caller promises LANES readable values.
        unsafe { from.cast::<I>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_int(self, to: *mut i32, value: I) {
        // SAFETY: the caller promises LANES writable values.
        unsafe { to.cast::<I>().write_unaligned(value) }
    }
    #[inline(always)]
    fn add_int(self, a: I, b: I) -> I {
        map(a, b, i32::wrapping_add)
    }
    #[inline(always)]
    fn sub_int(self, a: I, b: I) -> I {
        map(a, b, i32::wrapping_sub)
    }
    #[inline(always)]
    fn and(self, a: I, b: I) -> I {
        map(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn or(self, a: I, b: I) -> I {
        map(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn xor(self, a: I, b: I) -> I {
        map(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn shift_left<const BITS: u32>(self, a: I) -> I {
        a.map(|v| v << BITS)
    }
    #[inline(always)]
    fn shift_right<const BITS: u32>(self, a: I) -> I {
        a.map(|v| ((v as u32) >> BITS) as i32)
    }
    #[inline(always)]
    fn shift_right_signed<const BITS: u32>(self, a: I) -> I {
        a.map(|v| v >> BITS)
    }
    #[inline(always)]
    fn max_int(self, a: I, b: I) -> I {
        map(a, b, Ord::max)
    }
    #[inline(always)]
    fn less_equal(self, a: F, b: F) -> M {
        map(a, b, |a, b| a <= b)
    }
    #[inline(always)]
    fn less(self, a: F, b: F) -> M {
        map(a, b, |a, b| a < b)
    }
    #[inline(always)]
    fn greater_int(self, a: I, b: I) -> M {
        map(a, b, |a, b| a > b)
    }
    #[inline(always)]
    fn and_mask(self, a: M, b: M) -> M {
        map(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn or_mask(self, a: M, b: M) -> M {
        map(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn select(self, mask: M, a: F, b: F) -> F {
        let mut out = b;
        for lane in 0..LANES {
            out[lane] = if mask[lane] { a[lane] } else { b[lane] };
        }
        out
    }
    #[inline(always)]
    fn select_int(self, mask: M, a: I, b: I) -> I {
        let mut out = b;
        for lane in 0..LANES {
            out[lane] = if mask[lane] { a[lane] } else { b[lane] };
        }
        out
    }
    #[inline(always)]
    fn sum(self, a: F) -> f32 {
        a.iter().sum()
    }
    #[inline(always)]
    fn largest(self, a: F) -> f32 {
        a.iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }
    #[inline(always)]
    fn splat_wide(self, value: f64) -> D {
        [value; LANES / 2]
    }
    #[inline(always)]
    unsafe fn load_wide(self, from: *const f32) -> D {
        // SAFETY: the caller promises LANES / 2 readable values.
        unsafe { from.cast::<[f32; LANES / 2]>().read_unaligned() }
            .map(|value| f64::from(f32::from_bits(value.to_bits() & !0x1fff)))
    }
    #[inline(always)]
    unsafe fn store_wide(self, to: *mut f64, value: D) {
        // SAFETY: the caller promises LANES / 2 writable values.
        unsafe { to.cast::<D>().write_unaligned(value) }
    }
    #[inline(always)]
    fn sub_wide(self, a: D, b: D) -> D {
        map(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn fma_wide(self, a: D, b: D, c: D) -> D {
        let mut out = c;
        for lane in 0..LANES / 2 {
            out[lane] = if HAS_FMA { a[lane].mul_add(b[lane], c[lane]) } else { a[lane] * b[lane] + c[lane] };
        }
        out
    }
    #[inline(always)]
    fn keep_wide(self, threshold: D, w: D, x: D) -> D {
        let mut out = x;
        for lane in 0..LANES / 2 {
            out[lane] = if threshold[lane] <= w[lane].abs() { x[lane] } else { 0.0 };
        }
        out
    }
}
