//! The Objective-C runtime and as much of Foundation as the engine's classes take and give.
//!
//! Messages are typed: each method of the tables in this crate has one function type, through which `objc_msgSend` is called.
//! Objects are counted: [`Retained`] retains when it is cloned and releases when it is dropped. What methods give back without
//! ownership is retained inside of an autorelease pool that ends with the call.

pub(crate) mod foundation;
pub(crate) mod methods;
pub(crate) mod types;
mod value;

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::SysError;
use crate::block::Blocks;
use crate::library::{Search, functions};
use crate::pool::Pool;
use foundation::Foundation;
use types::{ClassRef, Id, Sel};

pub use foundation::{Array, Data, Dictionary, Item};
pub use value::Value;

functions! {
    struct CoreFunctions {
        get_class: "objc_getClass" (name: *const c_char) -> Id;
        register: "sel_registerName" (name: *const c_char) -> Sel;
        retain: "objc_retain" (object: Id) -> Id;
        release: "objc_release" (object: Id);
        instance_method: "class_getInstanceMethod" (class: ClassRef, selector: Sel) -> *mut c_void;
        class_method: "class_getClassMethod" (class: ClassRef, selector: Sel) -> *mut c_void;
        types: "method_getTypeEncoding" (method: *mut c_void) -> *const c_char;
        object_class: "object_getClass" (object: Id) -> ClassRef;
        class_name: "class_getName" (class: ClassRef) -> *const c_char;
    }
}

/// The runtime's own functions, before any class is known.
pub(crate) struct Core {
    functions: CoreFunctions,
    /// `objc_msgSend`.
    message: NonNull<c_void>,
    pub(crate) pool: Pool,
    blocks: Option<Blocks>,
}

// SAFETY: `message` is the address of a function, which never goes away.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

impl Core {
    fn load(search: &mut Search<'_>) -> Option<Self> {
        let functions = CoreFunctions::load(search);
        let message = search.data("objc_msgSend");
        let pool = Pool::load(search);
        let blocks = search.lenient(Blocks::load);
        Some(Self { functions: functions?, message: message?, pool: pool?, blocks })
    }

    /// A class by name.
    pub(crate) fn class(&self, name: &str) -> Option<ClassRef> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends in zero.
        let class = unsafe { (self.functions.get_class.call)(name.as_ptr()) };
        (!class.is_nil()).then_some(ClassRef(class.0))
    }

    /// A selector by name.
    fn selector(&self, name: &str) -> Option<Sel> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends in zero and is copied by the runtime.
        let selector = unsafe { (self.functions.register.call)(name.as_ptr()) };
        (!selector.0.is_null()).then_some(selector)
    }

    /// The type encoding of a method; nothing where the class has no such method.
    fn encoding(&self, class: ClassRef, of_class: bool, selector: &str) -> Option<String> {
        let selector = self.selector(selector)?;
        let find = if of_class { self.functions.class_method.call } else { self.functions.instance_method.call };
        // SAFETY: class and selector come from the runtime.
        let method = unsafe { find(class, selector) };
        if method.is_null() {
            return None;
        }
        // SAFETY: the method comes from the runtime.
        let types = unsafe { (self.functions.types.call)(method) };
        if types.is_null() {
            return Some(String::new());
        }
        // SAFETY: encodings are texts of the runtime's that end in zero and stay.
        Some(unsafe { CStr::from_ptr(types) }.to_string_lossy().into_owned())
    }
}

/// The runtime and the classes of Foundation.
pub struct ObjectiveC {
    pub(crate) core: Core,
    pub(crate) foundation: Foundation,
    pub(crate) os_build: String,
}

impl std::fmt::Debug for ObjectiveC {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Objective-C")
    }
}

impl ObjectiveC {
    pub(crate) fn load(search: &mut Search<'_>) -> Option<Self> {
        let core = Core::load(search)?;
        let foundation = Foundation::load(&core, search)?;
        Some(Self { core, foundation, os_build: search.os_build.clone() })
    }

    /// Runs `work` with an autorelease pool of its own.
    pub fn with_pool<T>(&self, work: impl FnOnce() -> T) -> T {
        self.core.pool.with(work)
    }

