//! A thread pool for fork-join regions of a few microseconds.
//!
//! A network of fifty layers has fifty barriers per call, so entering and leaving a region has
//! to cost about a microsecond. Helpers therefore spin for a short while after a region and
//! only then sleep. The caller works too, and a helper that comes late to a region is not
//! waited for: it finds the region closed and goes back to waiting.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long an idle helper spins before it sleeps.
const SPIN: Duration = Duration::from_micros(80);

/// Bit of [`Shared::region`] that says that helpers may still join.
const OPEN: u64 = 1 << 31;
const COUNT: u64 = OPEN - 1;
const EPOCH: u64 = 1 << 32;

type Work<'w> = dyn Fn(usize, usize) + Sync + 'w;

#[derive(Clone, Copy)]
struct Region {
    work: *const Work<'static>,
    jobs: usize,
}

struct Shared {
    /// Epoch (upper half), open flag, number of helpers inside.
    region: AtomicU64,
    next: AtomicUsize,
    current: UnsafeCell<Option<Region>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    sleeping: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
    stop: AtomicBool,
}

// SAFETY: `current` is written by the owner of the region lock while the region is closed and
// empty, and read only by helpers that joined an open region; the atomic word orders the two.
unsafe impl Sync for Shared {}
// SAFETY: the raw pointer inside `current` is only followed under the rule above, and what it
// points to is `Sync`.
unsafe impl Send for Shared {}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A fixed set of threads that execute numbered jobs together with the caller.
pub struct Pool {
    shared: Arc<Shared>,
    region_lock: Mutex<()>,
    helpers: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish()
    }
}

impl Pool {
    /// A pool of `threads` workers, the caller of [`Pool::run`] included; 0 counts as 1.
    ///
    /// Where the system refuses a thread the pool works with those it got.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            region: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            current: UnsafeCell::new(None),
            panic: Mutex::new(None),
            sleeping: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let helpers = (1..threads)
            .map_while(|worker| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new().name(format!("aneforge-{worker}")).spawn(move || shared.help(worker)).ok()
            })
            .collect();
        Self { shared, region_lock: Mutex::new(()), helpers }
    }

    /// The pool of the process: `ANEFORGE_THREADS` workers, else one per available processor.
    pub fn global() -> &'static Pool {
        static GLOBAL: OnceLock<Pool> = OnceLock::new();
        GLOBAL.get_or_init(|| {
            let wanted = std::env::var("ANEFORGE_THREADS").ok().and_then(|text| text.parse().ok());
            let threads = wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
            Pool::new(threads)
        })
    }

    /// Number of workers, the caller included.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Calls `work(job, worker)` once for every job in `0..jobs`, in any order, in parallel,
    /// and returns when all are done. `worker < threads()`, and no two jobs that run at the same
    /// time within one region share a worker, so it may index per-worker scratch.
    ///
    /// Regions started by several threads run one after the other; a region started from inside
    /// a job runs on that job's thread alone.
    ///
    /// # Panics
    /// If a job panics the rest is skipped and the panic is passed on; the pool stays usable.
    pub fn run(&self, jobs: usize, work: &(dyn Fn(usize, usize) + Sync)) {
        if jobs <= 1 || self.helpers.is_empty() || INSIDE.get() {
            for job in 0..jobs {
                work(job, 0);
            }
            return;
        }
        let region = lock(&self.region_lock);
        let shared = &*self.shared;
        // SAFETY: only the lifetime is erased. The pointer is followed inside the region only,
        // and `run` does not return before the region is closed and empty.
        let erased: *const Work<'static> = unsafe { std::mem::transmute::<&(dyn Fn(usize, usize) + Sync), &'static Work>(work) };
        // SAFETY: the region lock is held, the region is closed and empty.
        unsafe { *shared.current.get() = Some(Region { work: erased, jobs }) };
        shared.next.store(0, Ordering::Relaxed);
        shared.region.fetch_add(EPOCH | OPEN, Ordering::SeqCst);
        if shared.sleeping.load(Ordering::SeqCst) > 0 {
            let _held = lock(&shared.sleep);
            shared.wake.notify_all();
        }

        INSIDE.set(true);
        shared.work_through(work, jobs, 0);
        INSIDE.set(false);

        shared.region.fetch_and(!OPEN, Ordering::SeqCst);
        let mut turns = 0_u32;
        while shared.region.load(Ordering::Acquire) & COUNT != 0 {
            turns += 1;
            if turns < 20_000 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        let panicked = lock(&shared.panic).take();
        drop(region);
        if let Some(payload) = panicked {
            resume_unwind(payload);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        {
            let _held = lock(&self.shared.sleep);
            self.shared.wake.notify_all();
        }
        for helper in self.helpers.drain(..) {
            // A helper catches every panic of a job, so there is nothing to report here.
            let _ = helper.join();
        }
    }
}

