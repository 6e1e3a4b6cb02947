//! Element-wise operations on fp16 slices.
//!
//! The functions of this module compute in f32 and round to nearest, ties to even; those of
//! [`exact`] follow the engine: one rounding half away from zero, NaN as infinity, indeterminate
//! forms as +0.

use half::f16;

use super::convert::{BLOCK, part};
use super::exact::round;
use super::exact::sink::function;
use super::math::activate;
use super::simd::{Kernel, Simd};
use super::types::{Activation, Context, Shared};

/// An operation on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
}

/// The second operand of [`binary`].
#[derive(Debug, Clone, Copy)]
pub enum Other<'a> {
    /// As many values as the first operand.
    Same(&'a [f16]),
    /// A row that is repeated along the first operand.
    Row(&'a [f16]),
    /// One value.
    Scalar(f16),
}

/// `a (op) b` in f32, rounded to nearest.
///
/// # Panics
/// If the lengths do not fit.
pub fn binary(context: Context<'_>, operation: Binary, a: &[f16], b: Other<'_>, output: &mut [f16]) {
    in_parallel(context, a, b, output, Job { operation: Operation::Binary(operation), exact: false });
}

/// A function of every value in f32, rounded to nearest.
///
/// # Panics
/// If the lengths differ.
pub fn unary(context: Context<'_>, activation: Activation, a: &[f16], output: &mut [f16]) {
    in_parallel(context, a, Other::Scalar(f16::ZERO), output, Job { operation: Operation::Unary(activation), exact: false });
}

/// The same operations in the engine's arithmetic.
pub mod exact {
    use super::*;

    /// `a (op) b`, rounded once, half away from zero (a subnormal product twice).
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn binary(context: Context<'_>, operation: Binary, a: &[f16], b: Other<'_>, output: &mut [f16]) {
        in_parallel(context, a, b, output, Job { operation: Operation::Binary(operation), exact: true });
    }

    /// `max(x, 0)`; NaN becomes infinity.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn relu(context: Context<'_>, a: &[f16], output: &mut [f16]) {
        unary(context, Activation::Relu, a, output);
    }

    /// `min(max(x, low), high)`; NaN becomes infinity first.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn clip(context: Context<'_>, low: f16, high: f16, a: &[f16], output: &mut [f16]) {
        unary(context, Activation::Clip(low.to_f32(), high.to_f32()), a, output);
    }

    /// A function of every value. Exact rules are known for `None`, `Relu`, `Clip` and `Square`;
    /// the others are the f32 function rounded half away, a stand-in for the engine's tables.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn unary(context: Context<'_>, activation: Activation, a: &[f16], output: &mut [f16]) {
        let operation = Operation::Unary(activation);
        in_parallel(context, a, Other::Scalar(f16::ZERO), output, Job { operation, exact: true });
    }
}

#[derive(Clone, Copy)]
enum Operation {
    Binary(Binary),
    Unary(Activation),
}

#[derive(Clone, Copy)]
struct Job {
    operation: Operation,
    exact: bool,
}

fn in_parallel(context: Context<'_>, a: &[f16], b: Other<'_>, output: &mut [f16], job: Job) {
    assert_eq!(a.len(), output.len(), "element-wise: output length");
    let out = Shared::new(output);
    match b {
        Other::Row(row) => {
            assert!(!row.is_empty() && a.len().is_multiple_of(row.len()), "element-wise: the row must divide the operand");
            let rows = a.len() / row.len();
            let block = (BLOCK / row.len()).max(1);
            context.pool.run(rows.div_ceil(block), &|index, _| {
                for at in index * block..rows.min((index + 1) * block) {
                    // SAFETY: jobs have disjoint rows.
                    let output = unsafe { out.slice(at * row.len(), row.len()) };
                    let a = &a[at * row.len()..(at + 1) * row.len()];
                    context.level.dispatch(Slices { a, b: row, output, job });
                }
            });
        }
        Other::Same(b) => {
            assert_eq!(a.len(), b.len(), "element-wise: operand lengths");
            context.pool.run(a.len().div_ceil(BLOCK), &|index, _| {
                let range = part(a.len(), index);
                // SAFETY: jobs have disjoint parts.
                let output = unsafe { out.slice(range.start, range.len()) };
                context.level.dispatch(Slices { a: &a[range.clone()], b: &b[range], output, job });
            });
        }
        Other::Scalar(value) => {
            let b = [value; 32];
            context.pool.run(a.len().div_ceil(BLOCK), &|index, _| {
                let range = part(a.len(), index);
                // SAFETY: jobs have disjoint parts.
                let output = unsafe { out.slice(range.start, range.len()) };
                context.level.dispatch(Slices { a: &a[range], b: &b, output, job });
            });
        }
    }
}

