//! Arithmetic of the engine outside its multiply-accumulate array: tables, reductions, softmax, norms.
//!
//! How well each is known stands in the operators' records (`MilOp::arithmetic`): exact where published figures are reproduced to
//! every digit, modelled where only the size of the error is known. Nothing is fitted to a model's output or to a figure that is
//! then counted as reproduced. Sources: ANEForge paper arXiv 2606.17090 with package 0.4.0 (seeded errors per operator), ANE guide
//! arXiv 2606.22283 (chapter 3: tables, reductions, special values).

pub mod curve;
pub mod norm;
pub mod reduce;
pub mod rounding;
pub mod unary;

use aneforge_core::Family;

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