    /// The block runtime, or the error that says it is missing.
    pub(crate) fn blocks(&self) -> Result<Blocks, SysError> {
        self.core.blocks.ok_or_else(|| SysError::Lacking {
            part: "the block runtime",
            os_build: self.os_build.clone(),
            missing: ["_Block_copy", "_Block_release", "_NSConcreteStackBlock"]
                .map(|name| crate::Missing::Symbol(name.to_string()))
                .to_vec(),
        })
    }

    /// Retains an object that a method gave back without ownership.
    ///
    /// # Safety
    /// `object` is nil or an object that lives.
    pub(crate) unsafe fn retained(self: &Arc<Self>, object: Id) -> Option<Retained> {
        let raw = NonNull::new(object.0)?;
        // SAFETY: the object lives, says the caller.
        unsafe { (self.core.functions.retain.call)(object) };
        Some(Retained { raw, runtime: self.clone() })
    }

    /// Takes over an object that a method gave back with ownership, as `alloc`, `init`, `copy` and `new` do.
    ///
    /// # Safety
    /// `object` is nil or an object whose one reference becomes ours.
    pub(crate) unsafe fn owned(self: &Arc<Self>, object: Id) -> Option<Retained> {
        NonNull::new(object.0).map(|raw| Retained { raw, runtime: self.clone() })
    }

    /// The name of an object's class.
    pub(crate) fn class_name(&self, object: &Retained) -> String {
        // SAFETY: the object lives, so its class does.
        let name = unsafe { (self.core.functions.class_name.call)((self.core.functions.object_class.call)(object.id())) };
        if name.is_null() {
            return "an object".to_string();
        }
        // SAFETY: names of classes are texts that end in zero and stay.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }
}

/// One reference to an object.
pub(crate) struct Retained {
    raw: NonNull<c_void>,
    pub(crate) runtime: Arc<ObjectiveC>,
}

// SAFETY: counting is atomic. Objects that this crate makes or keeps are Foundation's immutable ones, which may be used from any
// thread, or objects of AppleNeuralEngine and surfaces, whose types here take `&mut self` for what must not race.
unsafe impl Send for Retained {}
// SAFETY: as above.
unsafe impl Sync for Retained {}

impl Retained {
    /// The object, for a message.
    pub(crate) fn id(&self) -> Id {
        Id(self.raw.as_ptr())
    }
}

impl Clone for Retained {
    fn clone(&self) -> Self {
        // SAFETY: the object lives as long as this reference.
        unsafe { (self.runtime.core.functions.retain.call)(self.id()) };
        Self { raw: self.raw, runtime: self.runtime.clone() }
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        // SAFETY: this reference is given back once.
        unsafe { (self.runtime.core.functions.release.call)(self.id()) }
    }
}

#[cfg(test)]
mod tests {
    use super::methods::methods;
    use super::types::Bool;
    use super::*;
    use crate::Missing;
    use crate::library::Function;

    methods! {
        #[allow(dead_code)]
        struct Double for "Double" {
            right: - "right:" (value: u32) -> Bool;
            wider: - "wider:" (value: u32) -> Bool;
            gone: + "gone" () -> Id;
            @optional {
                perhaps: - "perhaps" () -> Id;
            }
        }
    }
    methods! {
        #[allow(dead_code)]
        struct Absent for "Absent" {
            one: - "one" () -> Id;
            two: - "two" () -> Id;
        }
    }