/// Equally long slices, or a `b` of exactly 32 equal values.
struct Slices<'a> {
    a: &'a [f16],
    b: &'a [f16],
    output: &'a mut [f16],
    job: Job,
}

impl Kernel for Slices<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Slices { a, b, output, job } = self;
        match (job.operation, job.exact) {
            (Operation::Unary(activation), false) => walk(s, a, b, output, Function(activation)),
            (Operation::Unary(activation), true) => walk(s, a, b, output, ExactFunction(activation)),
            (Operation::Binary(operation), false) => walk(s, a, b, output, FastBinary(operation)),
            (Operation::Binary(operation), true) => walk(s, a, b, output, ExactBinary(operation)),
        }
    }
}

trait Lanes: Copy {
    fn apply<S: Simd>(self, s: S, a: S::F, b: S::F) -> S::F;
}

#[derive(Clone, Copy)]
struct Function(Activation);
#[derive(Clone, Copy)]
struct ExactFunction(Activation);
#[derive(Clone, Copy)]
struct FastBinary(Binary);
#[derive(Clone, Copy)]
struct ExactBinary(Binary);

impl Lanes for Function {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, a: S::F, _: S::F) -> S::F {
        activate(s, self.0, a)
    }
}

impl Lanes for ExactFunction {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, a: S::F, _: S::F) -> S::F {
        function(s, self.0, round::coerce(s, a))
    }
}

impl Lanes for FastBinary {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, a: S::F, b: S::F) -> S::F {
        match self.0 {
            Binary::Add => s.add(a, b),
            Binary::Sub => s.sub(a, b),
            Binary::Mul => s.mul(a, b),
            Binary::Div => s.div(a, b),
            Binary::Max => s.max(a, b),
            Binary::Min => s.min(a, b),
        }
    }
}

impl Lanes for ExactBinary {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, a: S::F, b: S::F) -> S::F {
        let (a, b) = (round::coerce(s, a), round::coerce(s, b));
        match self.0 {
            Binary::Add => round::add(s, a, b),
            Binary::Sub => {
                let negative = s.xor(s.bits(b), s.splat_int(i32::MIN));
                round::add(s, a, s.from_bits(negative))
            }
            Binary::Mul => round::mul(s, a, b),
            Binary::Div => round::div(s, a, b),
            Binary::Max => s.max(a, b),
            Binary::Min => s.min(a, b),
        }
    }
}

