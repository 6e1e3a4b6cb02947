//! Random numbers from a seed, the same on every machine.

use serde::{Deserialize, Serialize};

/// SplitMix64 (Steele, Lea, Flood 2014). Its whole state is one number, so a checkpoint can hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that starts at a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to 1, which is left out, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 0.5f64.powi(53)
    }

    /// A number from `low` up to `high`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A number of the normal distribution with mean 0 and deviation 1 (Box and Muller 1958; the second of each pair is dropped, so
    /// that the state alone says what comes next).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A place below `count`; 0 for a count of 0. The bias of the remainder is below `count` / 2^64.
    pub fn below(&mut self, count: usize) -> usize {
        (self.bits() % (count.max(1) as u64)) as usize
    }

    /// The numbers below `count` in random order (Fisher and Yates).
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut places: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            places.swap(last, self.below(last + 1));
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_published_algorithm() {
        let mut random = Random::new(1_234_567);
        assert_eq!([random.bits(), random.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn a_permutation_holds_every_place_once() {
        let mut places = Random::new(5).permutation(100);
        assert_ne!(places[..4], [0, 1, 2, 3]);
        places.sort_unstable();
        assert!(places.into_iter().eq(0..100));
    }
}
