//! What can go wrong between us and the system, as one type.

/// Something that a framework was expected to have and has not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// A C symbol.
    Symbol(String),
    /// An Objective-C class.
    Class(String),
    /// An Objective-C method, written as `+[Class selector]` or `-[Class selector]`.
    Method(String),
    /// A library file that could not be opened, and the loader's reason.
    Library(String),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Symbol(name) => write!(formatter, "symbol {name}"),
            Self::Class(name) => write!(formatter, "class {name}"),
            Self::Method(name) => write!(formatter, "method {name}"),
            Self::Library(name) => write!(formatter, "library {name}"),
        }
    }
}

/// An `NSError` in our own words: the framework's text and code, and those below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppleError {
    /// The error's domain, such as `com.apple.appleneuralengine`.
    pub domain: String,
    /// The error's code in that domain.
    pub code: i64,
    /// The localised description.
    pub text: String,
    /// The error that caused this one.
    pub underlying: Option<Box<AppleError>>,
}

impl std::fmt::Display for AppleError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({} code {})", self.text, self.domain, self.code)?;
        match &self.underlying {
            Some(below) => write!(formatter, "; caused by: {below}"),
            None => Ok(()),
        }
    }
}

/// A call into the system, or its preparation, failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SysError {
    /// The system's frameworks were asked for on something that is no Mac.
    #[error("{what} can be had on macOS alone; choose another device, or name a library that stands in for it")]
    NotHere {
        /// What was asked for.
        what: &'static str,
    },
    /// A library file could not be opened.
    #[error("cannot open {path}: {reason}")]
    Open {
        /// The file.
        path: String,
        /// The loader's reason.
        reason: String,
    },
    /// A framework lacks things that we need. All of them are listed, not the first alone.
    #[error("{part} of OS build {os_build} lacks {}; this system's frameworks differ from those that are known", list(.missing))]
    Lacking {
        /// The part of the system.
        part: &'static str,
        /// The build of the operating system, `unknown` where even that can't be asked.
        os_build: String,
        /// Everything that is missing, sorted.
        missing: Vec<Missing>,
    },
    /// A C function answered with a code other than zero.
    #[error("{function} failed with code {code}")]
    Code {
        /// The C function.
        function: &'static str,
        /// Its return value.
        code: i64,
    },
    /// A function or method that creates something gave nothing and no reason.
    #[error("{call} gave nothing back")]
    Nothing {
        /// The C function or selector.
        call: &'static str,
    },
    /// A method failed and said why.
    #[error("{call} failed: {error}")]
    Apple {
        /// The selector.
        call: &'static str,
        /// The framework's reason.
        error: AppleError,
    },
    /// A method failed and gave no reason.
    #[error("{call} failed and gave no reason")]
    Refused {
        /// The selector.
        call: &'static str,
    },
    /// A method has other types than the ones that we would call it with. Seen before the call, which is not made.
    #[error("{method} has the types {found}, known are {expected}; calling it would corrupt memory")]
    Encoding {
        /// The method, as `-[Class selector]`.
        method: String,
        /// The types that we know.
        expected: String,
        /// The types that the runtime reports.
        found: String,
    },
    /// Calls in an order that the framework does not allow.
    #[error("{call}: {rule}")]
    Order {
        /// The call.
        call: &'static str,
        /// The rule that it breaks, and what to do.
        rule: &'static str,
    },
    /// A text that C strings can't carry.
    #[error("{what} holds a zero byte or is no UTF-8 text")]
    Text {
        /// Which text.
        what: &'static str,
    },
    /// Bytes outside of a buffer.
    #[error("bytes {offset}..{} are outside of a buffer of {size} bytes", .offset.saturating_add(*.length))]
    Range {
        /// First byte.
        offset: usize,
        /// How many.
        length: usize,
        /// The buffer's size.
        size: usize,
    },
    /// The system has no memory left for a buffer.
    #[error("no memory for a buffer of {size} bytes")]
    Memory {
        /// Size in bytes.
        size: usize,
    },
    /// A value of the system is not what it is known to be.
    #[error("{what} is {found}, expected {expected}")]
    Value {
        /// Where the value stands.
        what: &'static str,
        /// What was expected there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
}

fn list(missing: &[Missing]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
