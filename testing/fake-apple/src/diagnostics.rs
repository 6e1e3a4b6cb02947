//! What Apple's frameworks write to standard error and the system's log: here it is kept for the test to ask for.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Older lines are forgotten.
const KEPT: usize = 200;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Adds a line.
pub fn diagnostic(line: String) {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() == KEPT {
        lines.pop_front();
    }
    lines.push_back(line);
}

/// The lines so far, oldest first; they are forgotten then.
pub fn taken() -> Vec<String> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
}
