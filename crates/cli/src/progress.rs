//! A progress bar that shows itself on a terminal alone, and only for work of more than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(1);

/// Counts steps of work.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    /// A bar over `steps` steps of what `message` says, hidden at first.
    pub fn new(steps: usize, message: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        bar.set_message(message);
        Self { bar, start: Instant::now() }
    }

    /// Says something else of the work.
    pub fn say(&self, message: String) {
        self.bar.set_message(message);
    }

    /// `steps` more steps are done.
    pub fn advance(&self, steps: usize) {
        if self.bar.is_hidden() && self.start.elapsed() > PATIENCE && std::io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(steps as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