    /// A runtime with one class. Selectors and methods are addresses of their own names.
    fn runtime() -> Core {
        const NAMES: [(&CStr, Option<&CStr>); 4] = [
            (c"right:", Some(c"B20@0:8I16")),
            // The system's method takes 64 bits where we would pass 32.
            (c"wider:", Some(c"B24@0:8Q16")),
            (c"gone", None),
            (c"perhaps", None),
        ];
        unsafe extern "C" fn get_class(name: *const c_char) -> Id {
            // SAFETY: names end in zero.
            let known = unsafe { CStr::from_ptr(name) } == c"Double";
            if known { Id(NonNull::<u64>::dangling().as_ptr().cast()) } else { Id::NIL }
        }
        unsafe extern "C" fn register(name: *const c_char) -> Sel {
            // SAFETY: names end in zero.
            let name = unsafe { CStr::from_ptr(name) };
            let known = NAMES.iter().find(|(known, _)| *known == name).map(|(known, _)| known.as_ptr());
            Sel(known.unwrap_or(c"other".as_ptr()).cast_mut().cast())
        }
        unsafe extern "C" fn method(_class: ClassRef, selector: Sel) -> *mut c_void {
            let known = NAMES.iter().any(|(name, types)| name.as_ptr().cast() == selector.0.cast_const() && types.is_some());
            if known { selector.0 } else { std::ptr::null_mut() }
        }
        unsafe extern "C" fn types(method: *mut c_void) -> *const c_char {
            let known = NAMES.iter().find(|(name, _)| name.as_ptr().cast() == method.cast_const());
            known.and_then(|(_, types)| *types).map_or(std::ptr::null(), CStr::as_ptr)
        }
        unsafe extern "C" fn same(object: Id) -> Id {
            object
        }
        unsafe extern "C" fn nothing(_object: Id) {}
        unsafe extern "C" fn class_of(_object: Id) -> ClassRef {
            ClassRef(std::ptr::null_mut())
        }
        unsafe extern "C" fn class_name(_class: ClassRef) -> *const c_char {
            c"Double".as_ptr()
        }
        unsafe extern "C" fn push() -> *mut c_void {
            std::ptr::null_mut()
        }
        unsafe extern "C" fn pop(_token: *mut c_void) {}
        Core {
            functions: CoreFunctions {
                get_class: Function { call: get_class, name: "" },
                register: Function { call: register, name: "" },
                retain: Function { call: same, name: "" },
                release: Function { call: nothing, name: "" },
                instance_method: Function { call: method, name: "" },
                class_method: Function { call: method, name: "" },
                types: Function { call: types, name: "" },
                object_class: Function { call: class_of, name: "" },
                class_name: Function { call: class_name, name: "" },
            },
            message: NonNull::dangling(),
            pool: Pool { push: Function { call: push, name: "" }, pop: Function { call: pop, name: "" } },
            blocks: None,
        }
    }

    #[test]
    fn a_method_of_other_types_is_found_out_and_not_called() {
        let core = runtime();
        let class = core.class("Double");
        let mut search = Search::new(&[], "1A1");
        type Takes = unsafe extern "C" fn(Id, Sel, u32) -> Bool;
        let right = methods::Method::<Takes>::find(&core, &mut search, class, false, "right:", "-[Double right:]", true).unwrap();
        assert!(right.ready().is_ok());
        let wider = methods::Method::<Takes>::find(&core, &mut search, class, false, "wider:", "-[Double wider:]", true).unwrap();
        let error = wider.ready().err();
        if cfg!(debug_assertions) {
            let (expected, found) = ("B@:I".to_string(), "B24@0:8Q16".to_string());
            assert_eq!(error, Some(SysError::Encoding { method: "-[Double wider:]".to_string(), expected, found }));
        }
        // The list that people see has it in every build.
        assert_eq!(search.lookups[0].types, None);
        assert_eq!(search.lookups[1].types, Some(("B@:I".to_string(), "B24@0:8Q16".to_string())));
    }

    #[test]
    fn required_methods_are_missed_and_optional_ones_are_not() {
        let core = runtime();
        let mut search = Search::new(&[], "1A1");
        assert!(Double::load(&core, &mut search, true).is_none());
        assert_eq!(search.missing(), [Missing::Method("+[Double gone]".to_string())]);
        let optional = search.lookups.iter().find(|lookup| lookup.item == Missing::Method("-[Double perhaps]".to_string()));
        assert!(optional.is_some_and(|lookup| !lookup.required && !lookup.found));
        assert!(Absent::load(&core, &mut search, true).is_none());
        assert_eq!(search.missing(), [Missing::Class("Absent".to_string()), Missing::Method("+[Double gone]".to_string())]);
    }
}
