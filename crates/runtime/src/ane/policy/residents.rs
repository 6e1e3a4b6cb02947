//! Which programs are loaded: fewer than the engine takes, the least recently used idle one leaves for a new one.
//!
//! Source of the limit: about 128 loaded programs per process, after which loading fails with "must re-compile" (ANE guide, arXiv
//! 2606.22283, chapter 14; the Python package aneforge 0.4.0).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

/// How long a program waits for another one to become idle.
const PATIENCE: Duration = Duration::from_secs(30);

/// The programs of a process that are loaded or can be.
#[derive(Debug)]
pub(crate) struct Residents<T> {
    table: Mutex<Table<T>>,
    left: Condvar,
    clock: AtomicU64,
    evictions: AtomicU64,
}

#[derive(Debug)]
struct Table<T> {
    capacity: usize,
    /// Places taken: programs that are loaded or being loaded.
    taken: usize,
    slots: Vec<Weak<Slot<T>>>,
}

#[derive(Debug)]
struct Slot<T> {
    used: AtomicU64,
    /// The program while it is loaded. Held while it executes.
    loaded: Mutex<Option<T>>,
}

/// A program's place among the residents. Dropping it unloads the program.
#[derive(Debug)]
pub(crate) struct Resident<T> {
    all: Arc<Residents<T>>,
    slot: Arc<Slot<T>>,
}

/// Why a program could not be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ResidentError<E> {
    /// All places were taken by programs that executed.
    Busy {
        /// Number of places.
        capacity: usize,
    },
    /// Loading or the work itself failed.
    Failed(E),
}

