//! Objects: an address whose first word is the class, a count, and a body that only this library reads.

use super::{Class, Sel, class};
use crate::counters;
use std::any::Any;
use std::collections::VecDeque;
use std::ptr::null;
use std::sync::atomic::{AtomicIsize, AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Counts from here on belong to objects that are never freed.
const IMMORTAL: isize = isize::MAX / 2;

/// Freed objects that are kept.
const QUARANTINE: usize = 20_000;

/// An object in memory.
#[repr(C)]
pub struct Object {
    isa: AtomicPtr<Class>,
    count: AtomicIsize,
    /// Name of the class that a freed object had.
    was: OnceLock<&'static str>,
    body: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The address of an object, or nil. Does not keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Id(*const Object);

// SAFETY: objects are counted atomically and their bodies are `Send` and `Sync`.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

fn zombie() -> &'static Class {
    static ZOMBIE: OnceLock<&'static Class> = OnceLock::new();
    // Registered with the other classes so that it has a name.
    ZOMBIE.get_or_init(|| class("_NSZombie_").unwrap_or_else(|| unreachable_class()))
}

fn unreachable_class() -> &'static Class {
    // The table of classes always has a root.
    class("NSObject").unwrap_or_else(|| std::process::abort())
}

/// Freed objects, oldest first.
static FREED: Mutex<VecDeque<Id>> = Mutex::new(VecDeque::new());

impl Id {
    /// No object.
    pub const NIL: Self = Self(null());

    /// The object at an address.
    pub fn from_address(address: *const Object) -> Self {
        Self(address)
    }

    /// Its address.
    pub fn address(self) -> *const Object {
        self.0
    }

    /// Whether it is no object.
    pub fn is_nil(self) -> bool {
        self.0.is_null()
    }

