//! Numbers with twice the precision of fp16, as a sum of two.
//!
//! A pair is `hi + lo / 2048`. With 11 significant bits in `hi`, what rounding leaves is at most `2^-11 |hi|`; times 2048 it has the
//! size of `hi`, so `lo` overflows no sooner than `hi` and is a normal number wherever `hi` is. An increment is given times 2048 as
//! well: increments down to `2^-24 / 2048` are felt, against `2^-12 |hi|` in fp16 alone, where small learning rates stand still.

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
}

/// A number as the two parts of a pair.
pub fn split(value: f64) -> (f64, f64) {
    let high = f16::from_f64(value).to_f64();
    (high, (value - high) * LOW)
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
        let high = slots.slot(name, shape, &initial)?;
        let rest = || initial().into_iter().map(|value| split(value).1).collect();
        let low = if low { Some(slots.slot(&format!("{name}.low"), shape, rest)?) } else { None };
        Ok(Self { high, low })
    }

    /// Its high part: the value rounded to fp16.
    pub fn value(&self, slots: &Slots) -> Tensor {
        slots.get(self.high)
    }

    /// Adds an increment that is given times [`LOW`].
    ///
    /// `hi' = hi + t / 2048` rounds; `hi' - hi` is exact (Dekker's fast two-sum, for increments below `hi`), and what of `t` is not
    /// in it becomes the low part. This holds for every way of rounding to nearest. Devices that do not round between operations
    /// leave nothing for the low part.
    pub fn add(&self, slots: &mut Slots, increment: &Tensor) {
        let high = slots.get(self.high);
        match self.low {
            None => slots.set(self.high, high.add(&increment.muls(LOW.recip()))),
            Some(low) => {
                let total = slots.get(low).add(increment);
                let next = high.add(&total.muls(LOW.recip()));
                slots.set(low, total.sub(&next.sub(&high).muls(LOW)));
                slots.set(self.high, next);
            }
        }
    }
}
