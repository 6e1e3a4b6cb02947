//! Numbers with twice the precision of fp16, as a sum of two.
//!
//! A pair is `hi + lo / 2048`. With 11 significant bits in `hi`, what rounding leaves is at most `2^-11 |hi|`; times 2048 it has the
//! size of `hi`, so `lo` overflows no sooner than `hi` and is a normal number wherever `hi` is. An increment is given times 2048 as
//! well: increments down to `2^-24 / 2048` are felt, against `2^-12 |hi|` in fp16 alone, where small learning rates stand still.
//! Increments end at 16 for that; numbers that change by more at once take a smaller factor.

use crate::NnError;
use crate::state::Slots;
use aneforge_core::Tensor;
use half::f16;

/// The factor of the low part: 2 to the number of significant bits of fp16.
pub const LOW: f64 = 2048.0;

/// Places of the two parts; a single fp16 number where there is no low part.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    high: usize,
    low: Option<usize>,
    factor: f64,
}

impl Pair {
    /// The pair of that name, made where there is none; `low` says whether it has a low part.
    ///
    /// # Errors
    /// As [`Slots::slot`].
    pub fn slot(
        slots: &mut Slots,
        name: &str,
        shape: &[usize],
        low: bool,
        initial: impl Fn() -> Vec<f64>,
    ) -> Result<Self, NnError> {
        Self::with_factor(slots, name, shape, if low { Some(LOW) } else { None }, initial)
    }

    /// [`Self::slot`] with another factor of low part and increments, or no low part; increments are given times that factor, or times [`LOW`] without a low part.
    ///
    /// # Errors
    /// As [`Slots::slot`].
    pub fn with_factor(
        slots: &mut Slots,
        name: &str,
        shape: &[usize],
        factor: Option<f64>,
        initial: impl Fn() -> Vec<f64>,
    ) -> Result<Self, NnError> {
        let high = slots.slot(name, shape, &initial)?;
        let rest = |factor: f64| initial().into_iter().map(|value| (value - f16::from_f64(value).to_f64()) * factor).collect();
        let low = factor.map(|factor| slots.slot(&format!("{name}.low"), shape, || rest(factor))).transpose()?;
        Ok(Self { high, low, factor: factor.unwrap_or(LOW) })
    }

    /// Its high part: the value rounded to fp16.
    pub fn value(&self, slots: &Slots) -> Tensor {
        slots.get(self.high)
    }

    /// Adds an increment that is given times the factor.
    ///
    /// `hi' = hi + t / factor` rounds; `hi' - hi` is exact (Dekker's fast two-sum, for increments below `hi`), and what of `t` is not
    /// in it becomes the low part. This holds for every way of rounding to nearest. Devices that do not round between operations
    /// leave nothing for the low part.
    pub fn add(&self, slots: &mut Slots, increment: &Tensor) {
        let high = slots.get(self.high);
        match self.low {
            None => slots.set(self.high, high.add(&increment.muls(self.factor.recip()))),
            Some(low) => {
                let total = slots.get(low).add(increment);
                let next = high.add(&total.muls(self.factor.recip()));
                slots.set(low, total.sub(&next.sub(&high).muls(self.factor)));
                slots.set(self.high, next);
            }
        }
    }
}
