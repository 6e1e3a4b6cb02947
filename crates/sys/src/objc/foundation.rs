//! Foundation's texts, bytes, numbers and collections, made from Rust values and read back.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::sync::Arc;

use super::methods::methods;
use super::types::{BlockRef, Bool, ClassRef, Id};
use super::{Core, ObjectiveC, Retained};
use crate::block::Owner;
use crate::library::Search;
use crate::{AppleError, SysError};

methods! {
    pub(crate) struct ObjectMethods for "NSObject" {
        alloc: + "alloc" () -> Id;
        is_kind: - "isKindOfClass:" (class: ClassRef) -> Bool;
        mutable_copy: - "mutableCopy" () -> Id;
    }
}
methods! {
    pub(crate) struct TextMethods for "NSString" {
        make: + "stringWithUTF8String:" (text: *const c_char) -> Id;
        bytes: - "UTF8String" () -> *const c_char;
    }
}
methods! {
    pub(crate) struct DataMethods for "NSData" {
        copy: + "dataWithBytes:length:" (bytes: *const c_void, length: u64) -> Id;
        bytes: - "bytes" () -> *const c_void;
        length: - "length" () -> u64;
        @optional {
            borrow: - "initWithBytesNoCopy:length:deallocator:" (bytes: *mut c_void, length: u64, end: BlockRef) -> Id;
        }
    }
}
methods! {
    pub(crate) struct NumberMethods for "NSNumber" {
        integer: + "numberWithLongLong:" (value: i64) -> Id;
        boolean: + "numberWithBool:" (value: Bool) -> Id;
        real: + "numberWithDouble:" (value: f64) -> Id;
        as_integer: - "longLongValue" () -> i64;
        as_real: - "doubleValue" () -> f64;
        kind: - "objCType" () -> *const c_char;
    }
}
methods! {
    pub(crate) struct DictionaryMethods for "NSDictionary" {
        make: + "dictionaryWithObjects:forKeys:count:" (values: *const Id, keys: *const Id, count: u64) -> Id;
        keys: - "allKeys" () -> Id;
        get: - "objectForKey:" (key: Id) -> Id;
    }
}
methods! {
    pub(crate) struct ArrayMethods for "NSArray" {
        make: + "arrayWithObjects:count:" (values: *const Id, count: u64) -> Id;
        count: - "count" () -> u64;
        get: - "objectAtIndex:" (index: u64) -> Id;
    }
}
methods! {
    pub(crate) struct LocationMethods for "NSURL" {
        file: + "fileURLWithPath:isDirectory:" (path: Id, folder: Bool) -> Id;
    }
}
methods! {
    pub(crate) struct IndexSetMethods for "NSIndexSet" {
        count: - "count" () -> u64;
        first: - "firstIndex" () -> u64;
        next: - "indexGreaterThanIndex:" (index: u64) -> u64;
    }
}
methods! {
    pub(crate) struct ErrorMethods for "NSError" {
        domain: - "domain" () -> Id;
        code: - "code" () -> i64;
        text: - "localizedDescription" () -> Id;
        details: - "userInfo" () -> Id;
    }
}

/// The classes that are used.
pub(crate) struct Foundation {
    pub(crate) object: ObjectMethods,
    pub(crate) text: TextMethods,
    pub(crate) data: DataMethods,
    pub(crate) number: NumberMethods,
    pub(crate) dictionary: DictionaryMethods,
    pub(crate) array: ArrayMethods,
    pub(crate) location: LocationMethods,
    pub(crate) index_set: IndexSetMethods,
    pub(crate) error: ErrorMethods,
}

impl Foundation {
    pub(crate) fn load(core: &Core, search: &mut Search<'_>) -> Option<Self> {
        let object = ObjectMethods::load(core, search, true);
        let text = TextMethods::load(core, search, true);
        let data = DataMethods::load(core, search, true);
        let number = NumberMethods::load(core, search, true);
        let dictionary = DictionaryMethods::load(core, search, true);
        let array = ArrayMethods::load(core, search, true);
        let location = LocationMethods::load(core, search, true);
        let index_set = IndexSetMethods::load(core, search, true);
        let error = ErrorMethods::load(core, search, true);
        Some(Self {
            object: object?,
            text: text?,
            data: data?,
            number: number?,
            dictionary: dictionary?,
            array: array?,
            location: location?,
            index_set: index_set?,
            error: error?,
        })
    }
}

