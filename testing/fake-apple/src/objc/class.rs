//! Classes, methods and selectors.

use super::encode::{Encode, encoding};
use super::{Id, Object};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A selector: the address of its one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Sel(pub *const c_char);

// SAFETY: the name is never freed and never changed.
unsafe impl Send for Sel {}
// SAFETY: as above.
unsafe impl Sync for Sel {}

impl Sel {
    /// The selector of a name.
    pub fn new(name: &CStr) -> Self {
        static NAMES: Mutex<BTreeMap<&'static CStr, Sel>> = Mutex::new(BTreeMap::new());
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return *known;
        }
        let kept: &'static CStr = Box::leak(CString::from(name).into_boxed_c_str());
        names.insert(kept, Self(kept.as_ptr()));
        Self(kept.as_ptr())
    }

    /// Its name.
    pub fn name(self) -> String {
        if self.0.is_null() {
            return "(null)".to_string();
        }
        // SAFETY: a selector is the address of a string that ends in zero; callers get theirs from `sel_registerName`.
        unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned()
    }
}

/// A function that implements a method.
pub trait Imp: Sync {
    /// Where it is.
    fn address(&self) -> *const c_void;
    /// The encoding of its type.
    fn encoding(&self) -> String;
}

macro_rules! imp {
    ($($argument:ident)*) => {
        impl<R: Encode $(, $argument: Encode)*> Imp for extern "C" fn(Id, Sel $(, $argument)*) -> R {
            fn address(&self) -> *const c_void {
                *self as *const c_void
            }
            fn encoding(&self) -> String {
                encoding(R::CODE, &[$(($argument::CODE, $argument::SIZE)),*])
            }
        }
    };
}

imp!();
imp!(A);
imp!(A B);
imp!(A B C);
imp!(A B C D);
imp!(A B C D E);
imp!(A B C D E F);
imp!(A B C D E F G);
imp!(A B C D E F G H);
imp!(A B C D E F G H I);

/// A method as it is written down.
pub struct Method {
    /// Name of the selector.
    pub selector: &'static str,
    /// What it does.
    pub imp: &'static dyn Imp,
}

/// A method of a function, with the number of its arguments after the selector.
macro_rules! method {
    (@ $selector:literal, $function:expr, $($hole:tt)*) => {
        $crate::objc::Method { selector: $selector, imp: &($function as extern "C" fn(_, _ $(, $hole)*) -> _) }
    };
    ($selector:literal, $function:expr, 0) => { $crate::objc::method!(@ $selector, $function,) };
    ($selector:literal, $function:expr, 1) => { $crate::objc::method!(@ $selector, $function, _) };
    ($selector:literal, $function:expr, 2) => { $crate::objc::method!(@ $selector, $function, _ _) };
    ($selector:literal, $function:expr, 3) => { $crate::objc::method!(@ $selector, $function, _ _ _) };
    ($selector:literal, $function:expr, 4) => { $crate::objc::method!(@ $selector, $function, _ _ _ _) };
    ($selector:literal, $function:expr, 5) => { $crate::objc::method!(@ $selector, $function, _ _ _ _ _) };
    ($selector:literal, $function:expr, 6) => { $crate::objc::method!(@ $selector, $function, _ _ _ _ _ _) };
    ($selector:literal, $function:expr, 7) => { $crate::objc::method!(@ $selector, $function, _ _ _ _ _ _ _) };
    ($selector:literal, $function:expr, 8) => { $crate::objc::method!(@ $selector, $function, _ _ _ _ _ _ _ _) };
    ($selector:literal, $function:expr, 9) => { $crate::objc::method!(@ $selector, $function, _ _ _ _ _ _ _ _ _) };
}
pub(crate) use method;

/// A class as it is written down.
pub struct ClassSpec {
    /// Name.
    pub name: &'static str,
    /// Name of the class above, which stands earlier; empty for the root.
    pub superclass: &'static str,
    /// Methods of the class itself.
    pub class_methods: &'static [Method],
    /// Methods of its objects.
    pub methods: &'static [Method],
}

/// A method of a class, with its encoding; what `class_getInstanceMethod` gives.
#[derive(Debug)]
pub struct RuntimeMethod {
    /// Selector.
    pub selector: Sel,
    /// Where it is implemented.
    pub imp: usize,
    /// Encoding of its type.
    pub encoding: CString,
}

/// A class. Its first word is its own class, as that of every object.
#[derive(Debug)]
#[repr(C)]
pub struct Class {
    isa: *const Class,
    /// Name.
    pub name: &'static str,
    /// Name for C.
    pub c_name: CString,
    /// The class above.
    pub superclass: Option<&'static Class>,
    /// Whether it is the class of a class.
    pub meta: bool,
    /// Its methods and those of the classes above, by selector.
    methods: Vec<(Sel, &'static RuntimeMethod)>,
}

// SAFETY: never changed once made; `isa` points to another class, which is never freed.
unsafe impl Send for Class {}
// SAFETY: as above.
unsafe impl Sync for Class {}

impl Class {
    /// The method that objects of this class have under a selector.
    pub fn find(&self, selector: Sel) -> Option<&'static RuntimeMethod> {
        self.methods.binary_search_by_key(&selector, |entry| entry.0).ok().map(|at| self.methods[at].1)
    }

    /// The class of the class, which has its class methods.
    pub fn metaclass(&self) -> Option<&'static Class> {
        // SAFETY: null, or another class, which is never freed.
        unsafe { self.isa.as_ref() }
    }

    /// The class as an object.
    pub fn id(&'static self) -> Id {
        Id::from_address(std::ptr::from_ref(self).cast::<Object>())
    }
}

fn build(spec: &ClassSpec, known: &BTreeMap<&'static str, &'static Class>) -> &'static Class {
    let superclass = known.get(spec.superclass).copied();
    let make =
        |isa: *const Class, superclass: Option<&'static Class>, meta: bool, own: &'static [Method], also: &'static [Method]| {
            let mut methods: BTreeMap<Sel, &'static RuntimeMethod> =
                superclass.iter().flat_map(|class| class.methods.iter().copied()).collect();
            for method in also.iter().chain(own) {
                let selector = Sel::new(&CString::new(method.selector).unwrap_or_default());
                let encoding = CString::new(method.imp.encoding()).unwrap_or_default();
                let made = RuntimeMethod { selector, imp: method.imp.address() as usize, encoding };
                methods.insert(selector, Box::leak(Box::new(made)));
            }
            let c_name = CString::new(spec.name).unwrap_or_default();
            let methods = methods.into_iter().collect();
            &*Box::leak(Box::new(Class { isa, name: spec.name, c_name, superclass, meta, methods }))
        };
    // A class answers the methods of objects too, as the root class of Foundation does.
    let root: &'static [Method] = if spec.superclass.is_empty() { spec.methods } else { &[] };
    let above = superclass.and_then(Class::metaclass);
    let meta = make(std::ptr::null(), above, true, spec.class_methods, root);
    make(meta, superclass, false, spec.methods, &[])
}

fn classes() -> &'static BTreeMap<&'static str, &'static Class> {
    static CLASSES: OnceLock<BTreeMap<&'static str, &'static Class>> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let mut known = BTreeMap::new();
        for spec in crate::class_specs() {
            let class = build(spec, &known);
            known.insert(spec.name, class);
        }
        known
    })
}

/// The class of a name.
pub fn class(name: &str) -> Option<&'static Class> {
    classes().get(name).copied()
}
