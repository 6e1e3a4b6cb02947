//! Plain Rust over arrays of four lanes: every processor, and the check on the others.

use super::{Level, Simd};

/// Four lanes in arrays; the compiler vectorises what the baseline instruction set allows.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const LANES: usize = 4;
type F = [f32; LANES];
type I = [i32; LANES];
type M = [bool; LANES];
type D = [f64; LANES / 2];

/// Written out per lane: a loop here would be a loop in every kernel until late in the compiler.
#[inline(always)]
fn each<T: Copy, U>(a: [T; LANES], f: impl Fn(T) -> U) -> [U; LANES] {
    [f(a[0]), f(a[1]), f(a[2]), f(a[3])]
}

#[inline(always)]
fn map<A: Copy, B: Copy, C>(a: [A; LANES], b: [B; LANES], f: impl Fn(A, B) -> C) -> [C; LANES] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

#[inline(always)]
fn map3<A: Copy, B: Copy, C: Copy, T>(a: [A; LANES], b: [B; LANES], c: [C; LANES], f: impl Fn(A, B, C) -> T) -> [T; LANES] {
    [f(a[0], b[0], c[0]), f(a[1], b[1], c[1]), f(a[2], b[2], c[2]), f(a[3], b[3], c[3])]
}

/// Whether the baseline target has a fused multiply-add; elsewhere `mul_add` is a slow call.
const HAS_FMA: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

#[inline(always)]
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    if HAS_FMA { a.mul_add(b, c) } else { a * b + c }
}

/// fp16 bits as f32. Multiplying by 2^112 moves the exponent's origin and normalises subnormals.
#[inline(always)]
fn widen(half: u16) -> f32 {
    let magnitude = u32::from(half & 0x7fff);
    let scaled = f32::from_bits(magnitude << 13) * 5.192_297e33;
    let special = if magnitude >= 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | special | u32::from(half & 0x8000) << 16)
}

/// f32 as fp16 bits, to nearest, ties to even.
#[inline(always)]
fn narrow(value: f32) -> u16 {
    let magnitude = value.to_bits() & 0x7fff_ffff;
    let normal = (magnitude.wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13).wrapping_sub(112 << 10);
    // The unit in the last place of 0.5 .. 1 is that of subnormal fp16.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let finite = if magnitude < 0x3880_0000 { small } else { normal };
    let limited = if magnitude < 0x4780_0000 { finite.min(0x7c00) } else { 0x7c00 };
    let half = if magnitude > 0x7f80_0000 { 0x7e00 } else { limited };
    half as u16 | (value.to_bits() >> 16 & 0x8000) as u16
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
        each(halves, widen)
    }
    #[inline(always)]
    unsafe fn store_half(self, to: *mut u16, value: F) {
        let halves = each(value, narrow);
        // SAFETY: the caller promises LANES writable values.
        unsafe { to.cast::<[u16; LANES]>().write_unaligned(halves) }
    }
    #[inline(always)]
    unsafe fn store_pairs(self, to: *mut f32, x: F, t: F) {
        let pairs = map(x, t, |x, t| [x, t]);
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
        map3(a, b, c, multiply_add)
    }
    #[inline(always)]
    fn fma_where(self, keep: M, a: F, b: F, c: F) -> F {
        let kept = map(keep, a, |keep, a| if keep { a } else { 0.0 });
        map3(kept, b, c, multiply_add)
    }
    #[inline(always)]
    fn to_int(self, a: F) -> I {
        each(a, |v| v as i32)
    }
    #[inline(always)]
    fn to_int_nearest(self, a: F) -> I {
        each(a, |v| v.round_ties_even() as i32)
    }
    #[inline(always)]
    fn to_float(self, a: I) -> F {
        each(a, |v| v as f32)
    }
    #[inline(always)]
    fn bits(self, a: F) -> I {
        each(a, |v| v.to_bits() as i32)
    }
    #[inline(always)]
    fn from_bits(self, a: I) -> F {
        each(a, |v| f32::from_bits(v as u32))
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
        each(a, |v| v << BITS)
    }
    #[inline(always)]
    fn shift_right<const BITS: u32>(self, a: I) -> I {
        each(a, |v| ((v as u32) >> BITS) as i32)
    }
    #[inline(always)]
    fn shift_right_signed<const BITS: u32>(self, a: I) -> I {
        each(a, |v| v >> BITS)
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
        map3(mask, a, b, |mask, a, b| if mask { a } else { b })
    }
    #[inline(always)]
    fn select_int(self, mask: M, a: I, b: I) -> I {
        map3(mask, a, b, |mask, a, b| if mask { a } else { b })
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
        let [a, b] = unsafe { from.cast::<[f32; LANES / 2]>().read_unaligned() };
        let plain = |value: f32| f64::from(f32::from_bits(value.to_bits() & !0x1fff));
        [plain(a), plain(b)]
    }
    #[inline(always)]
    unsafe fn store_wide(self, to: *mut f64, value: D) {
        // SAFETY: the caller promises LANES / 2 writable values.
        unsafe { to.cast::<D>().write_unaligned(value) }
    }
    #[inline(always)]
    fn sub_wide(self, a: D, b: D) -> D {
        [a[0] - b[0], a[1] - b[1]]
    }
    #[inline(always)]
    fn fma_wide(self, a: D, b: D, c: D) -> D {
        let lane = |a: f64, b: f64, c: f64| if HAS_FMA { a.mul_add(b, c) } else { a * b + c };
        [lane(a[0], b[0], c[0]), lane(a[1], b[1], c[1])]
    }
    #[inline(always)]
    fn keep_wide(self, threshold: D, w: D, x: D) -> D {
        let lane = |t: f64, w: f64, x: f64| if t <= w.abs() { x } else { 0.0 };
        [lane(threshold[0], w[0], x[0]), lane(threshold[1], w[1], x[1])]
    }
}
