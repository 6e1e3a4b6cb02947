//! A program whose compilation failed waits before it is tried again; others do not.
//!
//! Sources: the Python package aneforge 0.4.0 waits 15 s after a failed compilation, whichever program comes next; the ANE guide, arXiv
//! 2606.22283, chapter 12, reports that bursts of failing compilations spoil those that follow.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failed compilations that are still remembered.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    /// Until when, and what the compiler said.
    failed: Mutex<HashMap<String, (Instant, String)>>,
}

/// A failure that still counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What the compiler said.
    pub(crate) reason: String,
    /// Until the program may be tried again.
    pub(crate) remaining: Duration,
}

impl BackOff {
    /// The failure of a program that may not be compiled at `now`.
    pub(crate) fn check(&self, program: &str, now: Instant) -> Option<Failure> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.retain(|_, (until, _)| *until > now);
        let (until, reason) = failed.get(program)?;
        Some(Failure { reason: reason.clone(), remaining: until.saturating_duration_since(now) })
    }

    /// Remembers that a program failed and waits until `until`.
    pub(crate) fn failed(&self, program: &str, reason: String, until: Instant) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).insert(program.to_string(), (until, reason));
    }

    /// Forgets a program's failure.
    pub(crate) fn succeeded(&self, program: &str) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).remove(program);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn only_the_program_that_failed_waits_and_the_reason_is_kept() {
        let (policy, start) = (BackOff::default(), Instant::now());
        policy.failed("a", "InvalidMILProgram".to_string(), start + 15 * SECOND);
        assert_eq!(policy.check("b", start), None);
        let wanted = Failure { reason: "InvalidMILProgram".to_string(), remaining: 5 * SECOND };
        assert_eq!(policy.check("a", start + 10 * SECOND), Some(wanted));
        assert_eq!(policy.check("a", start + 15 * SECOND), None);
        // Forgotten for good: memory does not grow with the number of failures.
        assert_eq!(policy.check("a", start), None);
    }

    #[test]
    fn a_success_ends_the_wait_and_no_period_means_no_wait() {
        let (policy, start) = (BackOff::default(), Instant::now());
        policy.failed("a", "x".to_string(), start + SECOND);
        policy.succeeded("a");
        assert_eq!(policy.check("a", start), None);
        policy.failed("a", "x".to_string(), start);
        assert_eq!(policy.check("a", start), None);
    }
}
