//! The library as its clients see it: symbols found by name, messages sent by C types.
// The tests are clients: what they call, they call by the types that the sources give, and nothing checks them.
#![allow(dead_code, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

pub mod models;

use aneforge_fake_client::{control, library};
use serde_json::{Value, json};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;

pub type Id = *mut c_void;
pub type Sel = *const c_char;

/// The opened library.
pub struct Fake {
    library: libloading::Library,
}

/// Gives an argument its type.
pub fn same<T>(value: T) -> T {
    value
}

/// Calls a function by the C types of its arguments.
pub trait Send<A, R> {
    fn send(&self, arguments: A) -> R;
}

macro_rules! calls {
    ($($name:ident)*) => {
        #[allow(non_snake_case)]
        impl<$($name,)* R> Send<($($name,)*), R> for *const c_void {
            fn send(&self, ($($name,)*): ($($name,)*)) -> R {
                let function: unsafe extern "C" fn($($name),*) -> R = unsafe { std::mem::transmute_copy(self) };
                unsafe { function($($name),*) }
            }
        }
    };
}

calls!(A B);
calls!(A B C);
calls!(A B C D);
calls!(A B C D E);
calls!(A B C D E F);
calls!(A B C D E F G);
calls!(A B C D E F G H);
calls!(A B C D E F G H I);
calls!(A B C D E F G H I J);

/// Sends a message: `send!(fake, receiver, "selector:", argument: Type, ... => Result)`.
#[macro_export]
macro_rules! send {
    ($fake:expr, $receiver:expr, $selector:literal $(, $argument:expr => $type:ty)* ; $result:ty) => {{
        // The receiver and the arguments may send messages themselves.
        let call = ($receiver, $fake.selector($selector) $(, $crate::common::same::<$type>($argument))*);
        $crate::common::Send::<($crate::common::Id, $crate::common::Sel $(, $type)*), $result>::send(&$fake.address("objc_msgSend"), call)
    }};
}

impl Fake {
    pub fn open() -> Self {
        Self { library: unsafe { libloading::Library::new(library().unwrap()) }.unwrap() }
    }

    pub fn address(&self, name: &str) -> *const c_void {
        unsafe { *self.library.get::<*const c_void>(name.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}")) }
    }

    pub fn call<R>(&self, name: &str, id: Id) -> R {
        let function: unsafe extern "C" fn(Id) -> R = unsafe { std::mem::transmute_copy(&self.address(name)) };
        unsafe { function(id) }
    }

    pub fn class(&self, name: &str) -> Id {
        let name = CString::new(name).unwrap();
        self.call("objc_getClass", name.as_ptr().cast_mut().cast())
    }

    pub fn selector(&self, name: &str) -> Sel {
        let name = CString::new(name).unwrap();
        self.call("sel_registerName", name.as_ptr().cast_mut().cast())
    }

    pub fn retain(&self, id: Id) -> Id {
        self.call("objc_retain", id)
    }

    pub fn release(&self, id: Id) {
        self.call("objc_release", id)
    }

    /// Runs in a pool of its own.
    pub fn pooled<T>(&self, work: impl FnOnce() -> T) -> T {
        let push: unsafe extern "C" fn() -> Id = unsafe { std::mem::transmute(self.address("objc_autoreleasePoolPush")) };
        let token = unsafe { push() };
        let result = work();
        self.call::<()>("objc_autoreleasePoolPop", token);
        result
    }

    pub fn string(&self, text: &str) -> Id {
        let text = CString::new(text).unwrap();
        send!(self, self.class("NSString"), "stringWithUTF8String:", text.as_ptr() => *const c_char; Id)
    }

    pub fn text(&self, string: Id) -> String {
        let text = send!(self, string, "UTF8String"; *const c_char);
        if text.is_null() { "(nil)".to_string() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() }
    }

    pub fn data(&self, bytes: &[u8]) -> Id {
        send!(self, self.class("NSData"), "dataWithBytes:length:", bytes.as_ptr() => *const u8, bytes.len() => usize; Id)
    }

    pub fn number(&self, value: i32) -> Id {
        send!(self, self.class("NSNumber"), "numberWithInt:", value => i32; Id)
    }

    pub fn array(&self, elements: &[Id]) -> Id {
        send!(self, self.class("NSArray"), "arrayWithObjects:count:", elements.as_ptr() => *const Id, elements.len() => usize; Id)
    }

    pub fn dictionary(&self, entries: &[(Id, Id)]) -> Id {
        let (keys, values): (Vec<Id>, Vec<Id>) = entries.iter().copied().unzip();
        send!(self, self.class("NSDictionary"), "dictionaryWithObjects:forKeys:count:",
            values.as_ptr() => *const Id, keys.as_ptr() => *const Id, keys.len() => usize; Id)
    }

    pub fn get(&self, dictionary: Id, key: &str) -> Id {
        send!(self, dictionary, "objectForKey:", self.string(key) => Id; Id)
    }

    /// The encoding of a method, of the class itself or of its objects.
    pub fn encoding(&self, class: &str, selector: &str, of_class: bool) -> Option<String> {
        type Find = unsafe extern "C" fn(Id, Sel) -> Id;
        let name = if of_class { "class_getClassMethod" } else { "class_getInstanceMethod" };
        let find: Find = unsafe { std::mem::transmute(self.address(name)) };
        let method = unsafe { find(self.class(class), self.selector(selector)) };
        let text: *const c_char = self.call("method_getTypeEncoding", method);
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    pub fn set(&self, settings: Value) {
        control(&library().unwrap(), &aneforge_fake_client::set(settings)).unwrap();
    }

    pub fn counters(&self) -> Value {
        control(&library().unwrap(), &json!({"get": "counters"})).unwrap()
    }

    /// What the frameworks would have written to the system's log.
    pub fn diagnostics(&self) -> Value {
        control(&library().unwrap(), &json!({"get": "diagnostics"})).unwrap()
    }

    /// Violations since the last call.
    pub fn violations(&self) -> Vec<String> {
        let counters = self.counters();
        let texts = counters["violations"].as_array().unwrap();
        texts.iter().map(|text| text.as_str().unwrap().to_string()).collect()
    }

    /// Nothing was used wrongly and nothing lives.
    pub fn assert_clean(&self) {
        let counters = self.counters();
        assert_eq!(counters["violations"], json!([]));
        assert_eq!(counters["live"], json!({}));
        assert_eq!(counters["loaded_programs"], 0);
    }
}

/// What an error says: domain, code, text.
pub fn error_of(fake: &Fake, error: Id) -> (String, i64, String) {
    let domain = fake.text(send!(fake, error, "domain"; Id));
    let code = send!(fake, error, "code"; isize);
    (domain, code as i64, fake.text(send!(fake, error, "localizedDescription"; Id)))
}

pub const NIL: Id = null_mut();
