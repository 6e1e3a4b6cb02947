//! Sine and cosine for chips that have neither.

use crate::pass::{Context, Effect, Example, Pass, Stage};
use crate::rewrite::{one, rewrite};
use crate::{CompileError, Notes};
use aneforge_core::Target;
use aneforge_mil::{Body, Builder, DType, Given, ValueId};
use std::f64::consts::FRAC_1_PI;

/// Writes sine and cosine out: the argument is reduced by multiples of pi in pieces that fp16 holds exactly, then a polynomial
/// takes over.
pub const SINE: Pass = Pass {
    name: "written-out-sine",
    summary: "writes sin and cos as a reduction by multiples of pi and a polynomial, because chips before A15 have neither",
    stage: Stage::Legalise,
    effect: Effect::Numeric(
        "within 2e-3 of the exact value for arguments up to 32 in magnitude, within 5e-3 for all other fp16 numbers; NaN for \
         infinities",
    ),
    after: &[],
    applies: lacks_sine,
    run,
    example: Example { before: BEFORE, after: AFTER },
};

const BEFORE: &str = "func main<ios18>(tensor<fp16, [2]> x) {
            tensor<fp16, [2]> y = sin(x = x)[name = string(\"y\")];
        } -> (y);";
const AFTER: &str = include_str!("sine_after.mil");

fn lacks_sine(target: &Target) -> bool {
    target.chip().is_some_and(|chip| !chip.sine)
}

/// sin(r) = r + r^3 p(r^2) and cos(r) = 1 + r^2 p(r^2) on [-pi/2, pi/2], fitted at Chebyshev nodes: relative errors 2e-6 and 3e-5.
const SINE_TAIL: [f64; 3] = [-0.166656, 0.008312204, -0.0001849076];
const COSINE_TAIL: [f64; 3] = [-0.499988, 0.04158114, -0.001297769];

/// pi in three pieces. The first two have few enough bits for products with whole numbers up to 10 to be exact.
const PI: [f64; 3] = [3.125, 0.0166015625, -8.908910206761537e-6];
/// pi in two pieces, of which the first is exact times -1, 0 and 1.
const PI_ONCE: [f64; 2] = [3.140625, 9.676535897932e-4];
/// The number below 1/2 whose sum with itself is the one below 1: with 1/2, an argument just below 32 would round up to a digit and
/// leave a rest just above 32, where fp16 is coarser.
const BELOW_HALF: f64 = 0.5 - 1.0 / 4096.0;
/// 64 / pi and 2048 / pi, each modulo 2, as a multiple of 1/32 and the rest.
const TURNS_OF_64: [f64; 2] = [0.375, -0.003167284237395762];
const TURNS_OF_2048: [f64; 2] = [-0.09375, -0.007603095596664389];

fn run(body: Body, _context: &Context<'_>, notes: &mut Notes) -> Result<Body, CompileError> {
    rewrite(&body, |rewriter, operation| {
        let (op @ ("sin" | "cos"), Some(x), [result]) = (operation.op.name, one(operation, "x"), &operation.outputs[..]) else {
            return Ok(false);
        };
        let name = rewriter.name(*result);
        if rewriter.ty(x).dtype != DType::Fp16 {
            notes.missed(name, format!("{op} kept: only fp16 arguments can be reduced; cast the argument"));
            return Ok(false);
        }
        let x = rewriter.value(x)?;
        let mut formula = Formula { builder: rewriter.builder(), name };
        let (angle, odd) = formula.reduced(x)?;
        let value = if op == "sin" { formula.sine(angle)? } else { formula.cosine(angle)? };
        let sign = formula.two("add", odd, odd)?;
        let sign = formula.number_minus(1.0, sign)?;
        let new = formula.builder.op_named("mul", &[("x", value.into()), ("y", sign.into())], name)?;
        notes.applied(name, "written out with a reduction of its argument");
        rewriter.replace(*result, new);
        Ok(true)
    })
}

/// Adds the operations of one use, named after it.
struct Formula<'a> {
    builder: &'a mut Builder,
    name: &'a str,
}

type Step = Result<ValueId, CompileError>;

