//! Autorelease pools: where the frameworks put what they give back without ownership.

use std::ffi::c_void;

use crate::library::functions;

functions! {
    /// A pool of this thread is opened by one function and emptied by the other.
    pub(crate) struct Pool {
        push: "objc_autoreleasePoolPush" () -> *mut c_void;
        pop: "objc_autoreleasePoolPop" (pool: *mut c_void);
    }
}

impl Pool {
    /// Runs `work` with a pool of its own, emptied afterwards however `work` ends. Without one a thread of ours would keep every
    /// temporary object until it ends.
    pub(crate) fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Open<'a> {
            pool: &'a Pool,
            token: *mut c_void,
        }
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                // SAFETY: the token comes from `push` on this thread, and inner pools, being scopes too, are already emptied.
                unsafe { (self.pool.pop.call)(self.token) }
            }
        }
        // SAFETY: takes nothing; the token is given back once, on this thread, by `Open`.
        let token = unsafe { (self.push.call)() };
        let _open = Open { pool: self, token };
        work()
    }
}
