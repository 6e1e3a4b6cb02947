//! Conversion between fp16 and f32 slices, as the host does it: to nearest, ties to even.

use half::f16;

use super::simd::{Kernel, Simd};
use super::types::{Context, Shared};

/// Values per job; below two of them a conversion stays on the caller's thread.
pub(crate) const BLOCK: usize = 1 << 14;

/// Widens fp16 to f32, exactly.
///
/// # Panics
/// If the lengths differ.
pub fn widen(context: Context<'_>, from: &[f16], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "widen: lengths differ");
    let out = Shared::new(to);
    context.pool.run(from.len().div_ceil(BLOCK), &|job, _| {
        let part = part(from.len(), job);
        // SAFETY: jobs have disjoint parts.
        let to = unsafe { out.slice(part.start, part.len()) };
        context.level.dispatch(Widen { from: &from[part], to });
    });
}

/// Rounds f32 to fp16, ties to even, overflow to infinity.
///
/// # Panics
/// If the lengths differ.
pub fn narrow(context: Context<'_>, from: &[f32], to: &mut [f16]) {
    assert_eq!(from.len(), to.len(), "narrow: lengths differ");
    let out = Shared::new(to);
    context.pool.run(from.len().div_ceil(BLOCK), &|job, _| {
        let part = part(from.len(), job);
        // SAFETY: jobs have disjoint parts.
        let to = unsafe { out.slice(part.start, part.len()) };
        context.level.dispatch(Narrow { from: &from[part], to });
    });
}

/// The range of a job of [`BLOCK`] values.
pub(crate) fn part(length: usize, job: usize) -> std::ops::Range<usize> {
    job * BLOCK..length.min((job + 1) * BLOCK)
}

pub(crate) struct Widen<'a> {
    pub from: &'a [f16],
    pub to: &'a mut [f32],
}

impl Kernel for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let length = self.from.len().min(self.to.len());
        let from: *const u16 = self.from.as_ptr().cast();
        let whole = length / S::LANES * S::LANES;
        for at in (0..whole).step_by(S::LANES) {
            // SAFETY: `at + LANES <= length`.
            unsafe { s.store(self.to.as_mut_ptr().add(at), s.load_half(from.add(at))) };
        }
        for at in whole..length {
            self.to[at] = self.from[at].to_f32();
        }
    }
}

pub(crate) struct Narrow<'a> {
    pub from: &'a [f32],
    pub to: &'a mut [f16],
}

impl Kernel for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let length = self.from.len().min(self.to.len());
        let to: *mut u16 = self.to.as_mut_ptr().cast();
        let whole = length / S::LANES * S::LANES;
        for at in (0..whole).step_by(S::LANES) {
            // SAFETY: `at + LANES <= length`.
            unsafe { s.store_half(to.add(at), s.load(self.from.as_ptr().add(at))) };
        }
        for at in whole..length {
            self.to[at] = f16::from_f32(self.from[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::Pool;
    use super::super::simd::Level;
    use super::*;

    #[test]
    fn all_fp16_values_widen_and_narrow_back_at_every_level() {
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        for level in Level::available() {
            let context = Context { pool: Pool::global(), level };
            let mut wide = vec![0.0; halves.len()];
            widen(context, &halves, &mut wide);
            let mut back = vec![f16::ZERO; halves.len()];
            narrow(context, &wide, &mut back);
            for ((&half, &wide), &back) in halves.iter().zip(&wide).zip(&back) {
                if half.is_nan() {
                    assert!(wide.is_nan() && back.is_nan());
                } else {
                    assert_eq!(wide.to_bits(), half.to_f32().to_bits());
                    assert_eq!(back.to_bits(), half.to_bits());
                }
            }
        }
    }

    #[test]
    fn narrowing_breaks_ties_to_even_and_overflows_to_infinity() {
        let inputs = [2049.0_f32, 2051.0, 65519.9, 65520.0, 2.0_f32.powi(-25), 1e-9, -2049.0, 1e9];
        let inputs: Vec<f32> = inputs.iter().copied().cycle().take(40).collect();
        let wanted = [2048.0_f32, 2052.0, 65504.0, f32::INFINITY, 0.0, 0.0, -2048.0, f32::INFINITY];
        for level in Level::available() {
            let mut out = vec![f16::ZERO; inputs.len()];
            narrow(Context { pool: Pool::global(), level }, &inputs, &mut out);
            for (at, value) in out.iter().enumerate() {
                assert_eq!(value.to_f32(), wanted[at % 8], "{level} {at}");
            }
        }
    }
}
