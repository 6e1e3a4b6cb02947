//! Graphs as text: bug reports, fuzz corpora, input of the command line.
//!
//! One node per line, in order of creation, then the outputs:
//!
//! ```text
//! %0 = input "x" tensor<fp16, [2, 3]>
//! %1 = parameter "w" tensor<fp16, [512, 3]> seeded(1)
//! %2 = constant tensor<fp16, []> [0.5]
//! %3 = linear(x = %0, weight = %1) [] -> tensor<fp16, [2, 512]>
//! %4 = mul(x = %3, y = %2) [] -> tensor<fp16, [2, 512]> named "scaled"
//! %5 = split(x = %4) [num_splits = 2, axis = 1] -> tensor<fp16, [2, 256]>, tensor<fp16, [2, 256]>
//! output "left" = %5.0
//! ```
//!
//! Small constants carry their values. Large ones are stood in for by `seeded(n)`: pseudo-random data of the same type, the same
//! for the same `n`, so that the text stays short and a reader can still run it. Blank lines and `#` comments are skipped.

mod parse;
mod print;
mod seeded;

use super::{Graph, Tensor};
use crate::{GraphError, GraphOp};

/// Constants of more elements are written as `seeded`.
const SHOWN_ELEMENTS: usize = 64;

/// A graph read from text, with its named outputs.
#[derive(Clone, Debug)]
pub struct GraphText {
    /// The graph.
    pub graph: Graph,
    /// Outputs in text order.
    pub outputs: Vec<(String, Tensor)>,
}

impl Graph {
    /// The graph as text, without outputs.
    pub fn to_text(&self) -> String {
        print::print(self, &[])
    }

    /// The graph as text, with named outputs; outputs that carry an error are left out.
    pub fn to_text_with(&self, outputs: &[(String, Tensor)]) -> String {
        print::print(self, outputs)
    }

    /// Reads a graph from text.
    ///
    /// # Errors
    /// [`GraphError::Text`] with line, column and what is wrong, be it the text or the graph it describes.
    pub fn parse(text: &str) -> Result<GraphText, GraphError> {
        parse::parse(text, &[])
    }

    /// [`Self::parse`] with operators of one's own beside those of this crate; they take precedence.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_with(text: &str, operators: &[&'static GraphOp]) -> Result<GraphText, GraphError> {
        parse::parse(text, operators)
    }
}
