//! What everything in a process that uses one library of Apple's shares: the engine has one queue, the process one set of limits.

use super::kernel::Loaded;
use super::policy::{BackOff, CompileBudget, Residents};
use aneforge_sys::{Frameworks, Source, SysError, e5rt};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The frameworks and the limits of their users.
pub(crate) struct Shared {
    pub(crate) frameworks: Arc<Frameworks>,
    pub(crate) residents: Arc<Residents<Loaded>>,
    pub(crate) budget: Arc<CompileBudget>,
    pub(crate) back_off: BackOff,
    /// Held while a command is on the engine. Two commands in flight gain nothing and are reported unsound on e5rt: the second one's
    /// end is never told (ANE guide, arXiv 2606.22283, chapter 6).
    flight: Mutex<()>,
    /// Libraries that e5rt compiled in this process, by program: loading a program twice compiles it once.
    pub(crate) libraries: Mutex<HashMap<String, Weak<e5rt::Library>>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("frameworks", &self.frameworks).finish_non_exhaustive()
    }
}

impl Shared {
    /// The one of that source. It goes with its last user; what the process has used up stays used up.
    pub(crate) fn of(source: &Source, loaded_programs: usize) -> Result<Arc<Self>, SysError> {
        type Known = (Source, Arc<CompileBudget>, Weak<Shared>);
        static ALL: Mutex<Vec<Known>> = Mutex::new(Vec::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().position(|(known, _, _)| known == source);
        if let Some(shared) = known.and_then(|index| all[index].2.upgrade()) {
            shared.residents.lower(loaded_programs);
            return Ok(shared);
        }
        let budget = known.map(|index| all[index].1.clone()).unwrap_or_default();
        let shared = Arc::new(Self {
            frameworks: Frameworks::open(source)?,
            residents: Residents::new(loaded_programs),
            budget: budget.clone(),
            back_off: BackOff::default(),
            flight: Mutex::new(()),
            libraries: Mutex::default(),
        });
        let entry = (source.clone(), budget, Arc::downgrade(&shared));
        match known {
            Some(index) => all[index] = entry,
            None => all.push(entry),
        }
        Ok(shared)
    }

    /// Waits for the engine.
    pub(crate) fn flight(&self) -> MutexGuard<'_, ()> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
