//! The ziggurat draw of a standard normal, with numpy's use of each random word.
//!
//! One 64-bit word gives the layer (8 bits), the sign (1 bit) and a 52-bit magnitude. About 99% of
//! the draws end there; the others compare against the density inside the layer, or sample the tail
//! beyond the outermost layer (Marsaglia's exponential rejection).

use std::sync::LazyLock;

use super::Pcg64;
use super::ziggurat_table::{ACCEPT_BELOW, DENSITY_BITS, WIDTH_BITS};

/// Where the outermost layer ends and the tail begins.
const TAIL_START: f64 = 3.654_152_885_361_009;
/// 1 / [`TAIL_START`], numpy's own constant.
const TAIL_START_INVERSE: f64 = 0.273_661_237_329_758_3;

/// What the fast path needs of a layer, side by side in memory.
#[derive(Clone, Copy, Debug)]
struct Layer {
    accept_below: u64,
    width: f64,
}

/// The table in the form the draw reads.
#[derive(Debug)]
pub(super) struct Ziggurat {
    layers: [Layer; 256],
    density: [f64; 256],
}

impl Ziggurat {
    pub(super) fn shared() -> &'static Self {
        static TABLE: LazyLock<Ziggurat> = LazyLock::new(|| Ziggurat {
            layers: std::array::from_fn(|layer| Layer {
                accept_below: ACCEPT_BELOW[layer],
                width: f64::from_bits(WIDTH_BITS[layer]),
            }),
            density: DENSITY_BITS.map(f64::from_bits),
        });
        &TABLE
    }

    #[inline]
    pub(super) fn draw(&self, source: &mut Pcg64) -> f64 {
        let word = source.next_word();
        let layer = (word & 0xff) as usize;
        let magnitude = (word >> 9) & 0x000f_ffff_ffff_ffff;
        let unsigned = magnitude as f64 * self.layers[layer].width;
        let value = f64::from_bits(unsigned.to_bits() | ((word >> 8) & 1) << 63);
        if magnitude < self.layers[layer].accept_below {
            return value;
        }
        self.draw_slowly(source, layer, magnitude, value)
    }

    /// The draws that the fast test leaves open.
    #[cold]
    fn draw_slowly(&self, source: &mut Pcg64, layer: usize, magnitude: u64, value: f64) -> f64 {
        if layer == 0 {
            return tail(source, (magnitude >> 8) & 1 == 1);
        }
        let lower = self.density[layer];
        let height = (self.density[layer - 1] - lower) * source.next_unit() + lower;
        if height < (-0.5 * value * value).exp() {
            return value;
        }
        self.draw(source)
    }
}

fn tail(source: &mut Pcg64, negative: bool) -> f64 {
    loop {
        let beyond = -TAIL_START_INVERSE * (-source.next_unit()).ln_1p();
        let exponential = -(-source.next_unit()).ln_1p();
        if exponential + exponential > beyond * beyond {
            let value = TAIL_START + beyond;
            return if negative { -value } else { value };
        }
    }
}
