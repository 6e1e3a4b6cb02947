//! What the tests over the operator table share.
#![allow(dead_code)]

use aneforge_mil::op::{Argument, Arguments, MilOp, OpError};
use aneforge_mil::{Array, TensorType};

/// Result types and values of one use.
pub fn run(op: &'static MilOp, ports: &[Vec<Argument>]) -> Result<(Vec<TensorType>, Vec<Array>), OpError> {
    let arguments = Arguments::checked(op, ports)?;
    Ok(((op.infer)(&arguments)?, (op.meaning)(&arguments)?))
}

/// Whether two numbers agree to `tolerance` of the larger magnitude, or are the same special value.
pub fn close(got: f64, want: f64, tolerance: f64) -> bool {
    got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= tolerance * got.abs().max(want.abs()).max(1.0)
}

/// A small generator of numbers for tests (xorshift64*), so that failures repeat.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