/// Bytes as an `NSData`.
#[derive(Clone)]
pub struct Data(pub(crate) Retained);

/// A list of objects as an `NSArray`.
#[derive(Clone)]
pub struct Array(pub(crate) Retained);

/// An `NSDictionary` with texts as keys.
#[derive(Clone)]
pub struct Dictionary(pub(crate) Retained);

/// A value of a [`Dictionary`] that is made here.
#[derive(Clone)]
pub enum Item {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A truth value.
    Boolean(bool),
    /// A fraction.
    Real(f64),
    /// Bytes.
    Data(Data),
    /// A dictionary inside.
    Dictionary(Dictionary),
}

impl ObjectiveC {
    /// A text.
    pub(crate) fn text(self: &Arc<Self>, text: &str) -> Result<Retained, SysError> {
        let text = CString::new(text).map_err(|_| SysError::Text { what: "a text for Objective-C" })?;
        let class = &self.foundation.text;
        let (send, selector) = class.make.ready()?;
        self.with_pool(|| {
            // SAFETY: the text ends in zero and is copied; the result lives in this pool until it is retained.
            unsafe { self.retained(send(class.class.id(), selector, text.as_ptr())) }
        })
        .ok_or(SysError::Nothing { call: class.make.name })
    }

    /// Reads a text.
    ///
    /// # Safety
    /// `text` is nil or an `NSString` that lives.
    pub(crate) unsafe fn read_text(&self, text: Id) -> Result<String, SysError> {
        let method = &self.foundation.text.bytes;
        let (send, selector) = method.ready()?;
        if text.is_nil() {
            return Err(SysError::Nothing { call: method.name });
        }
        self.with_pool(|| {
            // SAFETY: the object is a text that lives, says the caller.
            let bytes = unsafe { send(text, selector) };
            if bytes.is_null() {
                return Err(SysError::Nothing { call: method.name });
            }
            // SAFETY: the bytes end in zero and live as long as this pool; they are copied within it.
            let copied = unsafe { CStr::from_ptr(bytes) }.to_str().map(ToString::to_string);
            copied.map_err(|_| SysError::Text { what: "a text from Objective-C" })
        })
    }

    /// A number.
    pub(crate) fn integer(self: &Arc<Self>, value: i64) -> Result<Retained, SysError> {
        let class = &self.foundation.number;
        let (send, selector) = class.integer.ready()?;
        self.with_pool(|| {
            // SAFETY: a number goes in; the result lives in this pool until it is retained.
            unsafe { self.retained(send(class.class.id(), selector, value)) }
        })
        .ok_or(SysError::Nothing { call: class.integer.name })
    }

    fn boolean(self: &Arc<Self>, value: bool) -> Result<Retained, SysError> {
        let class = &self.foundation.number;
        let (send, selector) = class.boolean.ready()?;
        self.with_pool(|| {
            // SAFETY: as in `integer`.
            unsafe { self.retained(send(class.class.id(), selector, value.into())) }
        })
        .ok_or(SysError::Nothing { call: class.boolean.name })
    }

    fn real(self: &Arc<Self>, value: f64) -> Result<Retained, SysError> {
        let class = &self.foundation.number;
        let (send, selector) = class.real.ready()?;
        self.with_pool(|| {
            // SAFETY: as in `integer`.
            unsafe { self.retained(send(class.class.id(), selector, value)) }
        })
        .ok_or(SysError::Nothing { call: class.real.name })
    }

    /// The address of a folder.
    pub(crate) fn folder(self: &Arc<Self>, path: &Path) -> Result<Retained, SysError> {
        let path = self.text(path.to_str().ok_or(SysError::Text { what: "the path of a folder" })?)?;
        let class = &self.foundation.location;
        let (send, selector) = class.file.ready()?;
        self.with_pool(|| {
            // SAFETY: the path lives during the call; the result lives in this pool until it is retained.
            unsafe { self.retained(send(class.class.id(), selector, path.id(), true.into())) }
        })
        .ok_or(SysError::Nothing { call: class.file.name })
    }

