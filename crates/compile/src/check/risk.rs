//! Where a program may lose what it means in the engine's fp16, and on which chips.

use super::product::product_error;
use super::ranges::{FP16_LARGEST, Range, inner};
use super::single;
use crate::rewrite::one;
use aneforge_core::{Chip, CompilerTarget};
use aneforge_mil::{Body, Constant, DType, Operand, Operation, ValueId};

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskKind {
    /// A sum of products reaches 2^15, which the engine makes infinite.
    ProductOverflow,
    /// A value is beyond what fp16 holds.
    Overflow,
    /// A slice that starts inside the last axis makes magnitudes above 4094 infinite.
    WidthSlice,
    /// Products so small that the engine's rounding of each takes part of the result.
    SmallProducts,
    /// Numbers of like size are subtracted: what is left may be rounding.
    Cancellation,
    /// A sum over many signed terms outside a matrix product, where partial sums are fp16.
    LongSum,
    /// An epsilon that fp16 makes zero or holds with few bits.
    Epsilon,
    /// Chips give other bits.
    OtherBits,
}

/// One thing that may happen at one place.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Risk {
    /// What.
    pub kind: RiskKind,
    /// The operator.
    pub op: &'static str,
    /// SSA name of the value.
    pub value: String,
    /// How large: the magnitude that overflows, or the relative error that is predicted.
    pub size: f64,
    /// Whether it is to be expected, or only not excluded by bounds that hold for every input.
    pub is_likely: bool,
    /// Targets that it happens on; empty where on all.
    pub targets: Vec<&'static str>,
    /// In words, with what to do.
    pub text: String,
}

/// Sums of products from here on are infinite: arXiv 2606.22283, and reproduced by published figures.
const PRODUCT_CEILING: f64 = 32768.0;
/// Magnitude above which a width slice is infinite on A13 and A14: ANE guide, chapter 12.
const SLICE_CEILING: f64 = 4094.0;
/// How many times the scale a value is taken to reach.
const REACH: f64 = 6.0;
/// Terms of a sum from which its rounding is worth a word: a tenth of the result at most of fp16's 11 bits.
const LONG_SUM: f64 = 256.0;

/// All risks; `threshold` is the relative error from which the loss of a product is told.
pub fn risks(body: &Body, ranges: &[Option<Range>], targets: &[&'static CompilerTarget], threshold: f64) -> Vec<Risk> {
    let constant = single::constants(body);
    let chips: Vec<(&'static str, &'static Chip)> =
        targets.iter().filter_map(|target| Some((target.name, target.chip()?))).collect();
    let seeker = Seeker { body, ranges, chips: &chips, threshold };
    let mut risks = Vec::new();
    for operation in &body.operations {
        let Some(&output) = operation.outputs.first() else { continue };
        if constant[output.index()] || body.ty(output).dtype != DType::Fp16 {
            continue;
        }
        seeker.overflow(operation, output, &mut risks);
        seeker.product(operation, output, &mut risks);
        seeker.slice(operation, output, &mut risks);
        seeker.sums(operation, output, &mut risks);
        seeker.epsilon(operation, output, &mut risks);
        seeker.other_bits(operation, output, &mut risks);
    }
    risks.sort_by(|a, b| b.is_likely.cmp(&a.is_likely).then(a.kind.cmp(&b.kind)).then(b.size.total_cmp(&a.size)));
    risks
}

struct Seeker<'a> {
    body: &'a Body,
    ranges: &'a [Option<Range>],
    chips: &'a [(&'static str, &'static Chip)],
    threshold: f64,
}

