//! A graph with its inputs as a text file that anyone can run again.
//!
//! Graph text, with what else must be known in comments that start with `#!`:
//!
//! ```text
//! # What it shows.
//! #! mode whole
//! #! chip m5
//! #! input "x0" seed 5 from -2 to 2 whole
//! %0 = input "x0" tensor<fp16, [2, 3]>
//! ...
//! ```

use super::recipe::{Built, Draw, Flavour};
use super::{Mode, Recipe, Subject};
use aneforge_core::{Chip, Graph, GraphError, GraphOp, chips};

/// What a case file says.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is asked.
    pub mode: Mode,
    /// The chip it is compiled for.
    pub chip: &'static Chip,
    /// What the inputs' values are drawn from, by name.
    pub draws: Vec<(String, Draw)>,
    /// The graph as text.
    pub graph: String,
}

/// Why a text is no case.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A line that starts with `#!` says nothing known.
    #[error(
        "line {line}: {text:?} is none of `#! mode whole|real|edge`, `#! chip NAME`, `#! input \"NAME\" seed N from LOW to HIGH whole|real|edge`"
    )]
    Line {
        /// Counted from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// Mode or chip is not said.
    #[error("the case has no line `#! {0} ...`")]
    Missing(&'static str),
    /// An input of the graph without values.
    #[error("the case says nothing about the values of input {0:?}")]
    Input(String),
    /// The graph is faulty.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl Case {
    /// A recipe as a case.
    ///
    /// # Errors
    /// What the graph builder refuses.
    pub fn new(recipe: &Recipe, mode: Mode, chip: &'static Chip) -> Result<Self, GraphError> {
        let Built { graph, outputs, inputs } = recipe.build()?;
        let draws = inputs.into_iter().map(|(name, _, draw)| (name, draw)).collect();
        Ok(Self { mode, chip, draws, graph: graph.to_text_with(&outputs) })
    }

    /// Reads a case.
    ///
    /// # Errors
    /// [`CaseError`]; the graph itself is read by [`Case::subject`].
    pub fn parse(text: &str) -> Result<Self, CaseError> {
        let (mut mode, mut chip, mut draws) = (None, None, Vec::new());
        for (index, line) in text.lines().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("#!") else { continue };
            let fault = || CaseError::Line { line: index + 1, text: line.to_string() };
            let words: Vec<&str> = rest.split_whitespace().collect();
            match words.as_slice() {
                ["mode", word] => mode = Some(Mode::from_word(word).ok_or_else(fault)?),
                ["chip", name] => chip = Some(Chip::find(name).ok_or_else(fault)?),
                ["input", name, "seed", seed, "from", low, "to", high, flavour] => {
                    let number = |word: &str| word.parse::<f64>().ok().filter(|value| value.is_finite()).ok_or_else(fault);
                    let draw = Draw {
                        seed: seed.parse().map_err(|_| fault())?,
                        low: number(low)?,
                        high: number(high)?,
                        flavour: Flavour::from_word(flavour).ok_or_else(fault)?,
                    };
                    draws.push((name.trim_matches('"').to_string(), draw));
                }
                _ => return Err(fault()),
            }
        }
        let (mode, chip) = (mode.ok_or(CaseError::Missing("mode"))?, chip.ok_or(CaseError::Missing("chip"))?);
        Ok(Self { mode, chip, draws, graph: text.to_string() })
    }

    /// The graph and its inputs, ready to be checked; `operators` are those that are not this project's own.
    ///
    /// # Errors
    /// [`CaseError::Graph`] and [`CaseError::Input`].
    pub fn subject(&self, operators: &[&'static GraphOp]) -> Result<Subject, CaseError> {
        let parsed = Graph::parse_with(&self.graph, operators)?;
        let mut inputs = Vec::new();
        for tensor in parsed.graph.inputs() {
            let name = tensor.name().unwrap_or_default();
            let draw = self.draws.iter().find(|(known, _)| *known == name).map(|(_, draw)| draw);
            let draw = draw.ok_or_else(|| CaseError::Input(name.clone()))?;
            inputs.push((name, draw.array(tensor.ty()?)));
        }
        let operators = operators.to_vec();
        Ok(Subject { graph: parsed.graph, outputs: parsed.outputs, inputs, mode: self.mode, chip: self.chip, operators })
    }

    /// The chip of a seed.
    pub(super) fn chip_of(seed: u64) -> &'static Chip {
        let all = chips();
        &all[(seed / 3 % all.len() as u64) as usize]
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "#! mode {}", self.mode.word())?;
        writeln!(f, "#! chip {}", self.chip.name)?;
        for (name, Draw { seed, low, high, flavour }) in &self.draws {
            writeln!(f, "#! input \"{name}\" seed {seed} from {low} to {high} {}", flavour.word())?;
        }
        f.write_str(&self.graph)
    }
}
