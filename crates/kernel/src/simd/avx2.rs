//! AVX2 with FMA and F16C: 8 lanes, 16 vector registers.

use std::arch::x86_64::*;

use super::{Level, Simd};

/// Proof that the processor has AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
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

impl Simd for Avx2 {
    const LANES: usize = 8;
    const FUSED: bool = true;
    const ROWS: usize = 6;
    const EXACT_ROWS: usize = 4;
    const WIDE_ROWS: usize = 2;
    type F = __m256;
    type I = __m256i;
    type M = __m256;
    type D = __m256d;

    #[inline(always)]
    fn level(self) -> Level {
        Level::avx2(self)
    }
    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        have!(_mm256_set1_ps(value))
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m256 {
        have!(_mm256_loadu_ps(from))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, value: __m256) {
        have!(_mm256_storeu_ps(to, value))
    }
    #[inline(always)]
    unsafe fn load_half(self, from: *const u16) -> __m256 {
        have!(_mm256_cvtph_ps(_mm_loadu_si128(from.cast())))
    }
    #[inline(always)]
    unsafe fn store_half(self, to: *mut u16, value: __m256) {
        have!(_mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value)))
    }
    #[inline(always)]
    unsafe fn store_pairs(self, to: *mut f32, x: __m256, t: __m256) {
        have!({
            let low = _mm256_unpacklo_ps(x, t);
            let high = _mm256_unpackhi_ps(x, t);
            _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(low, high));
            _mm256_storeu_ps(to.add(8), _mm256_permute2f128_ps::<0x31>(low, high));
        })
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_div_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_min_ps(a, b))
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_max_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        have!(_mm256_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn fma_where(self, keep: __m256, a: __m256, b: __m256, c: __m256) -> __m256 {
        have!(_mm256_fmadd_ps(_mm256_and_ps(a, keep), b, c))
    }
    #[inline(always)]
    fn to_int(self, a: __m256) -> __m256i {
        have!(_mm256_cvttps_epi32(a))
    }
    #[inline(always)]
    fn to_int_nearest(self, a: __m256) -> __m256i {
        have!(_mm256_cvtps_epi32(a))
    }
    #[inline(always)]
    fn to_float(self, a: __m256i) -> __m256 {
        have!(_mm256_cvtepi32_ps(a))
    }
    #[inline(always)]
    fn bits(self, a: __m256) -> __m256i {
        have!(_mm256_castps_si256(a))
    }
    #[inline(always)]
    fn from_bits(self, a: __m256i) -> __m256 {
        have!(_mm256_castsi256_ps(a))
    }
    #[inline(always)]
    fn splat_int(self, value: i32) -> __m256i {
        have!(_mm256_set1_epi32(value))
    }
    #[inline(always)]
    unsafe fn load_int(self, from: *const i32) -> __m256i {
        have!(_mm256_loadu_si256(from.cast()))
    }
    #[inline(always)]
    unsafe fn store_int(self, to: *mut i32, value: __m256i) {
        have!(_mm256_storeu_si256(to.cast(), value))
    }
    #[inline(always)]
    fn add_int(self, a: __m256i, b: __m256i) -> __m256i {
        have!(_mm256_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub_int(self, a: __m256i, b: __m256i) -> __m256i {
        have!(_mm256_sub_epi32(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        have!(_mm256_and_si256(a, b))
    }
    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        have!(_mm256_or_si256(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        have!(_mm256_xor_si256(a, b))
    }
    #[inline(always)]
    fn shift_left<const BITS: u32>(self, a: __m256i) -> __m256i {
        have!(_mm256_sll_epi32(a, _mm_cvtsi32_si128(BITS as i32)))
    }
    #[inline(always)]
    fn shift_right<const BITS: u32>(self, a: __m256i) -> __m256i {
        have!(_mm256_srl_epi32(a, _mm_cvtsi32_si128(BITS as i32)))
    }
    #[inline(always)]
    fn shift_right_signed<const BITS: u32>(self, a: __m256i) -> __m256i {
        have!(_mm256_sra_epi32(a, _mm_cvtsi32_si128(BITS as i32)))
    }
    #[inline(always)]
    fn max_int(self, a: __m256i, b: __m256i) -> __m256i {
        have!(_mm256_max_epi32(a, b))
    }
    #[inline(always)]
    fn less_equal(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_cmp_ps::<_CMP_LE_OQ>(a, b))
    }
    #[inline(always)]
    fn less(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_cmp_ps::<_CMP_LT_OQ>(a, b))
    }
    #[inline(always)]
    fn greater_int(self, a: __m256i, b: __m256i) -> __m256 {
        have!(_mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)))
    }
    #[inline(always)]
    fn and_mask(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_and_ps(a, b))
    }
    #[inline(always)]
    fn or_mask(self, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_or_ps(a, b))
    }
    #[inline(always)]
    fn select(self, mask: __m256, a: __m256, b: __m256) -> __m256 {
        have!(_mm256_blendv_ps(b, a, mask))
    }
    #[inline(always)]
    fn select_int(self, mask: __m256, a: __m256i, b: __m256i) -> __m256i {
        have!(_mm256_blendv_epi8(b, a, _mm256_castps_si256(mask)))
    }
    #[inline(always)]
    fn sum(self, a: __m256) -> f32 {
        have!({
            let half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
            _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
        })
    }
    #[inline(always)]
    fn largest(self, a: __m256) -> f32 {
        have!({
            let half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let pair = _mm_max_ps(half, _mm_movehl_ps(half, half));
            _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)))
        })
    }
    #[inline(always)]
    fn splat_wide(self, value: f64) -> __m256d {
        have!(_mm256_set1_pd(value))
    }
    #[inline(always)]
    unsafe fn load_wide(self, from: *const f32) -> __m256d {
        have!({
            let plain = _mm_castsi128_ps(_mm_set1_epi32(!0x1fff));
            _mm256_cvtps_pd(_mm_and_ps(_mm_loadu_ps(from), plain))
        })
    }
    #[inline(always)]
    unsafe fn store_wide(self, to: *mut f64, value: __m256d) {
        have!(_mm256_storeu_pd(to, value))
    }
    #[inline(always)]
    fn sub_wide(self, a: __m256d, b: __m256d) -> __m256d {
        have!(_mm256_sub_pd(a, b))
    }
    #[inline(always)]
    fn fma_wide(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        have!(_mm256_fmadd_pd(a, b, c))
    }
    #[inline(always)]
    fn keep_wide(self, threshold: __m256d, w: __m256d, x: __m256d) -> __m256d {
        have!({
            let magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), w);
            _mm256_and_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(threshold, magnitude), x)
        })
    }
}
