//! The gradient of a maximum over windows that lie side by side.

use half::f16;

use super::simd::{Kernel, Simd};
use super::types::{Context, Shared};

/// Windows that cover an NHWC image without overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiles {
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Windows down and across.
    pub output: [usize; 2],
    /// Height and width of a window.
    pub window: [usize; 2],
}

/// Gives each value of `x` (NHWC) that equals its window's `y` an equal share of the window's `grad`, and the others 0. Shares are
/// rounded to fp16, as a division on its own would be.
///
/// # Panics
/// If a slice is too short.
pub fn max_pool_gradient(context: Context<'_>, tiles: Tiles, x: &[f16], y: &[f16], grad: &[f16], output: &mut [f16]) {
    let Tiles { batch, channels, output: [down, across], window: [rows, columns] } = tiles;
    let small = across * channels;
    let large = small * rows * columns;
    assert!(y.len() >= batch * down * small && grad.len() >= batch * down * small, "pool gradient: windows too short");
    assert!(x.len() >= batch * down * large && output.len() >= batch * down * large, "pool gradient: image too short");
    let out = Shared::new(output);
    context.pool.run(batch * down, &|job, _| {
        // SAFETY: jobs have disjoint bands of rows.
        let output = unsafe { out.slice(job * large, large) };
        let (x, windows) = (&x[job * large..(job + 1) * large], job * small..(job + 1) * small);
        context.level.dispatch(Band { tiles, x, y: &y[windows.clone()], grad: &grad[windows], output });
    });
}

/// A row of windows.
struct Band<'a> {
    tiles: Tiles,
    x: &'a [f16],
    y: &'a [f16],
    grad: &'a [f16],
    output: &'a mut [f16],
}

/// Most lanes of any level.
const MOST_LANES: usize = 32;

#[inline(always)]
fn load<S: Simd>(s: S, from: &[f16]) -> S::F {
    let mut copy = [f16::ZERO; MOST_LANES];
    let from = if from.len() >= S::LANES {
        from.as_ptr()
    } else {
        copy[..from.len()].copy_from_slice(from);
        copy.as_ptr()
    };
    // SAFETY: at least LANES values.
    unsafe { s.load_half(from.cast()) }
}

#[inline(always)]
fn store<S: Simd>(s: S, to: &mut [f16], value: S::F) {
    if to.len() >= S::LANES {
        // SAFETY: LANES values.
        unsafe { s.store_half(to.as_mut_ptr().cast(), value) };
    } else {
        let mut copy = [f16::ZERO; MOST_LANES];
        // SAFETY: the copy has at least LANES values.
        unsafe { s.store_half(copy.as_mut_ptr().cast(), value) };
        to.copy_from_slice(&copy[..to.len()]);
    }
}

/// Whether both are equal.
#[inline(always)]
fn equal<S: Simd>(s: S, a: S::F, b: S::F) -> S::M {
    s.and_mask(s.less_equal(a, b), s.less_equal(b, a))
}

impl Kernel for Band<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Tiles { channels, output: [_, across], window: [rows, columns], .. } = self.tiles;
        let (zero, one) = (s.splat(0.0), s.splat(1.0));
        for window in 0..across {
            for channel in (0..channels).step_by(S::LANES) {
                let lanes = S::LANES.min(channels - channel);
                let at = window * channels + channel;
                let top = load(s, &self.y[at..at + lanes]);
                let mut ties = zero;
                for row in 0..rows {
                    for column in 0..columns {
                        let at = ((row * across + window) * columns + column) * channels + channel;
                        let hit = equal(s, load(s, &self.x[at..at + lanes]), top);
                        ties = s.add(ties, s.select(hit, one, zero));
                    }
                }
                let share = s.div(load(s, &self.grad[at..at + lanes]), ties);
                for row in 0..rows {
                    for column in 0..columns {
                        let at = ((row * across + window) * columns + column) * channels + channel;
                        let hit = equal(s, load(s, &self.x[at..at + lanes]), top);
                        store(s, &mut self.output[at..at + lanes], s.select(hit, share, zero));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::Pool;
    use super::super::simd::Level;
    use super::*;

    #[test]
    fn the_largest_values_of_a_window_share_its_gradient_at_every_level() {
        let tiles = Tiles { batch: 2, channels: 21, output: [3, 2], window: [2, 3] };
        // Few different values, so that many windows have ties.
        let x: Vec<f16> = (0..2 * 6 * 6 * 21).map(|at: usize| f16::from_f32((at * 37 % 11 / 2) as f32 - 2.0)).collect();
        let place = |image: usize, row: usize, column: usize, channel: usize| ((image * 6 + row) * 6 + column) * 21 + channel;
        let windows = (0..2 * 3 * 2 * 21).map(|at| [at / 126, at / 42 % 3, at / 21 % 2, at % 21]);
        let inside = |[image, down, across, channel]: [usize; 4]| {
            (0..6).map(move |tap| place(image, down * 2 + tap / 3, across * 3 + tap % 3, channel))
        };
        let y: Vec<f16> = windows.clone().map(|w| inside(w).map(|at| x[at]).fold(f16::MIN, f16::max)).collect();
        let grad: Vec<f16> = (0..y.len()).map(|at| f16::from_f32(at as f32 / 7.0 - 9.0)).collect();
        for level in Level::available() {
            let mut output = vec![f16::NAN; x.len()];
            max_pool_gradient(Context { pool: Pool::global(), level }, tiles, &x, &y, &grad, &mut output);
            for (window, (&top, &grad)) in windows.clone().zip(y.iter().zip(&grad)) {
                let ties = inside(window).filter(|&at| x[at] == top).count() as f32;
                for at in inside(window) {
                    let want = if x[at] == top { f16::from_f32(grad.to_f32() / ties) } else { f16::ZERO };
                    assert_eq!(output[at], want, "{level} {window:?}");
                }
            }
        }
    }
}
