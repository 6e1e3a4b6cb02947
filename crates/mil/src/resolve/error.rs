//! Why a program that parses is no computation.

use super::SourceError;
use crate::op::OpError;
use crate::{BlobError, Location};
use std::fmt;

/// A function could not be resolved: where, and why.
#[derive(Debug)]
pub struct ResolveError {
    /// The statement's place in the text; line 0 where the program did not come from text or no statement is to blame.
    pub location: Location,
    /// Operator of the statement; `func` for the signature, `return` for the results.
    pub op: String,
    /// First result of the statement, or the port.
    pub name: String,
    /// What is wrong.
    pub fault: Box<ResolveFault>,
}

/// What is wrong with a statement.
#[derive(Debug, thiserror::Error)]
pub enum ResolveFault {
    /// The program has no function of that name.
    #[error("there is no function {name:?}; the program has {}", known.join(", "))]
    NoFunction {
        /// The name asked for.
        name: String,
        /// Functions that there are.
        known: Vec<String>,
    },
    /// A name is given to two values.
    #[error("the name {name:?} is taken already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A name that nothing in the function has.
    #[error("nothing is called {name:?}{}", suggestion(closest))]
    Undefined {
        /// The name.
        name: String,
        /// A name that resembles it.
        closest: Option<String>,
    },
    /// A name that is declared further down.
    #[error("{name:?} is used before the statement that makes it")]
    UsedBefore {
        /// The name.
        name: String,
    },
    /// The table has no such operator.
    #[error("there is no MIL operator {name:?}{}", suggestion(closest))]
    UnknownOp {
        /// The keyword.
        name: String,
        /// An operator that resembles it.
        closest: Option<String>,
    },
    /// An operator that is known by name only.
    #[error("{name} cannot be used: {reason}")]
    Listed {
        /// The keyword.
        name: &'static str,
        /// Why not, and what to do instead.
        reason: &'static str,
    },
    /// An argument is given twice.
    #[error("argument {port:?} is given twice")]
    DuplicateArgument {
        /// The port.
        port: String,
    },
    /// Several values at a port that takes one.
    #[error("argument {port:?} takes one value, not a tuple")]
    Tuple {
        /// The port.
        port: String,
    },
    /// A `const` without `val`.
    #[error("a const needs val = a literal")]
    NoValue,
    /// A literal that is no constant of its type.
    #[error("the literal {problem}")]
    Literal {
        /// What is wrong with it.
        problem: String,
    },
    /// A type that values of a computation cannot have here.
    #[error("values of type {ty} are not supported; take tensors of static shape")]
    Type {
        /// The type.
        ty: String,
    },
    /// A state is used in a way that it cannot be used.
    #[error("{problem}")]
    State {
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A result is declared with another type than the operator gives.
    #[error("{name:?} is declared {declared} but is {inferred}")]
    ResultType {
        /// The result.
        name: String,
        /// Its declared type.
        declared: String,
        /// The type that follows from the arguments.
        inferred: String,
    },
    /// Another number of results than the operator gives.
    #[error("{declared} results are declared but the operator gives {inferred}")]
    ResultCount {
        /// Results declared.
        declared: usize,
        /// Results of the operator.
        inferred: usize,
    },
    /// The operator's record refuses the arguments.
    #[error(transparent)]
    Op(#[from] OpError),
    /// The weight file is not there.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The weight file does not hold what the program says.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

fn suggestion(closest: &Option<String>) -> String {
    closest.as_ref().map_or(String::new(), |name| format!("; did you mean {name:?}?"))
}

impl ResolveError {
    pub(super) fn new(location: Location, op: &str, name: &str, fault: ResolveFault) -> Self {
        Self { location, op: op.to_string(), name: name.to_string(), fault: Box::new(fault) }
    }

    /// The message with the line of `text`, the program's source, and a caret under the statement.
    pub fn render(&self, text: &str) -> String {
        match crate::text::caret(text, self.location) {
            excerpt if excerpt.is_empty() => self.to_string(),
            excerpt => format!("{self}\n{excerpt}"),
        }
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.location.line > 0 {
            write!(f, "{}: ", self.location)?;
        }
        write!(f, "{}", self.op)?;
        if !self.name.is_empty() {
            write!(f, " {:?}", self.name)?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for ResolveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.fault.as_ref())
    }
}
