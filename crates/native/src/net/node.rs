//! A value of a property list that knows where it stands, with checked access.

use super::Fault;
use plist::{Dictionary, Value};

/// A value and the keys that lead to it.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pub(super) place: String,
}

/// A fault with its place.
pub(super) type Placed<T> = Result<T, (String, Fault)>;

/// A dictionary and the keys that lead to it.
#[derive(Clone, Debug)]
pub(super) struct Map<'a> {
    entries: &'a Dictionary,
    pub(super) place: String,
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, place: String::new() }
    }

    pub(super) fn fail<T>(&self, fault: Fault) -> Placed<T> {
        Err((self.place.clone(), fault))
    }

    fn kind<T>(&self, wanted: &'static str) -> Placed<T> {
        let found = match self.value {
            Value::Array(_) => "an array",
            Value::Dictionary(_) => "a dictionary",
            Value::Boolean(_) => "a bool",
            Value::Integer(_) => "an integer",
            Value::Real(_) => "a real number",
            Value::String(_) => "a string",
            _ => "something else",
        };
        self.fail(Fault::Kind { wanted, found: found.to_string() })
    }

    pub(super) fn map(&self) -> Placed<Map<'a>> {
        match self.value {
            Value::Dictionary(entries) => Ok(Map { entries, place: self.place.clone() }),
            _ => self.kind("a dictionary"),
        }
    }

    pub(super) fn array(&self) -> Placed<Vec<Node<'a>>> {
        match self.value {
            Value::Array(values) => Ok(values
                .iter()
                .enumerate()
                .map(|(index, value)| Node { value, place: format!("{}/{index}", self.place) })
                .collect()),
            _ => self.kind("an array"),
        }
    }

    pub(super) fn text(&self) -> Placed<&'a str> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => self.kind("a string"),
        }
    }

    pub(super) fn texts(&self) -> Placed<Vec<&'a str>> {
        self.array()?.iter().map(Node::text).collect()
    }

    pub(super) fn flag(&self) -> Placed<bool> {
        match self.value {
            Value::Boolean(flag) => Ok(*flag),
            _ => self.kind("a bool"),
        }
    }

    pub(super) fn int(&self) -> Placed<i64> {
        match self.value {
            Value::Integer(value) => match value.as_signed() {
                Some(value) if i32::try_from(value).is_ok() => Ok(value),
                _ => self.fail(Fault::Value(format!("{value} is no 32-bit integer"))),
            },
            _ => self.kind("an integer"),
        }
    }

    /// A number; integers count.
    pub(super) fn real(&self) -> Placed<f64> {
        match self.value {
            Value::Real(value) if value.is_finite() => Ok(*value),
            Value::Real(value) => self.fail(Fault::Value(format!("{value} is no finite number"))),
            Value::Integer(_) => Ok(self.int()? as f64),
            _ => self.kind("a number"),
        }
    }

    /// An extent of an axis.
    pub(super) fn extent(&self) -> Placed<usize> {
        match usize::try_from(self.int()?) {
            Ok(extent) if (1..=super::MAX_EXTENT).contains(&extent) => Ok(extent),
            _ => self.fail(Fault::Value(format!("is no extent: expected 1 to {}", super::MAX_EXTENT))),
        }
    }

    /// Checks a value that is always the same.
    pub(super) fn is_int(&self, expected: i64) -> Placed<()> {
        match self.int()? {
            value if value == expected => Ok(()),
            value => self.fail(Fault::Value(format!("is {value}, but only {expected} is known to work"))),
        }
    }

    /// Checks a text that is always the same.
    pub(super) fn is_text(&self, expected: &str) -> Placed<()> {
        match self.text()? {
            text if text == expected => Ok(()),
            text => self.fail(Fault::Wiring(format!("is {text:?}, expected {expected:?}"))),
        }
    }
}

impl<'a> Map<'a> {
    pub(super) fn fail<T>(&self, fault: Fault) -> Placed<T> {
        Err((self.place.clone(), fault))
    }

    /// The value under a key that may be missing.
    pub(super) fn find(&self, key: &str) -> Option<Node<'a>> {
        let place = if self.place.is_empty() { key.to_string() } else { format!("{}/{key}", self.place) };
        self.entries.get(key).map(|value| Node { value, place })
    }

    pub(super) fn get(&self, key: &str) -> Placed<Node<'a>> {
        match self.find(key) {
            Some(node) => Ok(node),
            None => self.fail(Fault::Missing { key: key.to_string() }),
        }
    }

    /// Refuses keys that nothing reads.
    pub(super) fn only(&self, known: &[&str]) -> Placed<()> {
        match self.entries.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => self.fail(Fault::Unknown { key: key.clone(), known: known.join(", ") }),
        }
    }
}