impl Shared {
    fn work_through(&self, work: &Work<'_>, jobs: usize, worker: usize) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let job = self.next.fetch_add(1, Ordering::Relaxed);
                if job >= jobs {
                    break;
                }
                work(job, worker);
            }
        }));
        if let Err(payload) = outcome {
            self.next.store(jobs, Ordering::Relaxed);
            lock(&self.panic).get_or_insert(payload);
        }
    }

    fn help(&self, worker: usize) {
        INSIDE.set(true);
        let mut seen = 0;
        while let Some(epoch) = self.await_region(seen) {
            seen = epoch;
            if !self.join(epoch) {
                continue;
            }
            // SAFETY: this helper is counted inside, so the owner neither changes `current` nor
            // returns from `run` before the count goes down.
            if let Some(region) = unsafe { *self.current.get() } {
                // SAFETY: as above; the pointee outlives the region.
                self.work_through(unsafe { &*region.work }, region.jobs, worker);
            }
            self.region.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits for an epoch other than `seen`; `None` when the pool is dropped.
    fn await_region(&self, seen: u64) -> Option<u64> {
        let start = Instant::now();
        loop {
            for _ in 0..64 {
                if self.stop.load(Ordering::Relaxed) {
                    return None;
                }
                let epoch = self.region.load(Ordering::Acquire) >> 32;
                if epoch != seen {
                    return Some(epoch);
                }
                std::hint::spin_loop();
            }
            if start.elapsed() >= SPIN {
                break;
            }
        }
        let mut held = lock(&self.sleep);
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            if self.stop.load(Ordering::SeqCst) {
                break None;
            }
            let epoch = self.region.load(Ordering::SeqCst) >> 32;
            if epoch != seen {
                break Some(epoch);
            }
            held = self.wake.wait(held).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
        found
    }

    /// Counts this helper into the region of `epoch` if that is still open.
    fn join(&self, epoch: u64) -> bool {
        let mut now = self.region.load(Ordering::Acquire);
        while now >> 32 == epoch && now & OPEN != 0 {
            match self.region.compare_exchange_weak(now, now + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(found) => now = found,
            }
        }
        false
    }
}

/// No invariant of this module is broken by a panic under a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_runs_once_and_workers_are_in_range() {
        let pool = Pool::new(3);
        for round in 0..2000 {
            let jobs = round % 37;
            let counts: Vec<AtomicUsize> = (0..jobs).map(|_| AtomicUsize::new(0)).collect();
            pool.run(jobs, &|job, worker| {
                assert!(worker < 3);
                counts[job].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(2);
        for _ in 0..20 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.run(8, &|job, _| assert!(job != 5, "job five"));
            }));
            assert!(outcome.is_err());
            let sum = AtomicUsize::new(0);
            pool.run(10, &|job, _| {
                sum.fetch_add(job, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 45);
        }
    }

    #[test]
    fn nested_and_concurrent_regions_finish() {
        let pool = Pool::new(2);
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        pool.run(4, &|_, _| {
                            pool.run(3, &|_, _| {
                                total.fetch_add(1, Ordering::Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * 50 * 12);
    }

    #[test]
    fn sleeping_helpers_wake_up() {
        let pool = Pool::new(2);
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(2));
            let seen = Mutex::new(std::collections::HashSet::new());
            pool.run(2, &|_, worker| {
                // Each job waits until the other has started, so one helper must come.
                lock(&seen).insert(worker);
                let start = Instant::now();
                while lock(&seen).len() < 2 && start.elapsed() < Duration::from_secs(5) {
                    std::thread::yield_now();
                }
            });
            assert_eq!(lock(&seen).len(), 2);
        }
    }
}
