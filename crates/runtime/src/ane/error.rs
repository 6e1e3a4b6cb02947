//! What can go wrong with an engine.

use super::policy::{Cause, cause};
use std::fmt;
use std::time::Duration;

/// What was done when the engine refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The program was compiled.
    Compile,
    /// The program was loaded.
    Load,
    /// A buffer was bound to a port.
    Bind,
    /// The program was executed.
    Execute,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Load => "load",
            Self::Bind => "bind",
            Self::Execute => "execute",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compile => "compiling",
            Self::Load => "loading",
            Self::Bind => "binding a buffer of",
            Self::Execute => "executing",
        })
    }
}

/// A framework's refusal, with what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was done.
    pub step: Step,
    /// Name of the device.
    pub device: String,
    /// Name of the program.
    pub program: String,
    /// Which of its segments, counted from 0, where it has some.
    pub segment: Option<usize>,
    /// Keywords of the operators in it, each once, in order of first use.
    pub ops: Vec<&'static str>,
    /// The framework's own words.
    pub text: String,
    /// The framework's code, where it gave one.
    pub code: Option<i64>,
    /// What it usually means.
    pub cause: Option<&'static Cause>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on {} failed", self.step, self.program, self.device)?;
        if let Some(segment) = self.segment {
            write!(f, " in segment {segment}")?;
        }
        write!(f, ": {}", self.text)?;
        if let Some(code) = self.code {
            write!(f, " (code {code})")?;
        }
        if !self.ops.is_empty() {
            write!(f, "; operators in it: {}", self.ops.join(", "))?;
        }
        match self.cause {
            Some(known) => write!(f, "; likely cause: {}; {} (source: {})", known.cause, known.remedy, known.source),
            None => f.write_str("; nobody has reported this failure yet, please do, with the program"),
        }
    }
}

/// Why the engine did not load or execute a program.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AneError {
    /// A framework refused.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The program failed to compile a moment ago. Other programs compile.
    #[error("{program} failed to compile on {device} and is tried again in {:.1} s: {reason}; change the program or wait", remaining.as_secs_f64())]
    BackOff {
        /// Name of the device.
        device: String,
        /// Name of the program.
        program: String,
        /// What the compiler said then.
        reason: String,
        /// Until it may be tried again.
        remaining: Duration,
    },
    /// The process has no compilations left.
    #[error(
        "this process has compiled {limit} programs in memory, after which the frameworks fail without a word; \
         use the route client or e5rt, which do not count, load programs that the cache holds, or start a new process"
    )]
    CompilationsSpent {
        /// Compilations of the process.
        limit: usize,
    },
    /// A call of a framework does not return.
    #[error(
        "{step} {program} on {device} has not returned for {:.1} s; the call goes on and its memory stays taken: give it more time \
         (AneOptions::patience), or end the process and start a new one",
        waited.as_secs_f64()
    )]
    Silent {
        /// Name of the device.
        device: String,
        /// Name of the program.
        program: String,
        /// What was done.
        step: Step,
        /// How long it was waited for.
        waited: Duration,
    },
    /// All places for loaded programs were taken by programs that executed.
    #[error("all {capacity} places for loaded programs are taken by programs that execute; wait for some of them to return")]
    AllBusy {
        /// Number of places.
        capacity: usize,
    },
    /// The program was compiled for something else.
    #[error("{program} was compiled for {target}, this engine is {engine}; compile the graph for {engine} or as generic")]
    Foreign {
        /// Name of the program.
        program: String,
        /// What it was compiled for.
        target: String,
        /// Target of this engine.
        engine: String,
    },
    /// The program could not be compiled for this chip.
    #[error("{program} cannot be compiled for {engine}: {problem}")]
    Legalise {
        /// Name of the program.
        program: String,
        /// Target of this engine.
        engine: String,
        /// Why not.
        problem: String,
    },
    /// The program is larger than an engine takes.
    #[error(
        "{program} has {bytes} bytes of weights in segment {segment}, the limit is {limit}; split the graph or compress its weights"
    )]
    Weights {
        /// Name of the program.
        program: String,
        /// Which segment.
        segment: usize,
        /// Its weights.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The engine names a port that the program does not have, or leaves one out.
    #[error("the engine's tables of {program} do not list {kind} {port:?}; they list {known}; please report the program")]
    Symbols {
        /// Name of the program.
        program: String,
        /// `input` or `output`.
        kind: &'static str,
        /// The port.
        port: String,
        /// What the tables list.
        known: String,
    },
    /// A folder of the cache could not be used.
    #[error("the program cache cannot be used: {path}: {problem}; free the folder or name another one")]
    Cache {
        /// File or folder.
        path: String,
        /// The system's reason.
        problem: String,
    },
    /// Another process has compiled the same program for too long.
    #[error("another process has been compiling {program} for {} s; end it or use another cache folder", waited.as_secs())]
    Locked {
        /// Name of the program.
        program: String,
        /// How long was waited.
        waited: Duration,
    },
    /// A call to the system failed outside of a program.
    #[error("{0}")]
    System(String),
}

impl Refusal {
    pub(crate) fn of(step: Step, text: String, code: Option<i64>) -> Self {
        let cause = cause(step.name(), code, &text);
        Self { step, device: String::new(), program: String::new(), segment: None, ops: Vec::new(), text, code, cause }
    }
}
