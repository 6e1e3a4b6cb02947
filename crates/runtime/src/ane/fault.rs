//! What a framework answered, before it is known which program it was about.

use super::error::Step;
use aneforge_sys::SysError;

/// A framework's refusal of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) step: Step,
    pub(crate) text: String,
    pub(crate) code: Option<i64>,
    pub(crate) kind: Kind,
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The framework refused.
    Refused,
    /// It waits after an earlier failure.
    BackOff(std::time::Duration),
    /// The process has no compilations left.
    Spent(usize),
    /// The call has not returned for so long.
    Silent(std::time::Duration),
    /// The tables list no such port.
    Symbols { kind: &'static str, port: String },
}

impl Fault {
    pub(crate) fn of(step: Step, error: &SysError) -> Self {
        let code = match error {
            SysError::Code { code, .. } => Some(*code),
            SysError::Apple { error, .. } => Some(error.code),
            _ => None,
        };
        Self { step, text: error.to_string(), code, kind: Kind::Refused }
    }

    pub(crate) fn kind(step: Step, kind: Kind, text: impl Into<String>) -> Self {
        Self { step, text: text.into(), code: None, kind }
    }

    /// Whether the engine may have lost the program, so that loading it again may help. e5rt's codes are not published: each of its
    /// failures may mean that.
    pub(crate) fn may_be_lost(&self, e5rt: bool) -> bool {
        const WORDS: [&str; 7] =
            ["re-compile", "interrupted", "invalidated", "connection", "daemon", "not loaded", "helper application"];
        // A connection that was interrupted, one that is invalid (Foundation's header FoundationErrors.h).
        const CODES: [i64; 2] = [4097, 4099];
        let lost = || {
            let text = self.text.to_lowercase();
            self.code.is_some_and(|code| CODES.contains(&code)) || WORDS.iter().any(|word| text.contains(word))
        };
        self.kind == Kind::Refused && (e5rt || lost())
    }
}
