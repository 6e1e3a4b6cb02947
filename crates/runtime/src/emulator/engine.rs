//! One chip's engine with its switches set: what the plan asks for when it computes.

use super::known::Known;
use super::rules::norm::{self, RowTables};
use super::rules::reduce::{self, Reduction as Sums};
use super::rules::rounding::{half_away, taken};
use super::rules::unary;
use super::{ConvolutionForm, EmulatorOptions, PartialOverflow, SingleTap, SubnormalProducts};
use crate::kernel::conv::ConvShape;
use crate::kernel::exact::{Form, MacRules, Subnormals};
use crate::numerics::FunctionKey;
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
    known: Option<Arc<Known>>,
}

thread_local! {
    static SCRATCH: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

impl Engine {
    pub(crate) fn new(chip: &'static Chip, options: EmulatorOptions) -> Self {
        Self::with(chip, options, None)
    }

    /// The engine with what a dump tells of it.
    pub(crate) fn with(chip: &'static Chip, options: EmulatorOptions, known: Option<Arc<Known>>) -> Self {
        let sums = Sums { tree_from: options.planar.tree_length(chip.family) };
        // Whether softmax and norms look up the same tables as the operators is not known: better than a fit, and still a model.
        let dumped = |op: &str| known.as_ref().and_then(|known| known.table(&FunctionKey::plain(op))).cloned();
        Self { chip, options, sums, tables: RowTables::new(&dumped), known }
    }

    /// Text that is the same for engines with the same arithmetic, and only for those.
    pub(crate) fn identity(&self) -> String {
        let dump = self.known.as_ref().map_or(0, |known| known.number);
        format!("{} {:?} dump {dump}", self.chip.name, self.options)
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
        let winograd = match self.options.convolution {
            ConvolutionForm::PerChip => self.chip.winograd,
            ConvolutionForm::Direct => false,
            ConvolutionForm::Winograd => true,
        };
        if fits && winograd { Form::Winograd } else { Form::Direct }
    }

    /// Whether a convolution is a scaling, which does not end at the output port of the multiply-accumulate array.
    pub(crate) fn is_scaling(&self, kernel: [usize; 2], channels_in: usize) -> bool {
        self.options.single_tap == SingleTap::Element && kernel == [1, 1] && channels_in == 1
    }

    /// The rule of such a convolution.
    pub(crate) fn scaling_rule(&self) -> Rule {
        let text = "a product rounded once, half away from zero: one tap adds nothing up and is finite up to 65504".to_string();
        Rule { label: Label::Modelled, text, source: GUIDE.into(), chips: self.chip.name.to_string() }
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
        let mut rule = Rule { label, text: text.to_string(), source: source.into(), chips: self.chip.name.to_string() };
        if let Some(known) = &self.known
            && let Some(answer) = known.answer(op.name)
        {
            // A dump can take a claim away; a few of its results cannot prove one.
            if answer.matched < answer.total {
                rule.label = Label::Modelled;
            }
            rule.text.push_str(&format!("; it gives {} of {} results of the {}", answer.matched, answer.total, known.source));
        }
        rule
    }

    /// The rule of one use of an operator: exact where a dump holds its results for every input.
    pub(crate) fn rule_of(&self, arguments: &Arguments<'_>) -> Rule {
        let key = FunctionKey::of(arguments);
        let dumped = self.known.as_ref().and_then(|known| known.table(&key).map(|table| (known, table)));
        let Some((known, table)) = dumped else { return self.rule(arguments.op) };
        let at = |x: f16| table[usize::from(x.to_bits())];
        // Inputs of a program that are NaN count as infinity before any operator sees them.
        let same =
            (0..=u16::MAX).map(f16::from_bits).filter(|x| x.is_nan()).all(|x| at(x).to_bits() == at(f16::INFINITY).to_bits());
        let (label, text) = match same {
            true => (Label::Exact, "looked up among the device's results for all 65,536 inputs"),
            false => (Label::Modelled, "looked up among the device's results; NaN counts as infinity here, which they contradict"),
        };
        Rule { label, text: text.to_string(), source: known.source.clone().into(), chips: self.chip.name.to_string() }
    }

    /// Whether it looks functions up in a dump.
    pub(crate) fn is_dump(&self) -> bool {
        self.known.is_some()
    }

    /// Who gave the dump, where there is one.
    pub(crate) fn dump_source(&self) -> Option<&str> {
        self.known.as_ref().map(|known| known.source.as_str())
    }

    /// Whether a dump holds the results of a function.
    pub(crate) fn is_dumped(&self, arguments: &Arguments<'_>) -> bool {
        self.known.as_ref().is_some_and(|known| known.table(&FunctionKey::of(arguments)).is_some())
    }

    /// The rule of a slice that starts inside the width on a chip whose crop holds four fractional bits.
    pub(crate) fn crop_rule(&self) -> Rule {
        let text = "values beyond 4094 become infinite: the crop at a width offset scales by 16".to_string();
        Rule { label: Label::Modelled, text, source: GUIDE.into(), chips: "m1 and m2 families".to_string() }
    }

    /// The table of a unary operator for all inputs, where the planar rules have one.
    pub(crate) fn unary_table(&self, arguments: &Arguments<'_>) -> Option<Arc<[f16]>> {
        if let Some(table) = self.known.as_ref().and_then(|known| known.table(&FunctionKey::of(arguments))) {
            return Some(table.clone());
        }
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