impl Seeker<'_> {
    fn range(&self, operation: &Operation, port: &str) -> Option<Range> {
        self.ranges[one(operation, port)?.index()]
    }

    fn on(&self, has: impl Fn(&Chip) -> bool) -> Vec<&'static str> {
        self.chips.iter().filter(|(_, chip)| has(chip)).map(|(name, _)| *name).collect()
    }

    fn risk(&self, kind: RiskKind, operation: &Operation, output: ValueId, size: f64, is_likely: bool, text: String) -> Risk {
        let value = self.body.value(output).name.clone();
        Risk { kind, op: operation.op.name, value, size, is_likely, targets: Vec::new(), text }
    }

    fn overflow(&self, operation: &Operation, output: ValueId, risks: &mut Vec<Risk>) {
        let Some(range) = self.ranges[output.index()] else { return };
        let is_product = matches!(operation.op.name, "linear" | "matmul" | "conv" | "conv_transpose");
        let (kind, ceiling, what) = if is_product {
            (RiskKind::ProductOverflow, PRODUCT_CEILING, "sums of products from 32768 on are infinite; scale a factor down")
        } else {
            (RiskKind::Overflow, FP16_LARGEST, "fp16 ends at 65504; scale the input down")
        };
        if range.magnitude() >= ceiling {
            let is_likely = range.scale * REACH >= ceiling;
            let text = format!("may reach {:.3e}, typically {:.3e}: {what}", range.magnitude(), range.scale);
            risks.push(self.risk(kind, operation, output, range.magnitude(), is_likely, text));
        }
    }

    fn product(&self, operation: &Operation, output: ValueId, risks: &mut Vec<Risk>) {
        if inner(self.body, operation).is_none() {
            return;
        }
        let right = one(operation, "weight").or_else(|| one(operation, "y"));
        let Some((left, right)) = self.range(operation, "x").zip(right.and_then(|id| self.scale_of(id))) else { return };
        let error = product_error(left.scale, right);
        if error >= self.threshold {
            let text = format!(
                "operands of scale {:.2e} and {right:.2e} give a relative error of {error:.2e}; scale both up by powers of two and the \
                 result down",
                left.scale
            );
            risks.push(self.risk(RiskKind::SmallProducts, operation, output, error, true, text));
        }
    }

    /// Scale of a factor.
    fn scale_of(&self, id: ValueId) -> Option<f64> {
        self.ranges[id.index()].map(|range| range.scale)
    }

    fn slice(&self, operation: &Operation, output: ValueId, risks: &mut Vec<Risk>) {
        let name = operation.op.name;
        let Some(x) = one(operation, "x").filter(|_| matches!(name, "slice_by_index" | "slice_by_size")) else { return };
        let begin = one(operation, "begin").and_then(|id| self.body.constant(id));
        let starts_inside = matches!(begin, Some(Constant::Values(values)) if values.last().is_some_and(|last| *last != 0.0));
        let Some(range) = self.ranges[x.index()].filter(|range| starts_inside && range.magnitude() > SLICE_CEILING) else { return };
        let text = format!(
            "magnitudes up to {:.3e} pass a slice that starts inside the last axis: those above 4094 become infinite; transpose first, or \
             scale down",
            range.magnitude()
        );
        let is_likely = range.scale * REACH > SLICE_CEILING;
        let mut risk = self.risk(RiskKind::WidthSlice, operation, output, range.magnitude(), is_likely, text);
        risk.targets = self.on(|chip| chip.width_slice_hazard);
        if !risk.targets.is_empty() {
            risks.push(risk);
        }
    }

    fn sums(&self, operation: &Operation, output: ValueId, risks: &mut Vec<Risk>) {
        let Some(x) = one(operation, "x") else { return };
        match operation.op.name {
            "reduce_sum" => {
                let terms = self.body.ty(x).count() as f64 / self.body.ty(output).count().max(1) as f64;
                let is_signed = self.ranges[x.index()].is_none_or(|range| range.low < 0.0);
                if terms >= LONG_SUM && is_signed {
                    // A walk of fp16 roundings: each of the partial sums, of size up to sqrt(terms) of a term, is rounded.
                    let error = terms.sqrt() * 2f64.powi(-11) / 6f64.sqrt();
                    let text = format!(
                        "{terms:.0} signed terms are summed in fp16, relative error about {error:.1e}; a product with ones sums them wider"
                    );
                    risks.push(self.risk(RiskKind::LongSum, operation, output, error, error >= self.threshold, text));
                }
            }
            "sub" => {
                let pair = self.ranges[x.index()].zip(self.range(operation, "y"));
                let (Some((x, y)), Some(result)) = (pair, self.ranges[output.index()]) else { return };
                // Both of one sign and alike in size: the difference is a small part of either.
                let overlap = x.low.max(y.low) <= x.high.min(y.high);
                let is_far = x.low.min(y.low) > 0.0 || x.high.max(y.high) < 0.0;
                let lost = 2f64.powi(-11) * x.scale.max(y.scale) / result.scale.max(f64::MIN_POSITIVE);
                if (overlap && is_far) || lost >= self.threshold {
                    let text = format!(
                        "operands of scale {:.2e} and {:.2e} leave {:.2e}: their rounding is {lost:.1e} of it; subtract before rounding, or \
                         keep a pair of numbers",
                        x.scale, y.scale, result.scale
                    );
                    risks.push(self.risk(RiskKind::Cancellation, operation, output, lost, lost >= self.threshold, text));
                }
            }
            _ => {}
        }
    }

    fn epsilon(&self, operation: &Operation, output: ValueId, risks: &mut Vec<Risk>) {
        let Some(Constant::Values(values)) = one(operation, "epsilon").and_then(|id| self.body.constant(id)) else {
            return;
        };
        let Some(&epsilon) = values.first().filter(|epsilon| **epsilon > 0.0 && **epsilon < 2f64.powi(-14)) else { return };
        let rounded = half::f16::from_f64(epsilon).to_f64();
        let is_zero = rounded == 0.0;
        let text = if is_zero {
            format!("epsilon {epsilon:.3e} is zero in fp16: a constant input divides by zero; use at least 6e-8, better 1e-5")
        } else {
            format!(
                "epsilon {epsilon:.3e} is below fp16's normal numbers, held as {rounded:.3e}; 6.2e-5 is the least that keeps its bits"
            )
        };
        risks.push(self.risk(RiskKind::Epsilon, operation, output, (rounded / epsilon - 1.0).abs(), is_zero, text));
    }

    fn other_bits(&self, operation: &Operation, output: ValueId, risks: &mut Vec<Risk>) {
        let (targets, text) = match operation.op.name {
            "conv" if self.is_winograd(operation) => (
                self.on(|chip| chip.winograd),
                "3x3 convolutions of stride 1 run in Winograd's form there, with other roundings than elsewhere".to_string(),
            ),
            "sin" | "cos" => {
                (self.on(|chip| !chip.sine), "is a polynomial there, native elsewhere: results differ in the last bits".to_string())
            }
            _ => return,
        };
        if targets.is_empty() || targets.len() == self.chips.len() {
            return;
        }
        risks.push(Risk { targets, ..self.risk(RiskKind::OtherBits, operation, output, 2f64.powi(-11), false, text) });
    }

    fn is_winograd(&self, operation: &Operation) -> bool {
        let kernel = one(operation, "weight").map(|id| self.body.ty(id).shape.clone()).unwrap_or_default();
        let strides = one(operation, "strides").and_then(|id| self.body.constant(id));
        let is_one = match strides {
            Some(Constant::Values(values)) => values.iter().all(|stride| *stride == 1.0),
            _ => operation.arguments.iter().all(|argument| !matches!(argument, Operand::Many(_))),
        };
        kernel.get(2..) == Some(&[3, 3]) && is_one
    }
}
