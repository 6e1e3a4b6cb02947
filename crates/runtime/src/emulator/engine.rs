//! One chip's engine with its switches set: what the plan asks for when it computes.

use super::rules::norm::{self, RowTables};
use super::rules::reduce::{self, Reduction as Sums};
use super::rules::rounding::{half_away, taken};
use super::rules::unary;
use super::{EmulatorOptions, PartialOverflow, SingleTap, SubnormalProducts};
use crate::kernel::conv::ConvShape;
use crate::kernel::exact::{Form, MacRules, Subnormals};
use crate::plan::Reduction;
use crate::report::{Label, Rule};
use aneforge_core::{Chip, Family};
use aneforge_mil::op::{Arguments, Arithmetic, MilOp};
use half::f16;
use std::cell::RefCell;
use std::sync::Arc;

/// The arithmetic of a chip.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) chip: &'static Chip,
    pub(crate) options: EmulatorOptions,
    sums: Sums,
    tables: RowTables,
}

thread_local! {
    static SCRATCH: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

impl Engine {
    pub(crate) fn new(chip: &'static Chip, options: EmulatorOptions) -> Self {
        let sums = Sums { tree_from: options.planar.tree_length(chip.family) };
        Self { chip, options, sums, tables: RowTables::new() }
    }

    /// How products treat what no published figure decides.
    pub(crate) fn mac_rules(&self) -> MacRules {
        let flushes = match self.options.subnormal_products {
            SubnormalProducts::Kept => false,
            SubnormalProducts::Flushed => true,
            SubnormalProducts::PerChip => self.chip.family < Family::A17,
        };
        MacRules {
            subnormal_inputs: if flushes { Subnormals::Zero } else { Subnormals::Counted },
            saturate_partials: self.options.partial_overflow == PartialOverflow::Immediate,
        }
    }

    /// The form that a convolution runs in: one-dimensional Winograd for 3x3, stride 1, padding 1 on chips that use it.
    pub(crate) fn convolution_form(&self, shape: &ConvShape) -> Form {
        let fits = shape.kernel == [3, 3]
            && shape.stride == [1, 1]
            && shape.dilation == [1, 1]
            && shape.pads == [1, 1, 1, 1]
            && shape.groups == 1;
        if fits && self.chip.winograd { Form::Winograd } else { Form::Direct }
    }

    /// Whether a convolution is a scaling, which does not end at the output port of the multiply-accumulate array.
    pub(crate) fn is_scaling(&self, kernel: [usize; 2], channels_in: usize) -> bool {
        self.options.single_tap == SingleTap::Element && kernel == [1, 1] && channels_in == 1
    }

    /// The rule of such a convolution.
    pub(crate) fn scaling_rule(&self) -> Rule {
        let text = "a product rounded once, half away from zero: one tap adds nothing up and is finite up to 65504".to_string();
        Rule { label: Label::Modelled, text, source: GUIDE, chips: self.chip.name.to_string() }
    }

    /// Stores results of an operator that has no rule of its own: rounded once to fp16, half away from zero.
    pub(crate) fn store(&self, values: &mut [f64]) {
        values.iter_mut().for_each(|value| *value = half_away(*value).to_f64());
    }

    /// The rule that results of an operator follow.
    pub(crate) fn rule(&self, op: &'static MilOp) -> Rule {
        let (label, text, source) = match op.arithmetic {
            Arithmetic::Exact(text) => (Label::Exact, text, PAPER),
            Arithmetic::Copy => (Label::Exact, "moves values, no rounding", "the operator's meaning"),
            Arithmetic::Modelled(text) => (Label::Modelled, text, GUIDE),
            Arithmetic::Unknown => {
                (Label::Modelled, "exact result rounded once to fp16, half away from zero", "no source: a stand-in")
            }
        };
        Rule { label, text: text.to_string(), source, chips: self.chip.name.to_string() }
    }

    /// The rule of a slice that starts inside the width on a chip whose crop holds four fractional bits.
    pub(crate) fn crop_rule(&self) -> Rule {
        let text = "values beyond 4094 become infinite: the crop at a width offset scales by 16".to_string();
        Rule { label: Label::Modelled, text, source: GUIDE, chips: "m1 and m2 families".to_string() }
    }

    /// The table of a unary operator for all inputs, where the planar rules have one.
    pub(crate) fn unary_table(&self, arguments: &Arguments<'_>) -> Option<Arc<[f16]>> {
        let parameters = |name: &str| arguments.number(name).unwrap_or(0.0);
        let table = unary::table(arguments.op.name, arguments.text("mode").unwrap_or(""), &parameters)?;
        Some((0..=u16::MAX).map(|bits| table.at(f16::from_bits(bits))).collect())
    }

    /// One reduction of one row.
    pub(crate) fn reduce(&self, reduction: Reduction, row: &[f16]) -> f16 {
        SCRATCH.with_borrow_mut(|scratch| match reduction {
            Reduction::Sum => self.sums.sum(row, scratch),
            Reduction::Mean => self.sums.mean(row, scratch),
            Reduction::Max => f16::from_f64(reduce::maximum(row)),
            Reduction::Min => f16::from_f64(reduce::minimum(row)),
            Reduction::SumOfSquares => half_away(self.sums.sum_of_squares(row, scratch)),
            Reduction::SumOfMagnitudes => self.sums.sum_of_magnitudes(row, scratch),
            Reduction::Length => half_away(self.sums.sum_of_squares(row, scratch).sqrt()),
        })
    }

    /// Softmax of one row.
    pub(crate) fn softmax(&self, row: &[f16], out: &mut [f16]) {
        SCRATCH.with_borrow_mut(|scratch| norm::softmax(row, out, self.sums, &self.tables, scratch));
    }

    /// Layer norm of one row.
    pub(crate) fn layer_norm(&self, row: &[f16], gamma: Option<&[f16]>, beta: Option<&[f16]>, epsilon: f64, out: &mut [f16]) {
        SCRATCH.with_borrow_mut(|scratch| norm::layer_norm(row, gamma, beta, epsilon, out, self.sums, &self.tables, scratch));
    }

    /// A value as the engine takes it in: NaN counts as infinity.
    pub(crate) fn input(&self, value: f16) -> f16 {
        f16::from_f64(taken(value))
    }
}

/// The ANEForge paper, whose published errors the exact rules reproduce.
const PAPER: &str = "ANEForge, arXiv 2606.17090, published relative errors";
/// The ANE guide.
const GUIDE: &str = "ANE guide, arXiv 2606.22283, chapter 3";
