//! Dictionaries.

use super::root::wrong;
use super::{array, elements, equal, string};
use crate::objc::{ClassSpec, Id, Method, Sel, Strong, method};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Body of a dictionary, in the order in which keys came.
#[derive(Default)]
pub struct Dictionary(Mutex<Vec<(Strong, Strong)>>);

impl Dictionary {
    fn lock(&self) -> MutexGuard<'_, Vec<(Strong, Strong)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A dictionary of these.
    pub fn of(entries: Vec<(Strong, Strong)>) -> Self {
        Self(Mutex::new(entries))
    }

    /// Its entries, kept.
    pub fn copy(&self) -> Vec<(Strong, Strong)> {
        self.lock().clone()
    }

    /// The value of a key, or nil.
    pub fn get(&self, key: Id) -> Id {
        self.lock().iter().find(|entry| equal(entry.0.id(), key)).map_or(Id::NIL, |entry| entry.1.id())
    }

    /// Puts a value under a key.
    pub fn set(&self, key: Id, value: Id) {
        if key.is_nil() || value.is_nil() {
            wrong("an entry of a dictionary", if key.is_nil() { key } else { value }, "an object");
            return;
        }
        let (key, value) = (Strong::keep(key), Strong::keep(value));
        let old = {
            let mut entries = self.lock();
            match entries.iter_mut().find(|entry| equal(entry.0.id(), key.id())) {
                Some(entry) => Some(std::mem::replace(&mut entry.1, value)),
                None => {
                    entries.push((key, value));
                    None
                }
            }
        };
        // What was there is freed outside of the lock.
        drop(old);
    }
}

fn of(entries: impl IntoIterator<Item = (Id, Id)>) -> Dictionary {
    let map = Dictionary::default();
    for (key, value) in entries {
        map.set(key, value);
    }
    map
}

/// A dictionary of these.
pub fn dictionary<'a>(entries: impl IntoIterator<Item = (&'a str, Strong)>) -> Strong {
    let entries = entries.into_iter().map(|(key, value)| (string(key), value)).collect();
    Id::make("NSDictionary", Dictionary(Mutex::new(entries)))
}

/// The entries of a dictionary; anything else has none.
pub fn entries(id: Id) -> Option<Vec<(Strong, Strong)>> {
    id.body::<Dictionary>().map(Dictionary::copy)
}

/// The value under a text in a dictionary.
pub fn value(id: Id, key: &str) -> Option<Strong> {
    let found = entries(id)?.into_iter().find(|entry| super::text_of(entry.0.id()) == Some(key))?;
    Some(found.1)
}

/// # Safety
/// Both are good for `count` ids.
unsafe fn pairs(values: *const Id, keys: *const Id, count: usize) -> Dictionary {
    if values.is_null() || keys.is_null() {
        return Dictionary::default();
    }
    // SAFETY: the caller's promise.
    let (values, keys) = unsafe { (std::slice::from_raw_parts(values, count), std::slice::from_raw_parts(keys, count)) };
    of(keys.iter().copied().zip(values.iter().copied()))
}

extern "C" fn empty(_: Id, _: Sel) -> Id {
    Id::make("NSDictionary", Dictionary::default()).autoreleased()
}

extern "C" fn empty_mutable(_: Id, _: Sel) -> Id {
    Id::make("NSMutableDictionary", Dictionary::default()).autoreleased()
}

extern "C" fn with_capacity(this: Id, selector: Sel, _capacity: usize) -> Id {
    empty_mutable(this, selector)
}

extern "C" fn with_one(_: Id, _: Sel, value: Id, key: Id) -> Id {
    Id::make("NSDictionary", of([(key, value)])).autoreleased()
}

extern "C" fn with_pairs(_: Id, _: Sel, values: *const Id, keys: *const Id, count: usize) -> Id {
    // SAFETY: the method takes this many objects.
    Id::make("NSDictionary", unsafe { pairs(values, keys, count) }).autoreleased()
}

extern "C" fn with_arrays(_: Id, _: Sel, values: Id, keys: Id) -> Id {
    let (Some(values), Some(keys)) = (elements(values), elements(keys)) else {
        wrong("dictionaryWithObjects:forKeys:", values, "NSArray");
        return Id::NIL;
    };
    let map = of(keys.iter().map(Strong::id).zip(values.iter().map(Strong::id)));
    Id::make("NSDictionary", map).autoreleased()
}

extern "C" fn init(this: Id, _: Sel) -> Id {
    this.fill(Dictionary::default());
    this
}

extern "C" fn init_pairs(this: Id, _: Sel, values: *const Id, keys: *const Id, count: usize) -> Id {
    // SAFETY: the method takes this many objects.
    this.fill(unsafe { pairs(values, keys, count) });
    this
}

extern "C" fn count(this: Id, _: Sel) -> usize {
    this.body::<Dictionary>().map_or(0, |map| map.lock().len())
}

extern "C" fn object_for(this: Id, _: Sel, key: Id) -> Id {
    this.body::<Dictionary>().map_or(Id::NIL, |map| map.get(key))
}

extern "C" fn all_keys(this: Id, _: Sel) -> Id {
    array(entries(this).unwrap_or_default().into_iter().map(|entry| entry.0).collect()).autoreleased()
}

extern "C" fn all_values(this: Id, _: Sel) -> Id {
    array(entries(this).unwrap_or_default().into_iter().map(|entry| entry.1).collect()).autoreleased()
}

extern "C" fn set(this: Id, _: Sel, value: Id, key: Id) {
    if let Some(map) = this.body::<Dictionary>() {
        map.set(key, value);
    }
}

static CLASS_METHODS: &[Method] = &[
    method!("dictionary", empty, 0),
    method!("dictionaryWithObject:forKey:", with_one, 2),
    method!("dictionaryWithObjects:forKeys:count:", with_pairs, 3),
    method!("dictionaryWithObjects:forKeys:", with_arrays, 2),
];

static METHODS: &[Method] = &[
    method!("init", init, 0),
    method!("initWithObjects:forKeys:count:", init_pairs, 3),
    method!("count", count, 0),
    method!("objectForKey:", object_for, 1),
    method!("objectForKeyedSubscript:", object_for, 1),
    method!("allKeys", all_keys, 0),
    method!("allValues", all_values, 0),
];

static MUTABLE_CLASS_METHODS: &[Method] =
    &[method!("dictionary", empty_mutable, 0), method!("dictionaryWithCapacity:", with_capacity, 1)];

static MUTABLE_METHODS: &[Method] = &[method!("setObject:forKey:", set, 2), method!("setObject:forKeyedSubscript:", set, 2)];

pub(super) static SPECS: &[ClassSpec] = &[
    ClassSpec { name: "NSDictionary", superclass: "NSObject", class_methods: CLASS_METHODS, methods: METHODS },
    ClassSpec {
        name: "NSMutableDictionary",
        superclass: "NSDictionary",
        class_methods: MUTABLE_CLASS_METHODS,
        methods: MUTABLE_METHODS,
    },
];
