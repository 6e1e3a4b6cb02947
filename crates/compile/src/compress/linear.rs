//! Integers and a scale: the scale that loses least, and the codes it gives.

use half::f16;

/// A range of integers.
#[derive(Clone, Copy, Debug)]
pub struct Integers {
    /// Bits of an element: 4 or 8.
    pub bits: u8,
    /// Unsigned, with an offset.
    pub offset: bool,
}

/// Scale and offset of a block.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// fp16, above zero.
    pub scale: f16,
    /// The integer that stands for zero.
    pub offset: i32,
}

impl Integers {
    /// Smallest and largest integer that is used. Symmetric ranges leave out the lowest, as the engine's int8 does
    /// (ANE guide, arXiv 2606.22283, chapter 7: -127 to 127).
    pub fn range(self) -> (i32, i32) {
        let half = 1 << (self.bits - 1);
        if self.offset { (0, 2 * half - 1) } else { (1 - half, half - 1) }
    }

    /// Quantises a block: `codes` gets the low bits of the integers.
    ///
    /// Four bits are few: there a smaller scale that clips the largest magnitudes may lose less, so several are tried and the one
    /// with the least squared error is kept. `importance` weighs the errors.
    pub fn quantise(self, elements: &[f16], importance: Option<&[f32]>, codes: &mut [u8]) -> Line {
        let values = || elements.iter().map(|element| element.to_f32());
        let (low, high) = values().fold((0f32, 0f32), |(low, high), value| (low.min(value), high.max(value)));
        let shrinks: &[f32] = if self.bits == 4 { &[1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7] } else { &[1.0] };
        let mut best = (f64::INFINITY, self.line(low, high));
        for &shrink in shrinks {
            let line = self.line(low * shrink, high * shrink);
            let error: f64 = values()
                .enumerate()
                .map(|(place, value)| {
                    let lost = f64::from(value - self.decode(self.encode(value, line), line).to_f32());
                    lost * lost * importance.map_or(1.0, |importance| f64::from(importance[place]))
                })
                .sum();
            if error < best.0 {
                best = (error, line);
            }
        }
        values().zip(codes).for_each(|(value, code)| *code = self.encode(value, best.1) as u8);
        best.1
    }

    /// The value of an integer: exact in f32, then rounded to fp16, ties to even, as the compiler expands it.
    pub fn decode(self, integer: i32, line: Line) -> f16 {
        f16::from_f32(line.scale.to_f32() * (integer - line.offset) as f32)
    }

    /// The integer behind a code.
    pub fn integer(self, code: u8) -> i32 {
        match (self.offset, self.bits) {
            (true, _) => i32::from(code),
            (false, 4) => i32::from(((code << 4) as i8) >> 4),
            (false, _) => i32::from(code as i8),
        }
    }

    fn encode(self, value: f32, line: Line) -> i32 {
        let (low, high) = self.range();
        ((value / line.scale.to_f32()).round_ties_even() as i32 + line.offset).clamp(low, high)
    }

    /// The line through a range that contains zero.
    fn line(self, low: f32, high: f32) -> Line {
        let (first, last) = self.range();
        let width = if self.offset { (high - low) / (last - first) as f32 } else { high.max(-low) / last as f32 };
        let mut scale = f16::from_f32(width);
        if scale.to_f32() < width {
            // Rounded down, the largest magnitude would be clipped.
            scale = f16::from_bits(scale.to_bits() + 1);
        }
        if scale == f16::ZERO {
            scale = f16::ONE;
        }
        let offset = if self.offset { (-low / scale.to_f32()).round_ties_even() as i32 } else { 0 };
        Line { scale, offset: offset.clamp(first.max(0), last) }
    }
}
