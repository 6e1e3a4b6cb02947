//! How many compilations a process has: the in-memory model class leaks at each, and compiling fails without a word after about 119.
//!
//! Sources: maderix/ANE (119 on M4, macOS 26) and its issue 54, which finds the leak in the class; Orion, arXiv 2603.06728.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Compilations of a process, counted.
#[derive(Debug, Default)]
pub(crate) struct CompileBudget {
    used: AtomicUsize,
}

impl CompileBudget {
    /// Takes one compilation of at most `limit`, or says how many there were.
    pub(crate) fn take(&self, limit: usize) -> Result<(), usize> {
        let more = |used| (used < limit).then_some(used + 1);
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).map(|_| ())
    }

    /// Compilations so far.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_together_get_no_more_than_there_is() {
        let budget = CompileBudget::default();
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| (0..50).filter(|_| budget.take(119).is_ok()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
        });
        assert_eq!((taken, budget.used(), budget.take(119)), (119, 119, Err(119)));
    }
}