#[inline(always)]
fn walk<S: Simd, L: Lanes>(s: S, a: &[f16], b: &[f16], output: &mut [f16], lanes: L) {
    let length = a.len().min(output.len());
    // A short b is one value, repeated.
    let repeated = b.len() < length;
    let whole = length / S::LANES * S::LANES;
    let (from, other, to): (*const u16, *const u16, *mut u16) = (a.as_ptr().cast(), b.as_ptr().cast(), output.as_mut_ptr().cast());
    for at in (0..whole).step_by(S::LANES) {
        // SAFETY: `at + LANES <= length`; a repeated b holds 32 values, read from its begin.
        unsafe {
            let b = s.load_half(other.add(if repeated { 0 } else { at }));
            s.store_half(to.add(at), lanes.apply(s, s.load_half(from.add(at)), b));
        }
    }
    if whole < length {
        let count = length - whole;
        let (mut x, mut y) = ([f16::ZERO; 32], [f16::ZERO; 32]);
        x[..count].copy_from_slice(&a[whole..length]);
        let start = if repeated { 0 } else { whole };
        y[..count].copy_from_slice(&b[start..start + count]);
        // SAFETY: both arrays hold at least LANES values.
        unsafe {
            let value = lanes.apply(s, s.load_half(x.as_ptr().cast()), s.load_half(y.as_ptr().cast()));
            s.store_half(x.as_mut_ptr().cast(), value);
        }
        output[whole..length].copy_from_slice(&x[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::exact::scalar;
    use super::super::pool::Pool;
    use super::super::simd::Level;
    use super::*;

    /// Pairs that meet every exponent pair, signs, subnormals, infinities and NaN.
    fn pairs() -> (Vec<f16>, Vec<f16>) {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u16
        };
        let edges = [0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3c00, 0x6800];
        let mut values: Vec<(u16, u16)> = (0..300_000).map(|_| (random(), random())).collect();
        for a in edges {
            values.extend(edges.map(|b| (a, b)));
        }
        // Sums and quotients near ties: equal or neighbouring exponents.
        values.extend((0..100_000).map(|_| {
            let a = random();
            (a, a & 0x7c00 ^ random() & 0x87ff)
        }));
        values.into_iter().map(|(a, b)| (f16::from_bits(a), f16::from_bits(b))).unzip()
    }

    #[test]
    fn exact_operations_equal_their_scalar_twins() {
        let (a, b) = pairs();
        type Twin = fn(f16, f16) -> f16;
        let cases: [(Binary, Twin); 6] = [
            (Binary::Add, scalar::add),
            (Binary::Sub, scalar::sub),
            (Binary::Mul, scalar::mul),
            (Binary::Div, scalar::div),
            (Binary::Max, scalar::max),
            (Binary::Min, scalar::min),
        ];
        for level in Level::available() {
            let context = Context { pool: Pool::global(), level };
            for (operation, twin) in cases {
                let mut out = vec![f16::ZERO; a.len()];
                exact::binary(context, operation, &a, Other::Same(&b), &mut out);
                for i in 0..a.len() {
                    let want = twin(a[i], b[i]);
                    assert_eq!(
                        out[i].to_bits(),
                        want.to_bits(),
                        "{level} {operation:?} {:?} {:?}: {} instead of {want}",
                        a[i].to_bits(),
                        b[i].to_bits(),
                        out[i]
                    );
                }
            }
        }
    }

    #[test]
    fn fast_operations_round_to_even_and_broadcast() {
        for level in Level::available() {
            let context = Context { pool: Pool::global(), level };
            let a: Vec<f16> = (0..75).map(|i| f16::from_f32(2048.0 + 2.0 * i as f32)).collect();
            let row: Vec<f16> = (0..25).map(|i| f16::from_f32((i % 3) as f32)).collect();
            let mut out = vec![f16::ZERO; 75];
            binary(context, Binary::Add, &a, Other::Row(&row), &mut out);
            for i in 0..75 {
                assert_eq!(out[i], f16::from_f32(a[i].to_f32() + row[i % 25].to_f32()));
            }
            binary(context, Binary::Div, &a, Other::Scalar(f16::from_f32(3.0)), &mut out);
            for i in 0..75 {
                assert_eq!(out[i], f16::from_f32(a[i].to_f32() / 3.0));
            }
            unary(context, Activation::Square, &row, &mut out[..25]);
            assert_eq!(out[2].to_f32(), 4.0);
        }
    }

    #[test]
    fn exact_relu_makes_infinity_of_nan() {
        let context = Context::global();
        let input = [f16::NAN, f16::from_f32(-1.0), f16::NEG_ZERO, f16::from_f32(3.0)];
        let mut out = [f16::ONE; 4];
        exact::relu(context, &input, &mut out);
        assert_eq!(out.map(f16::to_bits), [0x7c00, 0, 0, 0x4200]);
    }
}