    fn header(self) -> Option<&'static AtomicPtr<Class>> {
        // SAFETY: senders pass nil or the address of an object, a class or a block; each starts with a word for its class, and this
        // library keeps freed objects readable for a while. A wrong address fails here as it does on a Mac.
        unsafe { self.0.cast::<AtomicPtr<Class>>().as_ref() }
    }

    /// The class of a living object; nil, blocks and freed objects have none.
    pub fn class(self) -> Option<&'static Class> {
        let isa: *const Class = self.header()?.load(Ordering::Acquire);
        if super::block::is_block_class(isa.cast()) {
            return None;
        }
        if std::ptr::eq(isa, zombie()) {
            return None;
        }
        // SAFETY: what is no block starts with the address of a class, or with null in the class of a class; classes are never freed.
        unsafe { isa.as_ref() }
    }

    /// The class that this is, if it is one.
    pub fn as_class(self) -> Option<&'static Class> {
        self.class().filter(|class| class.meta)?;
        // SAFETY: only classes have the class of a class.
        unsafe { self.0.cast::<Class>().as_ref() }
    }

    /// The object behind it, if it is a living one that is no class.
    pub fn object(self) -> Option<&'static Object> {
        self.class().filter(|class| !class.meta)?;
        // SAFETY: its class says that it is an object of this library; the sender keeps it for the time of the message.
        unsafe { self.0.as_ref() }
    }

    /// What was freed here, if anything was.
    pub fn freed(self) -> Option<&'static str> {
        let header = self.header()?;
        if !std::ptr::eq(header.load(Ordering::Acquire), zombie()) {
            return None;
        }
        // SAFETY: only objects of this library get this class, and they are kept.
        let object = unsafe { self.0.as_ref() }?;
        Some(object.was.get().copied().unwrap_or("an object"))
    }

    /// The body, if it is of this type.
    pub fn body<T: 'static>(self) -> Option<&'static T> {
        self.object()?.body.get()?.downcast_ref::<T>()
    }

    /// Gives an object that was allocated empty its body; false if it has one.
    pub fn fill<T: Any + Send + Sync>(self, body: T) -> bool {
        self.object().is_some_and(|object| object.body.set(Box::new(body)).is_ok())
    }

    /// A new object with a count of 1.
    pub fn empty(class: &'static Class) -> Strong {
        let object = Object {
            isa: AtomicPtr::new(std::ptr::from_ref(class).cast_mut()),
            count: AtomicIsize::new(1),
            was: OnceLock::new(),
            body: OnceLock::new(),
        };
        counters::live(class.name, 1);
        Strong(Self(Box::into_raw(Box::new(object))))
    }

    /// A new object of a class of this library.
    pub fn make<T: Any + Send + Sync>(class_name: &str, body: T) -> Strong {
        let made = Self::empty(class(class_name).unwrap_or_else(|| unreachable_class()));
        made.id().fill(body);
        made
    }

    /// Makes it live for ever and no longer counted among the living.
    pub fn immortal(self) -> Self {
        if let Some(object) = self.object() {
            object.count.store(IMMORTAL, Ordering::Relaxed);
            counters::live(self.class().map_or("", |class| class.name), -1);
        }
        self
    }

    /// Adds one to the count; classes and nil have none.
    pub fn retain(self) -> Self {
        if let Some(was) = self.freed() {
            counters::violation(format!("retain of a freed {was}"));
        } else if let Some(object) = self.object()
            && object.count.load(Ordering::Relaxed) < IMMORTAL
        {
            object.count.fetch_add(1, Ordering::Relaxed);
        }
        self
    }

    /// Takes one from the count and frees the object at zero.
    pub fn release(self) {
        if let Some(was) = self.freed() {
            counters::violation(format!("release of a freed {was}"));
            return;
        }
        let Some(object) = self.object() else { return };
        if object.count.load(Ordering::Relaxed) >= IMMORTAL {
            return;
        }
        if object.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.free(object);
        }
    }

    /// The count, as `retainCount` says it.
    pub fn count(self) -> usize {
        self.object().map_or(0, |object| object.count.load(Ordering::Relaxed).max(0).cast_unsigned())
    }

    fn free(self, object: &'static Object) {
        let name = self.class().map_or("an object", |class| class.name);
        counters::live(name, -1);
        let _ = object.was.set(name);
        let keep = crate::settings::current().zombies;
        // The body goes at once: what it holds is released, whether or not the shell is kept.
        // SAFETY: the count is zero, so nobody may use the object any more; `object` is not used after this.
        let body = unsafe { (*self.0.cast_mut()).body.take() };
        object.isa.store(std::ptr::from_ref(zombie()).cast_mut(), Ordering::Release);
        drop(body);
        let mut freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
        freed.push_back(self);
        let limit = if keep { QUARANTINE } else { 0 };
        while freed.len() > limit {
            let Some(oldest) = freed.pop_front() else { break };
            // SAFETY: made by `Box::into_raw` in `empty`, freed once, and out of the list.
            drop(unsafe { Box::from_raw(oldest.0.cast_mut()) });
        }
    }

    /// Whether it answers a selector.
    pub fn responds_to(self, selector: Sel) -> bool {
        self.class().is_some_and(|class| class.find(selector).is_some())
    }
}

/// An object that this library keeps.
#[derive(Debug, PartialEq, Eq)]
pub struct Strong(Id);

impl Strong {
    /// Keeps an object.
    pub fn keep(id: Id) -> Self {
        Self(id.retain())
    }

    /// The object.
    pub fn id(&self) -> Id {
        self.0
    }

    /// Gives the count away: the caller releases it.
    pub fn into_id(self) -> Id {
        let id = self.0;
        std::mem::forget(self);
        id
    }

    /// Gives the count to the pool of this thread.
    pub fn autoreleased(self) -> Id {
        super::autorelease(self.into_id())
    }
}

impl Clone for Strong {
    fn clone(&self) -> Self {
        Self::keep(self.0)
    }
}

impl Drop for Strong {
    fn drop(&mut self) {
        self.0.release();
    }
}