    /// A list of objects.
    pub(crate) fn list(self: &Arc<Self>, objects: &[&Retained]) -> Result<Array, SysError> {
        let class = &self.foundation.array;
        let (send, selector) = class.make.ready()?;
        let ids: Vec<Id> = objects.iter().map(|object| object.id()).collect();
        self.with_pool(|| {
            // SAFETY: `ids` holds this many objects that live during the call; the array retains them.
            unsafe { self.retained(send(class.class.id(), selector, ids.as_ptr(), ids.len() as u64)) }
        })
        .map(Array)
        .ok_or(SysError::Nothing { call: class.make.name })
    }

    /// A dictionary of objects under texts.
    pub(crate) fn table(self: &Arc<Self>, entries: &[(Retained, Retained)]) -> Result<Dictionary, SysError> {
        let class = &self.foundation.dictionary;
        let (send, selector) = class.make.ready()?;
        let keys: Vec<Id> = entries.iter().map(|(key, _)| key.id()).collect();
        let values: Vec<Id> = entries.iter().map(|(_, value)| value.id()).collect();
        self.with_pool(|| {
            // SAFETY: both lists hold this many objects that live during the call; the dictionary copies the keys, which are
            // texts, and retains the values.
            unsafe { self.retained(send(class.class.id(), selector, values.as_ptr(), keys.as_ptr(), keys.len() as u64)) }
        })
        .map(Dictionary)
        .ok_or(SysError::Nothing { call: class.make.name })
    }

    /// Calls a method that reports its failure through an `NSError`.
    pub(crate) fn succeed(self: &Arc<Self>, call: &'static str, send: impl FnOnce(*mut Id) -> Bool) -> Result<(), SysError> {
        self.with_pool(|| {
            let mut error = Id::NIL;
            if send(&raw mut error).is_true() {
                return Ok(());
            }
            // SAFETY: a method that fails writes nil or an error that lives in this pool.
            match unsafe { self.apple_error(error, 0) } {
                Some(error) => Err(SysError::Apple { call, error }),
                None => Err(SysError::Refused { call }),
            }
        })
    }

    /// Reads an `NSError` and those below it.
    ///
    /// # Safety
    /// `error` is nil or an `NSError` that lives.
    unsafe fn apple_error(&self, error: Id, depth: usize) -> Option<AppleError> {
        if error.is_nil() || depth > 8 {
            return None;
        }
        let class = &self.foundation.error;
        let ((domain, domain_selector), (code, code_selector)) = (class.domain.ready().ok()?, class.code.ready().ok()?);
        let ((text, text_selector), (details, details_selector)) = (class.text.ready().ok()?, class.details.ready().ok()?);
        let (get, get_selector) = self.foundation.dictionary.get.ready().ok()?;
        // SAFETY: the error lives and has these methods; their results live in the caller's pool.
        unsafe {
            let read = |object| self.read_text(object).unwrap_or_default();
            let details = details(error, details_selector);
            let underlying = if details.is_nil() { Id::NIL } else { get(details, get_selector, self.key_of_underlying()?) };
            Some(AppleError {
                domain: read(domain(error, domain_selector)),
                code: code(error, code_selector),
                text: read(text(error, text_selector)),
                underlying: self.apple_error(underlying, depth + 1).map(Box::new),
            })
        }
    }

    /// The key under which an error holds the one below it, in the caller's pool.
    fn key_of_underlying(&self) -> Option<Id> {
        let class = &self.foundation.text;
        let (send, selector) = class.make.ready().ok()?;
        // SAFETY: the text ends in zero and is copied.
        let key = unsafe { send(class.class.id(), selector, c"NSUnderlyingError".as_ptr()) };
        (!key.is_nil()).then_some(key)
    }
}

impl Data {
    /// A copy of `bytes`.
    ///
    /// # Errors
    /// [`SysError::Nothing`] where the system has no memory left.
    pub fn copy_of(runtime: &Arc<ObjectiveC>, bytes: &[u8]) -> Result<Self, SysError> {
        let class = &runtime.foundation.data;
        let (send, selector) = class.copy.ready()?;
        runtime
            .with_pool(|| {
                // SAFETY: `bytes` has this length and is copied; the result lives in this pool until it is retained.
                unsafe { runtime.retained(send(class.class.id(), selector, bytes.as_ptr().cast(), bytes.len() as u64)) }
            })
            .map(Self)
            .ok_or(SysError::Nothing { call: class.copy.name })
    }

