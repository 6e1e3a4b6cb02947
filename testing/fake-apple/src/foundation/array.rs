//! Arrays.

use super::root::wrong;
use crate::counters::violation;
use crate::objc::{ClassSpec, Id, Method, Sel, Strong, method};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Body of an array.
#[derive(Default)]
pub struct Array(Mutex<Vec<Strong>>);

impl Array {
    fn lock(&self) -> MutexGuard<'_, Vec<Strong>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An array of these.
    pub fn of(elements: Vec<Strong>) -> Self {
        Self(Mutex::new(elements))
    }

    /// Its elements, kept.
    pub fn copy(&self) -> Vec<Strong> {
        self.lock().clone()
    }
}

/// An array of these.
pub fn array(elements: Vec<Strong>) -> Strong {
    Id::make("NSArray", Array(Mutex::new(elements)))
}

/// The elements of an array; anything else has none.
pub fn elements(id: Id) -> Option<Vec<Strong>> {
    id.body::<Array>().map(Array::copy)
}

/// # Safety
/// `objects` is good for `count` ids.
unsafe fn kept(objects: *const Id, count: usize) -> Vec<Strong> {
    if objects.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    let objects = unsafe { std::slice::from_raw_parts(objects, count) };
    for object in objects.iter().filter(|object| object.is_nil()) {
        wrong("element of an array", *object, "an object");
    }
    objects.iter().map(|object| Strong::keep(*object)).collect()
}

extern "C" fn empty(_: Id, _: Sel) -> Id {
    array(Vec::new()).autoreleased()
}

extern "C" fn empty_mutable(_: Id, _: Sel) -> Id {
    Id::make("NSMutableArray", Array::default()).autoreleased()
}

extern "C" fn with_capacity(this: Id, selector: Sel, _capacity: usize) -> Id {
    empty_mutable(this, selector)
}

extern "C" fn with_object(_: Id, _: Sel, object: Id) -> Id {
    array(vec![Strong::keep(object)]).autoreleased()
}

extern "C" fn with_objects(_: Id, _: Sel, objects: *const Id, count: usize) -> Id {
    // SAFETY: the method takes this many objects.
    array(unsafe { kept(objects, count) }).autoreleased()
}

extern "C" fn init(this: Id, _: Sel) -> Id {
    this.fill(Array::default());
    this
}

extern "C" fn init_objects(this: Id, _: Sel, objects: *const Id, count: usize) -> Id {
    // SAFETY: the method takes this many objects.
    this.fill(Array(Mutex::new(unsafe { kept(objects, count) })));
    this
}

extern "C" fn count(this: Id, _: Sel) -> usize {
    this.body::<Array>().map_or(0, |array| array.lock().len())
}

extern "C" fn object_at(this: Id, _: Sel, index: usize) -> Id {
    let Some(array) = this.body::<Array>() else { return Id::NIL };
    let array = array.lock();
    if index >= array.len() {
        violation(format!("objectAtIndex: {index} of an array of {}", array.len()));
    }
    array.get(index).map_or(Id::NIL, Strong::id)
}

extern "C" fn first(this: Id, _: Sel) -> Id {
    this.body::<Array>().and_then(|array| array.lock().first().map(Strong::id)).unwrap_or(Id::NIL)
}

extern "C" fn add(this: Id, _: Sel, object: Id) {
    if object.is_nil() {
        wrong("addObject:", object, "an object");
    } else if let Some(array) = this.body::<Array>() {
        array.lock().push(Strong::keep(object));
    }
}

static CLASS_METHODS: &[Method] =
    &[method!("array", empty, 0), method!("arrayWithObject:", with_object, 1), method!("arrayWithObjects:count:", with_objects, 2)];

static METHODS: &[Method] = &[
    method!("init", init, 0),
    method!("initWithObjects:count:", init_objects, 2),
    method!("count", count, 0),
    method!("objectAtIndex:", object_at, 1),
    method!("objectAtIndexedSubscript:", object_at, 1),
    method!("firstObject", first, 0),
];

static MUTABLE_CLASS_METHODS: &[Method] = &[method!("array", empty_mutable, 0), method!("arrayWithCapacity:", with_capacity, 1)];

pub(super) static SPECS: &[ClassSpec] = &[
    ClassSpec { name: "NSArray", superclass: "NSObject", class_methods: CLASS_METHODS, methods: METHODS },
    ClassSpec {
        name: "NSMutableArray",
        superclass: "NSArray",
        class_methods: MUTABLE_CLASS_METHODS,
        methods: &[method!("addObject:", add, 1)],
    },
];