impl Formula<'_> {
    fn add_op(&mut self, op: &str, x: Given, y: Given) -> Step {
        Ok(self.builder.op_named(op, &[("x", x), ("y", y)], &format!("{}_{op}", self.name))?)
    }

    fn two(&mut self, op: &str, x: ValueId, y: ValueId) -> Step {
        self.add_op(op, x.into(), y.into())
    }

    fn scalar(&mut self, op: &str, x: ValueId, number: f64) -> Step {
        self.add_op(op, x.into(), Given::Float(number))
    }

    fn number_minus(&mut self, number: f64, x: ValueId) -> Step {
        self.add_op("sub", Given::Float(number), x.into())
    }

    /// x minus a whole number times a constant.
    fn less(&mut self, x: ValueId, digit: ValueId, constant: f64) -> Step {
        let product = self.scalar("mul", digit, constant)?;
        self.two("sub", x, product)
    }

    /// The whole number nearest to x times a factor.
    fn digit(&mut self, x: ValueId, factor: f64) -> Step {
        let scaled = self.scalar("mul", x, factor)?;
        self.whole(scaled)
    }

    /// The whole number nearest to x. No product follows the rounding at once: its scalar would be dropped.
    fn whole(&mut self, x: ValueId) -> Step {
        let shifted = self.scalar("add", x, BELOW_HALF)?;
        let whole = self.builder.op_named("floor", &[("x", shifted.into())], &format!("{}_floor", self.name))?;
        let ends = [("x", whole.into()), ("alpha", Given::Float(-64.0)), ("beta", Given::Float(64.0))];
        Ok(self.builder.op_named("clip", &ends, &format!("{}_digit", self.name))?)
    }

    /// An angle r in [-pi/2, pi/2] and whether x is an odd multiple of pi away from it, as 0 or 1.
    ///
    /// x = 2048 a + 64 b + c with whole a and b and |c| up to 32, all exact in fp16. c is reduced by multiples of pi; the multiples
    /// of 2048 and 64 are reduced as half turns, whole products of few bits first.
    fn reduced(&mut self, x: ValueId) -> Result<(ValueId, ValueId), CompileError> {
        // A little less than 1/2048, so that the digit of 65504 is 31: 32 times 2048 overflows.
        let high = self.digit(x, 2f64.powi(-11) * (1.0 - 1.0 / 64.0))?;
        let rest = self.less(x, high, 2048.0)?;
        let middle = self.digit(rest, 2f64.powi(-6))?;
        let rest = self.less(rest, middle, 64.0)?;
        let low = self.digit(rest, FRAC_1_PI)?;
        let mut angle = rest;
        for piece in PI {
            angle = self.less(angle, low, piece)?;
        }
        let (coarse_middle, coarse_high) =
            (self.scalar("mul", middle, TURNS_OF_64[0])?, self.scalar("mul", high, TURNS_OF_2048[0])?);
        let coarse = self.two("add", coarse_middle, coarse_high)?;
        let turns = self.whole(coarse)?;
        let coarse = self.two("sub", coarse, turns)?;
        let (fine_middle, fine_high) = (self.scalar("mul", middle, TURNS_OF_64[1])?, self.scalar("mul", high, TURNS_OF_2048[1])?);
        let fine = self.two("add", fine_middle, fine_high)?;
        let part = self.two("add", coarse, fine)?;
        let part = self.scalar("mul", part, std::f64::consts::PI)?;
        let mut angle = self.two("add", angle, part)?;
        let last = self.digit(angle, FRAC_1_PI)?;
        for piece in PI_ONCE {
            angle = self.less(angle, last, piece)?;
        }
        let count = self.two("add", low, turns)?;
        let count = self.two("add", count, last)?;
        let half = self.scalar("mul", count, 0.5)?;
        let half = self.builder.op_named("floor", &[("x", half.into())], &format!("{}_floor", self.name))?;
        let even = self.two("add", half, half)?;
        Ok((angle, self.two("sub", count, even)?))
    }

    fn tail(&mut self, square: ValueId, [first, second, third]: [f64; 3]) -> Step {
        let sum = self.scalar("mul", square, third)?;
        let sum = self.scalar("add", sum, second)?;
        let sum = self.two("mul", sum, square)?;
        self.scalar("add", sum, first)
    }

    fn sine(&mut self, r: ValueId) -> Step {
        let square = self.two("mul", r, r)?;
        let tail = self.tail(square, SINE_TAIL)?;
        let cube = self.two("mul", square, r)?;
        let bend = self.two("mul", cube, tail)?;
        self.two("add", r, bend)
    }

    fn cosine(&mut self, r: ValueId) -> Step {
        let square = self.two("mul", r, r)?;
        let tail = self.tail(square, COSINE_TAIL)?;
        let bend = self.two("mul", square, tail)?;
        self.scalar("add", bend, 1.0)
    }
}
