//! Choices from a seed.

use crate::random::Generator;

/// A source of choices, the same for the same seed on every machine.
pub(super) struct Draws(Generator);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(Generator::from_seed(seed))
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_raw()
    }

    /// A number below `limit`; 0 where that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.bits() % limit as u64) as usize }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low).max(0) as usize + 1) as i64
    }

    /// True in so many cases of 100.
    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    /// A real in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// One of several; `None` where there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    /// Shuffles in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