impl<T> Residents<T> {
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        let table = Mutex::new(Table { capacity: capacity.max(1), taken: 0, slots: Vec::new() });
        Arc::new(Self { table, left: Condvar::new(), clock: AtomicU64::new(1), evictions: AtomicU64::new(0) })
    }

    /// Lowers the number of places; it never rises again, because all users of the engine share them.
    pub(crate) fn lower(&self, capacity: usize) {
        let mut table = self.table();
        table.capacity = table.capacity.min(capacity.max(1));
    }

    /// A place for a program that is loaded when it is first used.
    pub(crate) fn add(self: &Arc<Self>) -> Resident<T> {
        let slot = Arc::new(Slot { used: AtomicU64::new(0), loaded: Mutex::new(None) });
        let mut table = self.table();
        table.slots.retain(|slot| slot.strong_count() > 0);
        table.slots.push(Arc::downgrade(&slot));
        drop(table);
        Resident { all: self.clone(), slot }
    }

    /// Programs that are loaded or being loaded.
    pub(crate) fn taken(&self) -> usize {
        self.table().taken
    }

    /// Programs that left for others so far.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, from the least recently used idle program where none is free. A program is unloaded before its place is given
    /// away: the engine never sees more of them than there are places.
    fn take_place(&self) -> Result<(), usize> {
        let deadline = Instant::now() + PATIENCE;
        let mut table = self.table();
        loop {
            if table.taken < table.capacity {
                table.taken += 1;
                return Ok(());
            }
            if let Some(victim) = leave(&table) {
                // The place goes over to the caller: `taken` stays as it is.
                drop(table);
                drop(victim);
                self.evictions.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            let now = Instant::now();
            if now >= deadline {
                return Err(table.capacity);
            }
            // An idle program is looked for again soon even if none leaves: becoming idle tells nobody.
            let wait = (deadline - now).min(Duration::from_millis(2));
            table = self.left.wait_timeout(table, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn give_place_back(&self) {
        self.table().taken -= 1;
        self.left.notify_one();
    }
}

/// The least recently used loaded program that does not execute, taken out of its slot.
fn leave<T>(table: &Table<T>) -> Option<T> {
    let mut slots: Vec<Arc<Slot<T>>> = table.slots.iter().filter_map(Weak::upgrade).collect();
    slots.sort_by_key(|slot| slot.used.load(Ordering::Relaxed));
    slots.iter().find_map(|slot| match slot.loaded.try_lock() {
        Ok(mut loaded) => loaded.take(),
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
        Err(TryLockError::WouldBlock) => None,
    })
}

impl<T> Resident<T> {
    /// Works with the program, loading it with `load` where it is not.
    pub(crate) fn with<R, E>(
        &self,
        load: impl FnOnce() -> Result<T, E>,
        work: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, ResidentError<E>> {
        let mut loaded = self.slot.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        self.slot.used.store(self.all.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let program = match &mut *loaded {
            Some(program) => program,
            empty => {
                self.all.take_place().map_err(|capacity| ResidentError::Busy { capacity })?;
                let place = Place(&self.all);
                let program = load().map_err(ResidentError::Failed)?;
                std::mem::forget(place);
                empty.insert(program)
            }
        };
        work(program).map_err(ResidentError::Failed)
    }

    /// Unloads the program; the next use loads it again.
    pub(crate) fn unload(&self) {
        let program = self.slot.loaded.lock().unwrap_or_else(PoisonError::into_inner).take();
        if program.is_some() {
            drop(program);
            self.all.give_place_back();
        }
    }
}

impl<T> Drop for Resident<T> {
    fn drop(&mut self) {
        self.unload();
    }
}

/// A place that is given back unless the program takes it.
struct Place<'a, T>(&'a Residents<T>);

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        self.0.give_place_back();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Counts how many of it exist.
    struct Counted<'a>(usize, &'a AtomicUsize);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn counted(number: usize, live: &AtomicUsize, most: usize) -> Result<Counted<'_>, ()> {
        assert!(live.fetch_add(1, Ordering::SeqCst) < most, "more programs are loaded than there are places");
        Ok(Counted(number, live))
    }

    #[test]
    fn the_least_recently_used_program_leaves_and_comes_back() {
        let live = AtomicUsize::new(0);
        let all = Residents::new(2);
        let programs: Vec<_> = (0..3).map(|_| all.add()).collect();
        let used = |number: usize| {
            let mut loads = 0;
            let load = || {
                loads += 1;
                counted(number, &live, 2)
            };
            let got: Result<usize, ResidentError<()>> = programs[number].with(load, |program| Ok(program.0));
            let got = got.unwrap();
            assert_eq!(got, number);
            loads
        };
        assert_eq!([0, 1, 0, 2, 0, 1, 2].map(used), [1, 1, 0, 1, 0, 1, 1]);
        assert_eq!((all.taken(), all.evictions()), (2, 3));
        drop(programs);
        assert_eq!((all.taken(), live.load(Ordering::SeqCst)), (0, 0));
    }

    #[test]
    fn a_failed_load_gives_its_place_back() {
        let all = Residents::<()>::new(1);
        let program = all.add();
        assert_eq!(program.with(|| Err("no"), |()| Ok::<(), _>(())), Err(ResidentError::Failed("no")));
        assert_eq!(all.taken(), 0);
        assert_eq!(program.with(|| Ok(()), |()| Err::<(), _>("work")), Err(ResidentError::Failed("work")));
        assert_eq!(all.taken(), 1);
        program.unload();
        assert_eq!(all.taken(), 0);
    }

    #[test]
    fn threads_never_load_more_programs_than_there_are_places() {
        let live = AtomicUsize::new(0);
        let all = Residents::new(3);
        let programs: Vec<_> = (0..10).map(|_| all.add()).collect();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (programs, live) = (&programs, &live);
                scope.spawn(move || {
                    for step in 0..200 {
                        let number = (thread * 7 + step * 3) % programs.len();
                        let got = programs[number].with(|| counted(number, live, 3), |program| Ok::<_, ()>(program.0));
                        assert_eq!(got, Ok(number));
                    }
                });
            }
        });
        drop(programs);
        assert_eq!((live.load(Ordering::SeqCst), all.taken()), (0, 0));
    }
}