    /// The bytes of `owner`, not copied. The owner is dropped when the last user of the data, a framework perhaps, lets go.
    ///
    /// # Errors
    /// [`SysError::Nothing`]; [`SysError::Lacking`] where this system lacks the method or blocks.
    pub fn shared<T: AsRef<[u8]> + Send + Sync + 'static>(runtime: &Arc<ObjectiveC>, owner: Arc<T>) -> Result<Self, SysError> {
        const NAME: &str = "-[NSData initWithBytesNoCopy:length:deallocator:]";
        let class = &runtime.foundation.data;
        let borrow = class.borrow.as_ref().ok_or_else(|| SysError::Lacking {
            part: "Foundation",
            os_build: runtime.os_build.clone(),
            missing: vec![crate::Missing::Method(NAME.to_string())],
        })?;
        let (send, selector) = borrow.ready()?;
        let (alloc, alloc_selector) = runtime.foundation.object.alloc.ready()?;
        // The Arc is a box of its own, so the bytes stay where they are when it moves; nothing can change them while it lives.
        let (address, length) = {
            let bytes = (*owner).as_ref();
            (bytes.as_ptr().cast_mut().cast(), bytes.len() as u64)
        };
        let end = runtime.blocks()?.make(Owner(Box::new(owner)))?;
        runtime
            .with_pool(|| {
                // SAFETY: `alloc` gives an object that `init` takes over and returns owned. The bytes live until the block goes,
                // and NSData, which is immutable, only reads them.
                unsafe {
                    let empty = alloc(class.class.id(), alloc_selector);
                    if empty.is_nil() {
                        return None;
                    }
                    runtime.owned(send(empty, selector, address, length, BlockRef(end.as_ptr())))
                }
            })
            .map(Self)
            .ok_or(SysError::Nothing { call: NAME })
    }

    /// Lends the bytes.
    ///
    /// # Errors
    /// [`SysError::Encoding`] in debug builds.
    pub fn with<T>(&self, work: impl FnOnce(&[u8]) -> T) -> Result<T, SysError> {
        let class = &self.0.runtime.foundation.data;
        let ((bytes, bytes_selector), (length, length_selector)) = (class.bytes.ready()?, class.length.ready()?);
        // SAFETY: the data lives during this call, is immutable, and has `length` bytes there.
        let bytes = unsafe {
            let (address, length) = (bytes(self.0.id(), bytes_selector), length(self.0.id(), length_selector));
            // Empty data may have no address.
            if address.is_null() { &[] } else { std::slice::from_raw_parts(address.cast::<u8>(), length as usize) }
        };
        Ok(work(bytes))
    }
}

impl Dictionary {
    /// A dictionary of these entries.
    ///
    /// # Errors
    /// [`SysError::Text`] for a key or text with a zero byte.
    pub fn new(runtime: &Arc<ObjectiveC>, entries: &[(&str, Item)]) -> Result<Self, SysError> {
        let entries: Vec<(Retained, Retained)> =
            entries.iter().map(|(key, item)| Ok((runtime.text(key)?, item.object(runtime)?))).collect::<Result<_, SysError>>()?;
        runtime.table(&entries)
    }

    /// Reads it back.
    ///
    /// # Errors
    /// [`SysError::Value`] for what is no property list.
    pub fn read(&self) -> Result<super::Value, SysError> {
        super::Value::read(&self.0)
    }
}

impl Item {
    fn object(&self, runtime: &Arc<ObjectiveC>) -> Result<Retained, SysError> {
        match self {
            Self::Text(text) => runtime.text(text),
            Self::Integer(value) => runtime.integer(*value),
            Self::Boolean(value) => runtime.boolean(*value),
            Self::Real(value) => runtime.real(*value),
            Self::Data(data) => Ok(data.0.clone()),
            Self::Dictionary(dictionary) => Ok(dictionary.0.clone()),
        }
    }
}
