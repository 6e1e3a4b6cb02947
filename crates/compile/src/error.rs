//! Why a compilation stops.

use std::path::PathBuf;

/// A compilation that could not be finished; nothing was left half written.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The graph is faulty.
    #[error(transparent)]
    Graph(#[from] aneforge_core::GraphError),
    /// An operation could not be built.
    #[error(transparent)]
    Build(#[from] aneforge_mil::BuildError),
    /// A pass left a body that breaks its own rules.
    #[error("pass {pass} left an illegal program: {source}; this is a fault in the pass, please report the program")]
    Pass {
        /// The pass.
        pass: &'static str,
        /// The rule broken.
        source: aneforge_mil::VerifyError,
    },
    /// An output of a type the target cannot hand back.
    #[error("output {name:?} is {ty}, and no operation makes it: the target hands back fp16 results of operations alone")]
    Output {
        /// Output name.
        name: String,
        /// Its type.
        ty: String,
    },
    /// Two of the inputs, states and outputs share a name.
    #[error("the name {name:?} is given twice; inputs, states and outputs need names of their own")]
    Name {
        /// The name.
        name: String,
    },
    /// A program that cannot be a function beside others.
    #[error("function {name:?} {problem}")]
    Function {
        /// Its name.
        name: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The target lacks something that the program needs.
    #[error("{op} {name:?} is {ty}: {rule} on {target}; {remedy}")]
    Limit {
        /// Operator keyword.
        op: &'static str,
        /// SSA name.
        name: String,
        /// Offending type.
        ty: String,
        /// The limit.
        rule: String,
        /// The target.
        target: String,
        /// What to do.
        remedy: &'static str,
        /// Whether something is larger than the target takes, and not of a kind that it lacks.
        is_size: bool,
    },
    /// The program could not be written as text.
    #[error(transparent)]
    Emit(#[from] aneforge_mil::EmitError),
    /// A weight cannot be compressed as asked.
    #[error(transparent)]
    Compress(#[from] crate::compress::CompressError),
    /// Native layers could not be written as a network.
    #[error(transparent)]
    Net(#[from] aneforge_native::NetError),
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A pass asked for by name does not exist, or the order of passes cannot be kept.
    #[error("{0}")]
    Passes(String),
    /// Something that cannot happen did.
    #[error("internal fault: {0}; please report the program")]
    Internal(String),
}

impl CompileError {
    /// A fault of this crate's own.
    pub fn internal(text: impl Into<String>) -> Self {
        Self::Internal(text.into())
    }

    /// A file that could not be written.
    pub fn write(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Write { path: path.into(), source }
    }
}
