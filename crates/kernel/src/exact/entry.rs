//! Layer entry of the exact forms: activations as (value, flush threshold) pairs, and the norms
//! that the choice of the form needs.

use std::sync::atomic::{AtomicU32, Ordering};

use half::f16;

use super::super::simd::{Kernel, Simd};
use super::super::types::{Context, Shared};

/// Values per entry of [`Entered::squares`].
pub(crate) const SPAN: usize = 16;

/// f32 values of scratch for `length` activations: pairs and sums of squares.
pub(crate) fn entered_len(length: usize) -> usize {
    2 * length + length.div_ceil(SPAN)
}

/// Activations in the scratch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered<'a> {
    /// `value, threshold` in turn. A product with `w` is kept where `threshold <= |w|`.
    pub pairs: &'a [f32],
    /// Sum of squares of every [`SPAN`] values.
    pub squares: &'a [f32],
    /// The largest magnitude.
    pub largest: f32,
    /// The smallest nonzero magnitude.
    pub smallest: f32,
}

impl Entered<'_> {
    /// An upper bound (up to f32 rounding) of the sum of squares of a range of values.
    #[inline(always)]
    pub(crate) fn square(&self, from: usize, length: usize) -> f32 {
        if length == 0 {
            return 0.0;
        }
        self.squares[from / SPAN..(from + length - 1) / SPAN + 1].iter().sum()
    }
}

/// Widens values into pairs. NaN becomes infinity.
pub(crate) struct WidenPairs<'a> {
    pub from: &'a [f16],
    pub to: &'a mut [f32],
    pub drop_subnormals: bool,
}

impl Kernel for WidenPairs<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let length = self.from.len();
        assert!(self.to.len() >= 2 * length, "pairs: too short");
        let from: *const u16 = self.from.as_ptr().cast();
        let to = self.to.as_mut_ptr();
        let whole = length / S::LANES * S::LANES;
        for at in (0..whole).step_by(S::LANES) {
            // SAFETY: `at + LANES <= length`, and `to` has two values for each.
            unsafe { store_with_threshold(s, to.add(2 * at), s.load_half(from.add(at)), self.drop_subnormals) };
        }
        if whole < length {
            let mut last = [f16::ZERO; 32];
            let mut pairs = [0.0_f32; 64];
            last[..length - whole].copy_from_slice(&self.from[whole..]);
            // SAFETY: both arrays hold at least LANES values (pairs).
            unsafe {
                let value = s.load_half(last.as_ptr().cast());
                store_with_threshold(s, pairs.as_mut_ptr(), value, self.drop_subnormals);
            }
            self.to[2 * whole..2 * length].copy_from_slice(&pairs[..2 * (length - whole)]);
        }
    }
}

/// Stores a vector of fp16 values with their thresholds: with e = max(exponent, -14) a product
/// with w survives iff exponent(w) >= -16 - e. For a threshold above 2^-14 that is
/// `|w| >= 2^(-16 - e)`; below, every w passes, so the threshold is 0.
///
/// # Safety
/// `to` must be writable for `2 * LANES` values.
#[inline(always)]
pub(crate) unsafe fn store_with_threshold<S: Simd>(s: S, to: *mut f32, value: S::F, drop_subnormals: bool) {
    let mut value = super::round::coerce(s, value);
    if drop_subnormals {
        let normal = s.less_equal(s.splat(6.103_515_6e-5), s.abs(value));
        value = s.select(normal, value, s.splat(0.0));
    }
    let floor = s.splat_int((127 - 14) << 23);
    let exponent = s.max_int(s.and(s.bits(value), s.splat_int(0x7f80_0000)), floor);
    let threshold = s.sub_int(s.splat_int((127 + 111) << 23), exponent);
    let some = s.greater_int(threshold, floor);
    let threshold = s.select_int(some, threshold, s.splat_int(0));
    // SAFETY: the caller's promise.
    unsafe { s.store_pairs(to, value, s.from_bits(threshold)) };
}

/// Splits a scratch into pairs, which `write` fills, and sums of squares, which follow from them.
pub(crate) fn enter<'a>(
    context: Context<'_>,
    scratch: &'a mut [f32],
    length: usize,
    write: impl FnOnce(Shared<f32>),
) -> Entered<'a> {
    let (pairs, rest) = scratch.split_at_mut(2 * length);
    let squares = &mut rest[..length.div_ceil(SPAN)];
    write(Shared::new(pairs));
    let pairs = &*pairs;
    // Magnitudes are positive, so their bit patterns order like the values.
    let largest = AtomicU32::new(0);
    let smallest = AtomicU32::new(f32::INFINITY.to_bits());
    let out = Shared::new(squares);
    let block = 1024 * SPAN;
    context.pool.run(length.div_ceil(block), &|job, _| {
        let values = job * block..length.min((job + 1) * block);
        let count = values.len().div_ceil(SPAN);
        // SAFETY: jobs have disjoint ranges.
        let squares = unsafe { out.slice(values.start / SPAN, count) };
        let pairs = &pairs[2 * values.start..2 * values.end];
        let (most, least) = context.level.dispatch(Norms { pairs, squares });
        largest.fetch_max(most.to_bits(), Ordering::Relaxed);
        smallest.fetch_min(least.to_bits(), Ordering::Relaxed);
    });
    Entered { pairs, squares, largest: f32::from_bits(largest.into_inner()), smallest: f32::from_bits(smallest.into_inner()) }
}

struct Norms<'a> {
    pairs: &'a [f32],
    squares: &'a mut [f32],
}

impl Kernel for Norms<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> (f32, f32) {
        // Keeps the values of the pairs, blanks the thresholds.
        let mut even = [0_i32; 32];
        even.iter_mut().step_by(2).for_each(|lane| *lane = i32::MAX);
        // SAFETY: at least LANES values.
        let even = unsafe { s.load_int(even.as_ptr()) };
        let infinity = s.splat(f32::INFINITY);
        let (mut most, mut least) = (s.splat(0.0), infinity);
        let mut full = [0.0_f32; 2 * SPAN];
        for (pairs, square) in self.pairs.chunks(2 * SPAN).zip(self.squares) {
            let from = if pairs.len() == 2 * SPAN {
                pairs.as_ptr()
            } else {
                full[..pairs.len()].copy_from_slice(pairs);
                full.as_ptr()
            };
            let mut sum = s.splat(0.0);
            for at in (0..2 * SPAN).step_by(S::LANES) {
                // SAFETY: 2 * SPAN is a multiple of LANES.
                let magnitude = s.and(s.bits(unsafe { s.load(from.add(at)) }), even);
                let value = s.from_bits(magnitude);
                sum = s.fma(value, value, sum);
                most = s.max(value, most);
                let nonzero = s.greater_int(magnitude, s.splat_int(0));
                least = s.min(s.select(nonzero, value, infinity), least);
            }
            *square = s.sum(sum);
        }
        (s.largest(most), -s.largest(s.sub(s.splat(0.0), least)))
    }
}
