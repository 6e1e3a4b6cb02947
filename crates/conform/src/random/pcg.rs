//! PCG64: a 128-bit linear congruential generator with the XSL-RR output function.

use super::SeedSequence;

/// The multiplier of the 128-bit congruential step (O'Neill, "PCG: a family of simple fast
/// space-efficient statistically good algorithms for random number generation").
const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// numpy's default bit generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
}

impl Pcg64 {
    /// The generator `numpy.random.PCG64(seed_sequence)`.
    pub fn from_seed_sequence(sequence: &SeedSequence) -> Self {
        let [state_high, state_low, stream_high, stream_low] = sequence.generate_state();
        let initial = (u128::from(state_high) << 64) | u128::from(state_low);
        let stream = (u128::from(stream_high) << 64) | u128::from(stream_low);
        let mut generator = Self { state: 0, increment: (stream << 1) | 1 };
        generator.step();
        generator.state = generator.state.wrapping_add(initial);
        generator.step();
        generator
    }

    #[inline]
    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_word(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// A uniform f64 in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn next_unit(&mut self) -> f64 {
        (self.next_word() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }
}
