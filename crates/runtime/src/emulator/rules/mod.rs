//! Arithmetic of the engine outside its multiply-accumulate array: tables, reductions, softmax, norms.
//!
//! Every function here belongs to a [`Rule`] with a status: exact where published figures are reproduced to every digit, modelled
//! where only the size of the error is known. Nothing is fitted to a model's output or to a figure that is then counted as
//! reproduced. Sources: ANEForge paper arXiv 2606.17090 with package 0.4.0 (seeded errors per operator), ANE guide arXiv 2606.22283
//! (chapter 3: tables, reductions, special values).

pub mod curve;
pub mod norm;
pub mod reduce;
pub mod rounding;
pub mod unary;

use aneforge_core::Family;
use aneforge_mil::op::Arithmetic;

/// A rule of arithmetic: what it covers, how well it is known, by whom, and for which chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name in reports.
    pub name: &'static str,
    /// How well it is known, with the source.
    pub status: Arithmetic,
    /// Families it holds for, in words.
    pub chips: &'static str,
}

/// Undecided rules: each default is the reading that the most specific source supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Shortest axis on which a sum goes through a tree of fp16 additions; below it the sum is exact with one rounding. `None`
    /// takes the family's value: 192 up to A14, 384 from A15 on (the compiler's reduction-by-transpose threshold, ANE guide appendix A).
    pub tree_from: Option<usize>,
}

impl Switches {
    /// The axis length from which sums go through the tree.
    pub fn tree_length(&self, family: Family) -> usize {
        self.tree_from.unwrap_or(if family <= Family::A14 { 192 } else { 384 })
    }
}

/// Sums and means along an axis.
pub const REDUCTION: Rule = Rule {
    name: "reduction",
    status: Arithmetic::Modelled(
        "short axes: exact sum, one half-away rounding; long axes: binary tree with an fp16 rounding, ties to even, per addition, which has the size \
         of the published error but not its bits (arXiv 2606.17090)",
    ),
    chips: "all; the threshold differs at A15",
};

/// Table functions: gelu, sigmoid, tanh and the like.
pub const TABLE: Rule = Rule {
    name: "table",
    status: Arithmetic::Modelled(
        "least-squares 33-knot curve on a stated domain, clamped tails; the engine's knots are not published (ANE guide, chapter 3)",
    ),
    chips: "all",
};

/// Softmax over an axis.
pub const SOFTMAX: Rule = Rule {
    name: "softmax",
    status: Arithmetic::Modelled(
        "maximum, difference, exponential table, sum, reciprocal, product, each rounded half away (ANE guide, chapter 3)",
    ),
    chips: "all",
};

/// Layer, rms, batch and instance norm in their native forms.
pub const NORM: Rule = Rule {
    name: "norm",
    status: Arithmetic::Modelled("the chain of its element-wise operations and reductions, each rounded half away"),
    chips: "all",
};

/// Rectifier, copies, comparisons and selections.
pub const COPY: Rule = Rule {
    name: "copy",
    status: Arithmetic::Exact(
        "max(x, 0) and copies round nothing; streaming relu of arXiv 2606.17090 is reproduced to every digit",
    ),
    chips: "M1 to M6; M3 by the same rule, without a figure",
};
