//! Property lists from Objective-C as Rust values.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Arc;

use super::types::{ClassRef, Id};
use super::{ObjectiveC, Retained};
use crate::SysError;

/// A value of a property list, as `modelAttributes` is one.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number or truth value.
    Integer(i64),
    /// A fraction.
    Real(f64),
    /// Bytes.
    Data(Vec<u8>),
    /// A list.
    List(Vec<Value>),
    /// A dictionary; keys that are numbers are written out.
    Dictionary(BTreeMap<String, Value>),
    /// A set of indices, ascending.
    Indices(Vec<u64>),
    /// An object of another class, by the class's name.
    Other(String),
}

/// Property lists nest a few levels; what nests deeper is no property list.
const DEPTH: usize = 32;

impl Value {
    /// The entry of a dictionary.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Dictionary(entries) => entries.get(key),
            _ => None,
        }
    }

    /// The elements of a list; none where it is no list.
    pub fn list(&self) -> &[Value] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }

    /// The text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// Reads an object.
    pub(crate) fn read(object: &Retained) -> Result<Self, SysError> {
        object.runtime.with_pool(|| Reader { runtime: &object.runtime }.value(object, 0))
    }
}

struct Reader<'a> {
    runtime: &'a Arc<ObjectiveC>,
}

impl Reader<'_> {
    fn value(&self, object: &Retained, depth: usize) -> Result<Value, SysError> {
        if depth > DEPTH {
            let found = "deeper".to_string();
            return Err(SysError::Value { what: "a property list", expected: "at most 32 levels", found });
        }
        let foundation = &self.runtime.foundation;
        let id = object.id();
        if self.is(object, foundation.text.class)? {
            // SAFETY: the object lives and is a text, as its class says.
            return Ok(Value::Text(unsafe { self.runtime.read_text(id) }?));
        }
        if self.is(object, foundation.number.class)? {
            return self.number(id);
        }
        if self.is(object, foundation.data.class)? {
            return Ok(Value::Data(super::Data(object.clone()).with(<[u8]>::to_vec)?));
        }
        if self.is(object, foundation.array.class)? {
            let elements = self.elements(id)?;
            return Ok(Value::List(elements.iter().map(|element| self.value(element, depth + 1)).collect::<Result<_, _>>()?));
        }
        if self.is(object, foundation.dictionary.class)? {
            return self.dictionary(id, depth);
        }
        if self.is(object, foundation.index_set.class)? {
            return self.indices(id);
        }
        Ok(Value::Other(self.runtime.class_name(object)))
    }

    fn is(&self, object: &Retained, class: ClassRef) -> Result<bool, SysError> {
        let (send, selector) = self.runtime.foundation.object.is_kind.ready()?;
        // SAFETY: every object answers `isKindOfClass:`.
        Ok(unsafe { send(object.id(), selector, class) }.is_true())
    }

    fn number(&self, id: Id) -> Result<Value, SysError> {
        let class = &self.runtime.foundation.number;
        let (kind, kind_selector) = class.kind.ready()?;
        let (integer, integer_selector) = class.as_integer.ready()?;
        let (real, real_selector) = class.as_real.ready()?;
        // SAFETY: the object is a number; its type is a text that ends in zero and stays.
        unsafe {
            let kind = kind(id, kind_selector);
            let is_real = !kind.is_null() && matches!(CStr::from_ptr(kind).to_bytes(), b"f" | b"d");
            Ok(if is_real { Value::Real(real(id, real_selector)) } else { Value::Integer(integer(id, integer_selector)) })
        }
    }

    /// The elements of an array.
    fn elements(&self, id: Id) -> Result<Vec<Retained>, SysError> {
        let class = &self.runtime.foundation.array;
        let ((count, count_selector), (get, get_selector)) = (class.count.ready()?, class.get.ready()?);
        // SAFETY: the object is an array; indices are below its count, and each element is retained at once.
        unsafe {
            let count = count(id, count_selector);
            Ok((0..count).filter_map(|index| self.runtime.retained(get(id, get_selector, index))).collect())
        }
    }

    fn dictionary(&self, id: Id, depth: usize) -> Result<Value, SysError> {
        let class = &self.runtime.foundation.dictionary;
        let ((keys, keys_selector), (get, get_selector)) = (class.keys.ready()?, class.get.ready()?);
        // SAFETY: the object is a dictionary; its keys live in the pool of `read`.
        let keys = unsafe { keys(id, keys_selector) };
        if keys.is_nil() {
            return Ok(Value::Dictionary(BTreeMap::new()));
        }
        let mut entries = BTreeMap::new();
        for key in self.elements(keys)? {
            let name = match self.value(&key, depth + 1)? {
                Value::Text(text) => text,
                Value::Integer(number) => number.to_string(),
                other => return Err(SysError::Value { what: "a key", expected: "text", found: format!("{other:?}") }),
            };
            // SAFETY: the key is one of the dictionary's; its value lives as long as the dictionary.
            if let Some(value) = unsafe { self.runtime.retained(get(id, get_selector, key.id())) } {
                entries.insert(name, self.value(&value, depth + 1)?);
            }
        }
        Ok(Value::Dictionary(entries))
    }

    fn indices(&self, id: Id) -> Result<Value, SysError> {
        let class = &self.runtime.foundation.index_set;
        let ((count, count_selector), (first, first_selector)) = (class.count.ready()?, class.first.ready()?);
        let (next, next_selector) = class.next.ready()?;
        // SAFETY: the object is a set of indices; it is asked for as many as it has.
        unsafe {
            let count = count(id, count_selector);
            let first = std::iter::once_with(|| first(id, first_selector));
            let mut indices: Vec<u64> = first.take(count as usize).collect();
            while (indices.len() as u64) < count {
                match indices.last() {
                    Some(last) => indices.push(next(id, next_selector, *last)),
                    None => break,
                }
            }
            Ok(Value::Indices(indices))
        }
    }
}

impl ObjectiveC {
    /// The elements of an `NSArray`.
    pub(crate) fn elements(self: &Arc<Self>, array: &Retained) -> Result<Vec<Retained>, SysError> {
        self.with_pool(|| Reader { runtime: self }.elements(array.id()))
    }

    /// The value under a text key of an `NSDictionary`.
    pub(crate) fn entry(self: &Arc<Self>, dictionary: &Retained, key: &str) -> Result<Option<Retained>, SysError> {
        let key = self.text(key)?;
        let (get, selector) = self.foundation.dictionary.get.ready()?;
        // SAFETY: the callers have dictionaries; the value lives as long as the dictionary.
        Ok(unsafe { self.retained(get(dictionary.id(), selector, key.id())) })
    }
}
