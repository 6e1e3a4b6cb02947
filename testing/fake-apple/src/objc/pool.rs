//! Autorelease pools of a thread.

use super::Id;
use crate::counters::{COUNTERS, count, violation};
use std::cell::RefCell;
use std::ffi::c_void;

/// What a thread's pools hold; nil marks where a pool starts.
struct Pools(Vec<Id>);

impl Drop for Pools {
    fn drop(&mut self) {
        // A thread that ends drains what it left.
        for id in self.0.drain(..).rev() {
            id.release();
        }
    }
}

thread_local! {
    static POOLS: RefCell<Pools> = const { RefCell::new(Pools(Vec::new())) };
}

/// Releases an object when the innermost pool of this thread is popped.
pub fn autorelease(id: Id) -> Id {
    if id.is_nil() {
        return id;
    }
    count(&COUNTERS.autoreleases);
    let kept = POOLS.try_with(|pools| {
        let mut pools = pools.borrow_mut();
        let open = pools.0.iter().any(|id| id.is_nil());
        pools.0.push(id);
        open
    });
    if kept != Ok(true) {
        let what = id.class().map_or("an object", |class| class.name);
        violation(format!("autorelease of {what} without a pool: it lives until the thread ends"));
    }
    id
}

/// Opens a pool.
pub fn push() -> *mut c_void {
    count(&COUNTERS.pools_pushed);
    let depth = POOLS.try_with(|pools| {
        let mut pools = pools.borrow_mut();
        pools.0.push(Id::NIL);
        pools.0.len()
    });
    std::ptr::without_provenance_mut(depth.unwrap_or(0))
}

/// Closes a pool and those opened since.
pub fn pop(token: *mut c_void) {
    count(&COUNTERS.pools_popped);
    let depth = token.addr();
    let _ = POOLS.try_with(|pools| {
        let open = pools.borrow().0.get(depth.wrapping_sub(1)).is_some_and(|id| id.is_nil());
        if !open {
            violation(format!("pop of an autorelease pool that is not open on this thread ({depth})"));
            return;
        }
        loop {
            // Not borrowed while an object is freed: its parts may be autoreleased.
            let mut borrowed = pools.borrow_mut();
            if borrowed.0.len() < depth {
                break;
            }
            let last = borrowed.0.pop();
            drop(borrowed);
            match last {
                Some(id) => id.release(),
                None => break,
            }
        }
    });
}
