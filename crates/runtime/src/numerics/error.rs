//! What can be wrong with a dump, with its place.

/// Why a file is no dump of an engine's arithmetic that this version can use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// The file could not be read.
    #[error("it cannot be read: {problem}")]
    Read {
        /// What the system says.
        problem: String,
    },
    /// The file is larger than any dump.
    #[error("it has {bytes} bytes, a dump has at most {most}; this is another kind of file")]
    TooLarge {
        /// Size of the file.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// The text is no JSON, or a member is missing or has the wrong type.
    #[error("line {line}, column {column}: {problem}")]
    Json {
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
        /// What was expected there.
        problem: String,
    },
    /// JSON of another program or purpose.
    #[error("it is no report of `aneforge doctor --report` (member \"kind\" is {found})")]
    Foreign {
        /// What stands there.
        found: String,
    },
    /// Another version of the layout.
    #[error("its layout is version {found}, this version reads {known}; make the report again")]
    Schema {
        /// Version of the file.
        found: u32,
        /// Version that is read.
        known: u32,
    },
    /// The report was made where no device could be asked.
    #[error("the report holds no dump: {reason}")]
    Empty {
        /// Why not, as the report says it.
        reason: String,
    },
    /// A chip that these crates do not know.
    #[error("numerics.chip is {name:?}, which is no chip known here; `aneforge devices` lists them")]
    Chip {
        /// The name.
        name: String,
    },
    /// A table cannot be used.
    #[error("numerics.tables[{index}] ({op}): {problem}")]
    Table {
        /// Place in the list.
        index: usize,
        /// Its operator.
        op: String,
        /// What is wrong.
        problem: String,
    },
    /// A probe cannot be used.
    #[error("numerics.probes[{index}] ({name}): {problem}")]
    Probe {
        /// Place in the list.
        index: usize,
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
}
