//! Handles: numbers that look like pointers and are never used twice, so that a stale one is told.

use crate::fault::Fault;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Live objects of one kind.
pub struct Table<T> {
    what: &'static str,
    next: AtomicUsize,
    live: OnceLock<RwLock<HashMap<usize, Arc<T>>>>,
}

/// Distance of handles: the lowest bits tell the kinds apart.
const STEP: usize = 16;

impl<T> Table<T> {
    /// A table whose handles are `kind` modulo [`STEP`]; `what` names them in errors.
    pub const fn new(what: &'static str, kind: usize) -> Self {
        Self { what, next: AtomicUsize::new(0x1000 + kind), live: OnceLock::new() }
    }

    fn live(&self) -> &RwLock<HashMap<usize, Arc<T>>> {
        self.live.get_or_init(RwLock::default)
    }

    /// A handle for a new object.
    pub fn insert(&self, object: T) -> usize {
        let handle = self.next.fetch_add(STEP, Ordering::Relaxed);
        self.live().write().unwrap_or_else(PoisonError::into_inner).insert(handle, Arc::new(object));
        handle
    }

    /// The object behind a handle; it stays while it is used, whoever releases the handle.
    pub fn get(&self, handle: usize) -> Result<Arc<T>, Fault> {
        let found = self.live().read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned();
        found.ok_or_else(|| {
            let problem = if handle == 0 { "is NULL" } else { "is no live handle: it was released, or never was one" };
            Fault::argument(format!("the {} {problem}", self.what))
        })
    }

    /// Releases a handle; false where it was none.
    pub fn remove(&self, handle: usize) -> bool {
        let removed = self.live().write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
        // Dropped outside of the lock: releasing a program may take a while.
        removed.is_some()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_released_handle_is_told_and_never_comes_back() {
        static TABLE: Table<u32> = Table::new("number", 4);
        let first = TABLE.insert(7);
        assert_eq!((*TABLE.get(first).unwrap(), first % STEP), (7, 4));
        assert!(TABLE.remove(first) && !TABLE.remove(first));
        let second = TABLE.insert(8);
        assert_ne!(first, second);
        assert!(TABLE.get(first).unwrap_err().text.contains("released"));
        assert!(TABLE.get(0).unwrap_err().text.contains("number is NULL"));
    }
}
