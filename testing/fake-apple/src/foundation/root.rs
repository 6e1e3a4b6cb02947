//! The root class, and what objects have in common.

use super::{Array, Dictionary, Number};
use crate::counters::{COUNTERS, count, violation};
use crate::objc::{self, ClassRef, ClassSpec, Id, Method, Sel, method};
use std::ffi::c_void;
use std::ptr::null;

extern "C" fn alloc(this: Id, _: Sel) -> Id {
    objc::objc_alloc(this)
}

extern "C" fn new(this: Id, _: Sel) -> Id {
    let id = objc::objc_alloc(this);
    // Subclasses give their objects a body in `init`.
    let selector = Sel::new(c"init");
    let Some(method) = id.class().and_then(|class| class.find(selector)) else { return id };
    // SAFETY: `init` has this type in every class of this library.
    let init: extern "C" fn(Id, Sel) -> Id =
        unsafe { std::mem::transmute(std::ptr::with_exposed_provenance::<c_void>(method.imp)) };
    init(id, selector)
}

extern "C" fn itself(this: Id, _: Sel) -> Id {
    this
}

extern "C" fn retain(this: Id, _: Sel) -> Id {
    objc::objc_retain(this)
}

extern "C" fn release(this: Id, _: Sel) {
    objc::objc_release(this);
}

extern "C" fn autorelease(this: Id, _: Sel) -> Id {
    objc::autorelease(this)
}

extern "C" fn retain_count(this: Id, _: Sel) -> usize {
    this.count()
}

extern "C" fn copy(this: Id, _: Sel) -> Id {
    count(&COUNTERS.retains);
    this.retain()
}

/// A dictionary or array that holds the same; anything else is copied by keeping it.
extern "C" fn mutable_copy(this: Id, selector: Sel) -> Id {
    if let Some(map) = this.body::<Dictionary>() {
        return Id::make("NSMutableDictionary", Dictionary::of(map.copy())).into_id();
    }
    match this.body::<Array>() {
        Some(array) => Id::make("NSMutableArray", Array::of(array.copy())).into_id(),
        None => copy(this, selector),
    }
}

extern "C" fn class_of(this: Id, _: Sel) -> ClassRef {
    match this.as_class() {
        Some(class) => ClassRef(class),
        None => ClassRef(this.class().map_or(null(), std::ptr::from_ref)),
    }
}

extern "C" fn is_kind_of(this: Id, _: Sel, wanted: ClassRef) -> bool {
    let mut above = std::iter::successors(this.class(), |class| class.superclass);
    above.any(|class| std::ptr::eq(class, wanted.0))
}

extern "C" fn responds(this: Id, _: Sel, selector: Sel) -> bool {
    this.responds_to(selector)
}

extern "C" fn instances_respond(this: Id, _: Sel, selector: Sel) -> bool {
    this.as_class().is_some_and(|class| class.find(selector).is_some())
}

extern "C" fn method_for(this: Id, _: Sel, selector: Sel) -> *const c_void {
    let method = this.class().and_then(|class| class.find(selector));
    method.map_or(null(), |method| std::ptr::with_exposed_provenance(method.imp))
}

extern "C" fn is_equal(this: Id, _: Sel, other: Id) -> bool {
    equal(this, other)
}

extern "C" fn hash(this: Id, _: Sel) -> usize {
    match super::text_of(this) {
        Some(text) => text.bytes().fold(5381, |hash: usize, byte| hash.wrapping_mul(33) ^ usize::from(byte)),
        None => this.address().addr(),
    }
}

extern "C" fn description(this: Id, _: Sel) -> Id {
    super::string(&describe(this)).autoreleased()
}

extern "C" fn null_object(_: Id, _: Sel) -> Id {
    static NULL: std::sync::OnceLock<Id> = std::sync::OnceLock::new();
    *NULL.get_or_init(|| Id::make("NSNull", ()).into_id().immortal())
}

/// Whether two objects are equal by what they hold.
pub fn equal(one: Id, other: Id) -> bool {
    if one == other {
        return true;
    }
    if let (Some(one), Some(other)) = (super::text_of(one), super::text_of(other)) {
        return one == other;
    }
    if let (Some(one), Some(other)) = (super::bytes_of(one), super::bytes_of(other)) {
        return one == other;
    }
    matches!((one.body::<Number>(), other.body::<Number>()), (Some(one), Some(other)) if one == other)
}

fn describe(id: Id) -> String {
    if id.is_nil() {
        return "(null)".to_string();
    }
    if let Some(text) = super::text_of(id) {
        return text.to_string();
    }
    if let Some(number) = id.body::<Number>() {
        return number.to_string();
    }
    if let Some(failure) = id.body::<super::Failure>() {
        return format!("Error Domain={} Code={} \"{}\"", failure.domain, failure.code, failure.text);
    }
    if let Some(bytes) = super::bytes_of(id) {
        return format!("{{length = {}}}", bytes.len());
    }
    if let Some(array) = id.body::<Array>() {
        let parts: Vec<String> = array.copy().iter().map(|element| describe(element.id())).collect();
        return format!("({})", parts.join(", "));
    }
    if let Some(map) = id.body::<Dictionary>() {
        let entries = map.copy();
        let parts: Vec<String> =
            entries.iter().map(|(key, value)| format!("{} = {};", describe(key.id()), describe(value.id()))).collect();
        return format!("{{{}}}", parts.join(" "));
    }
    let name = id.as_class().or_else(|| id.class()).map_or("?", |class| class.name);
    format!("<{name}: {:p}>", id.address())
}

/// Records an argument of the wrong kind; real methods throw or crash.
pub(super) fn wrong(what: &str, argument: Id, wanted: &str) {
    let found = argument.freed().map(|was| format!("a freed {was}"));
    let found = found.or_else(|| argument.class().map(|class| class.name.to_string())).unwrap_or_else(|| "nil".to_string());
    violation(format!("{what}: {found} in the place of {wanted}"));
}

static CLASS_METHODS: &[Method] =
    &[method!("alloc", alloc, 0), method!("new", new, 0), method!("instancesRespondToSelector:", instances_respond, 1)];

static METHODS: &[Method] = &[
    method!("init", itself, 0),
    method!("self", itself, 0),
    method!("retain", retain, 0),
    method!("release", release, 0),
    method!("autorelease", autorelease, 0),
    method!("retainCount", retain_count, 0),
    method!("copy", copy, 0),
    method!("mutableCopy", mutable_copy, 0),
    method!("class", class_of, 0),
    method!("isKindOfClass:", is_kind_of, 1),
    method!("respondsToSelector:", responds, 1),
    method!("methodForSelector:", method_for, 1),
    method!("isEqual:", is_equal, 1),
    method!("hash", hash, 0),
    method!("description", description, 0),
];

pub(super) static SPECS: &[ClassSpec] = &[
    ClassSpec { name: "NSObject", superclass: "", class_methods: CLASS_METHODS, methods: METHODS },
    ClassSpec { name: "_NSZombie_", superclass: "", class_methods: &[], methods: &[] },
    ClassSpec { name: "NSNull", superclass: "NSObject", class_methods: &[method!("null", null_object, 0)], methods: &[] },
];
