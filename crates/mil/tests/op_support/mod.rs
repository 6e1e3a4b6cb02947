//! What the tests over the operator table share.
#![allow(dead_code)]

use aneforge_mil::op::{Argument, Arguments, Case, Data, Given, MilOp, OpError};
use aneforge_mil::{Array, TensorType};

/// Result types and values of one use.
pub fn run(op: &'static MilOp, ports: &[Vec<Argument>]) -> Result<(Vec<TensorType>, Vec<Array>), OpError> {
    let arguments = Arguments::checked(op, ports)?;
    Ok(((op.infer)(&arguments)?, (op.meaning)(&arguments)?))
}

/// A case again with other extents and values: equal extents stay equal and ones stay one, so that most uses stay legal.
pub fn resized(op: &MilOp, case: &Case, dice: &mut Dice) -> Vec<Vec<Argument>> {
    let extents: Vec<_> = (0..64).map(|extent| if extent < 2 { extent } else { 1 + dice.below(8) }).collect();
    let seed = dice.next();
    let mut ports = vec![Vec::new(); op.ports.len()];
    for (name, given) in case.given {
        let Some(index) = op.port(name) else { continue };
        let argument = match *given {
            Given::Tensor(dtype, shape, data) if !op.ports[index].kind.is_attribute() => {
                let shape: Vec<_> = shape.iter().map(|&extent| extents.get(extent).copied().unwrap_or(extent)).collect();
                let salt = if let Data::Seeded(seed) = data { seed } else { ports[index].len() as u64 };
                Argument::valued(Array::seeded(TensorType::new(dtype, shape), seed ^ salt ^ (index as u64) << 32, op.domain(name)))
            }
            other => other.argument(op.domain(name)),
        };
        ports[index].push(argument);
    }
    ports
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
