//! AVX-512 (F, BW, VL, DQ): 16 lanes, mask registers, 32 vector registers.

use std::arch::x86_64::*;

use super::{Level, Simd};

/// Proof that the processor has AVX-512 F, BW, VL and DQ, AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// # Safety
    /// The processor must have the features named above.
    #[inline(always)]
    pub(crate) unsafe fn new_unchecked() -> Self {
        Self(())
    }
}

macro_rules! have {
    ($operation:expr) => {{
        // SAFETY: the token stands for the features; pointers are the caller's promise.
        unsafe { $operation }
    }};
}

impl Simd for Avx512 {
    const LANES: usize = 16;
    const FUSED: bool = true;
    const ROWS: usize = 14;
    const EXACT_ROWS: usize = 12;
    const WIDE_ROWS: usize = 6;
    type F = __m512;
    type I = __m512i;
    type M = __mmask16;
    type D = __m512d;

    #[inline(always)]
    fn level(self) -> Level {
        Level::avx512(self)
    }
    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        have!(_mm512_set1_ps(value))
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m512 {
        have!(_mm512_loadu_ps(from))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, value: __m512) {
        have!(_mm512_storeu_ps(to, value))
    }
    #[inline(always)]
    unsafe fn load_half(self, from: *const u16) -> __m512 {
        have!(_mm512_cvtph_ps(_mm256_loadu_si256(from.cast())))
    }
    #[inline(always)]
    unsafe fn store_half(self, to: *mut u16, value: __m512) {
        have!(_mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value)))
    }
    #[inline(always)]
    unsafe fn store_pairs(self, to: *mut f32, x: __m512, t: __m512) {
        have!({
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            _mm512_storeu_ps(to, _mm512_permutex2var_ps(x, low, t));
            _mm512_storeu_ps(to.add(16), _mm512_permutex2var_ps(x, high, t));
        })
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        have!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn fma_where(self, keep: __mmask16, a: __m512, b: __m512, c: __m512) -> __m512 {
        have!(_mm512_mask3_fmadd_ps(a, b, c, keep))
    }
    #[inline(always)]
    fn to_int(self, a: __m512) -> __m512i {
        have!(_mm512_cvttps_epi32(a))
    }
    #[inline(always)]
    fn to_int_nearest(self, a: __m512) -> __m512i {
        have!(_mm512_cvtps_epi32(a))
    }
    #[inline(always)]
    fn to_float(self, a: __m512i) -> __m512 {
        have!(_mm512_cvtepi32_ps(a))
    }
    #[inline(always)]
    fn bits(self, a: __m512) -> __m512i {
        have!(_mm512_castps_si512(a))
    }
    #[inline(always)]
    fn from_bits(self, a: __m512i) -> __m512 {
        have!(_mm512_castsi512_ps(a))
    }
    #[inline(always)]
    fn splat_int(self, value: i32) -> __m512i {
        have!(_mm512_set1_epi32(value))
    }
    #[inline(always)]
    unsafe fn load_int(self, from: *const i32) -> __m512i {
        have!(_mm512_loadu_si512(from.cast()))
    }
    #[inline(always)]
    unsafe fn store_int(self, to: *mut i32, value: __m512i) {
        have!(_mm512_storeu_si512(to.cast(), value))
    }
    #[inline(always)]
    fn add_int(self, a: __m512i, b: __m512i) -> __m512i {
        have!(_mm512_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub_int(self, a: __m512i, b: __m512i) -> __m512i {
        have!(_mm512_sub_epi32(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        have!(_mm512_and_si512(a, b))
    }
    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        have!(_mm512_or_si512(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        have!(_mm512_xor_si512(a, b))
    }
    #[inline(always)]
    fn shift_left<const BITS: u32>(self, a: __m512i) -> __m512i {
        have!(_mm512_slli_epi32::<BITS>(a))
    }
    #[inline(always)]
    fn shift_right<const BITS: u32>(self, a: __m512i) -> __m512i {
        have!(_mm512_srli_epi32::<BITS>(a))
    }
    #[inline(always)]
    fn shift_right_signed<const BITS: u32>(self, a: __m512i) -> __m512i {
        have!(_mm512_srai_epi32::<BITS>(a))
    }
    #[inline(always)]
    fn max_int(self, a: __m512i, b: __m512i) -> __m512i {
        have!(_mm512_max_epi32(a, b))
    }
    #[inline(always)]
    fn less_equal(self, a: __m512, b: __m512) -> __mmask16 {
        have!(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b))
    }
    #[inline(always)]
    fn less(self, a: __m512, b: __m512) -> __mmask16 {
        have!(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b))
    }
    #[inline(always)]
    fn greater_int(self, a: __m512i, b: __m512i) -> __mmask16 {
        have!(_mm512_cmpgt_epi32_mask(a, b))
    }
    #[inline(always)]
    fn and_mask(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }
    #[inline(always)]
    fn or_mask(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a | b
    }
    #[inline(always)]
    fn select(self, mask: __mmask16, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_mask_blend_ps(mask, b, a))
    }
    #[inline(always)]
    fn select_int(self, mask: __mmask16, a: __m512i, b: __m512i) -> __m512i {
        have!(_mm512_mask_blend_epi32(mask, b, a))
    }
    #[inline(always)]
    fn sum(self, a: __m512) -> f32 {
        have!(_mm512_reduce_add_ps(a))
    }
    #[inline(always)]
    fn largest(self, a: __m512) -> f32 {
        have!(_mm512_reduce_max_ps(a))
    }
    #[inline(always)]
    fn splat_wide(self, value: f64) -> __m512d {
        have!(_mm512_set1_pd(value))
    }
    #[inline(always)]
    unsafe fn load_wide(self, from: *const f32) -> __m512d {
        have!({
            let plain = _mm256_castsi256_ps(_mm256_set1_epi32(!0x1fff));
            _mm512_cvtps_pd(_mm256_and_ps(_mm256_loadu_ps(from), plain))
        })
    }
    #[inline(always)]
    unsafe fn store_wide(self, to: *mut f64, value: __m512d) {
        have!(_mm512_storeu_pd(to, value))
    }
    #[inline(always)]
    fn sub_wide(self, a: __m512d, b: __m512d) -> __m512d {
        have!(_mm512_sub_pd(a, b))
    }
    #[inline(always)]
    fn fma_wide(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        have!(_mm512_fmadd_pd(a, b, c))
    }
    #[inline(always)]
    fn keep_wide(self, threshold: __m512d, w: __m512d, x: __m512d) -> __m512d {
        have!(_mm512_maskz_mov_pd(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(threshold, _mm512_abs_pd(w)), x))
    }
}
