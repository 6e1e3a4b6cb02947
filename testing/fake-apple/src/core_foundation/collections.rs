//! Dictionaries, arrays and numbers.

use crate::foundation::{Array, Dictionary, Number, array, number_of};
use crate::objc::{Id, Strong};
use std::ffi::c_void;

/// A dictionary; the caller releases it.
///
/// # Safety
/// `keys` and `values` are good for `count` objects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CFDictionaryCreate(
    _allocator: Id,
    keys: *const Id,
    values: *const Id,
    count: isize,
    _key_callbacks: *const c_void,
    _value_callbacks: *const c_void,
) -> Id {
    let made = Dictionary::default();
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's promise.
        let (key, value) = unsafe { (keys.add(index).read(), values.add(index).read()) };
        made.set(key, value);
    }
    Id::make("NSDictionary", made).into_id()
}

/// A dictionary that can be changed; the caller releases it.
#[unsafe(no_mangle)]
pub extern "C" fn CFDictionaryCreateMutable(_allocator: Id, _capacity: isize, _keys: *const c_void, _values: *const c_void) -> Id {
    Id::make("NSMutableDictionary", Dictionary::default()).into_id()
}

/// A copy that can be changed; the caller releases it.
#[unsafe(no_mangle)]
pub extern "C" fn CFDictionaryCreateMutableCopy(_allocator: Id, _capacity: isize, other: Id) -> Id {
    let made = Dictionary::default();
    for (key, value) in other.body::<Dictionary>().map(Dictionary::copy).unwrap_or_default() {
        made.set(key.id(), value.id());
    }
    Id::make("NSMutableDictionary", made).into_id()
}

/// Puts a value under a key.
#[unsafe(no_mangle)]
pub extern "C" fn CFDictionarySetValue(dictionary: Id, key: Id, value: Id) {
    if let Some(body) = dictionary.body::<Dictionary>() {
        body.set(key, value);
    }
}

/// Puts a value under a key that has none.
#[unsafe(no_mangle)]
pub extern "C" fn CFDictionaryAddValue(dictionary: Id, key: Id, value: Id) {
    if let Some(body) = dictionary.body::<Dictionary>()
        && body.get(key).is_nil()
    {
        body.set(key, value);
    }
}

/// The value under a key, not kept for the caller; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn CFDictionaryGetValue(dictionary: Id, key: Id) -> Id {
    dictionary.body::<Dictionary>().map_or(Id::NIL, |body| body.get(key))
}

/// Entries of a dictionary.
#[unsafe(no_mangle)]
pub extern "C" fn CFDictionaryGetCount(dictionary: Id) -> isize {
    let count = dictionary.body::<Dictionary>().map_or(0, |body| body.copy().len());
    isize::try_from(count).unwrap_or(isize::MAX)
}

/// All keys and values, each written where the pointer is not null.
///
/// # Safety
/// `keys` and `values` are null or good for as many objects as the dictionary has entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CFDictionaryGetKeysAndValues(dictionary: Id, keys: *mut Id, values: *mut Id) {
    let entries = dictionary.body::<Dictionary>().map(Dictionary::copy).unwrap_or_default();
    for (index, (key, value)) in entries.iter().enumerate() {
        if !keys.is_null() {
            // SAFETY: the caller's promise.
            unsafe { keys.add(index).write(key.id()) };
        }
        if !values.is_null() {
            // SAFETY: the caller's promise.
            unsafe { values.add(index).write(value.id()) };
        }
    }
}

/// An array; the caller releases it.
///
/// # Safety
/// `values` is good for `count` objects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CFArrayCreate(_allocator: Id, values: *const Id, count: isize, _callbacks: *const c_void) -> Id {
    // SAFETY: the caller's promise.
    let kept = (0..usize::try_from(count).unwrap_or(0)).map(|index| Strong::keep(unsafe { values.add(index).read() }));
    array(kept.collect()).into_id()
}

/// Elements of an array.
#[unsafe(no_mangle)]
pub extern "C" fn CFArrayGetCount(array: Id) -> isize {
    let count = array.body::<Array>().map_or(0, |body| body.copy().len());
    isize::try_from(count).unwrap_or(isize::MAX)
}

/// An element, not kept for the caller.
#[unsafe(no_mangle)]
pub extern "C" fn CFArrayGetValueAtIndex(array: Id, index: isize) -> Id {
    let elements = array.body::<Array>().map(Array::copy).unwrap_or_default();
    let found = usize::try_from(index).ok().and_then(|index| elements.get(index).map(Strong::id));
    if found.is_none() {
        crate::counters::violation(format!("CFArrayGetValueAtIndex {index} of an array of {}", elements.len()));
    }
    found.unwrap_or(Id::NIL)
}

/// A number; the caller releases it.
///
/// # Safety
/// `value` is of the type that `kind` (a `CFNumberType`) says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CFNumberCreate(_allocator: Id, kind: isize, value: *const c_void) -> Id {
    if value.is_null() {
        return Id::NIL;
    }
    // SAFETY: the caller's promise, for each kind its type.
    let body = unsafe {
        match kind {
            1 | 7 => Number::Integer(value.cast::<i8>().read().into()),
            2 | 8 => Number::Integer(value.cast::<i16>().read().into()),
            3 | 9 => Number::Integer(value.cast::<i32>().read().into()),
            4 | 10 | 11 | 14 => Number::Integer(value.cast::<i64>().read()),
            5 | 12 => Number::Real(value.cast::<f32>().read().into()),
            6 | 13 => Number::Real(value.cast::<f64>().read()),
            _ => return Id::NIL,
        }
    };
    Id::make("NSNumber", body).into_id()
}

/// Writes the value of a number as the type that `kind` says; 1 if nothing was lost.
///
/// # Safety
/// `value` is good for that type.
#[unsafe(no_mangle)]
#[allow(clippy::cast_possible_truncation)]
pub unsafe extern "C" fn CFNumberGetValue(number: Id, kind: isize, value: *mut c_void) -> u8 {
    let Some(number) = number_of(number) else { return 0 };
    let whole = number.signed();
    // SAFETY: the caller's promise, for each kind its type.
    let lossless = unsafe {
        match kind {
            1 | 7 => {
                value.cast::<i8>().write(whole as i8);
                i8::try_from(whole).is_ok()
            }
            2 | 8 => {
                value.cast::<i16>().write(whole as i16);
                i16::try_from(whole).is_ok()
            }
            3 | 9 => {
                value.cast::<i32>().write(whole as i32);
                i32::try_from(whole).is_ok()
            }
            4 | 10 | 11 | 14 => {
                value.cast::<i64>().write(whole);
                true
            }
            5 | 12 => {
                value.cast::<f32>().write(number.real() as f32);
                true
            }
            6 | 13 => {
                value.cast::<f64>().write(number.real());
                true
            }
            _ => false,
        }
    };
    lossless.into()
}
