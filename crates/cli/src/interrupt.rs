//! Commands that end by themselves when Ctrl-C asks them to.

use std::sync::atomic::{AtomicBool, Ordering};

static LISTENING: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on the first signal only asks.
pub fn listen() {
    LISTENING.store(true, Ordering::SeqCst);
}

/// A signal came: whether somebody listens and is asked for the first time.
pub fn ask() -> bool {
    LISTENING.load(Ordering::SeqCst) && !ASKED.swap(true, Ordering::SeqCst)
}

/// Whether a signal asked for the end.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
