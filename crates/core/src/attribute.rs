//! Attributes: the compile-time settings of a graph operator.

use aneforge_mil::op::Default;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The value of an attribute.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(untagged)]
pub enum Attribute {
    /// Left out where that has a meaning of its own.
    Absent,
    /// An integer.
    Int(i64),
    /// A number; rounded to the operator's element type when it is lowered.
    Float(f64),
    /// A switch.
    Flag(bool),
    /// A word.
    Text(Cow<'static, str>),
    /// Integers.
    Ints(Cow<'static, [i64]>),
}

/// What kind of value an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// An integer.
    Int,
    /// A number; integers are accepted.
    Float,
    /// A switch.
    Flag,
    /// One of these words; anything where the list is empty.
    Text(&'static [&'static str]),
    /// Integers.
    Ints,
}

/// One attribute of an operator, by MIL's own keyword where MIL has one.
#[derive(Debug)]
pub struct AttributeSpec {
    /// Keyword.
    pub name: &'static str,
    /// What it takes.
    pub kind: AttributeKind,
    /// What holds where it is left out.
    pub default: Default,
}

impl PartialEq for Attribute {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::Int(a), Self::Int(b)) => a == b,
            // Bits, so that equal attributes hash equally and the zeros stay apart.
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Flag(a), Self::Flag(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Ints(a), Self::Ints(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Attribute {}

impl Hash for Attribute {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Absent => {}
            Self::Int(value) => value.hash(state),
            Self::Float(value) => value.to_bits().hash(state),
            Self::Flag(value) => value.hash(state),
            Self::Text(value) => value.hash(state),
            Self::Ints(value) => value.hash(state),
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("none"),
            Self::Int(value) => write!(f, "{value}"),
            // `{:?}` is the shortest text that reads back as the same f64, and always looks like a float.
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Flag(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::Ints(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

impl AttributeSpec {
    /// Converts a value to what the attribute takes, or says what it takes.
    pub(crate) fn accept(&self, value: Attribute) -> Result<Attribute, String> {
        let wanted = match (self.kind, &value) {
            (_, Attribute::Absent) if self.default == Default::Absent => return Ok(value),
            (AttributeKind::Int, Attribute::Int(_))
            | (AttributeKind::Float, Attribute::Float(_))
            | (AttributeKind::Flag, Attribute::Flag(_))
            | (AttributeKind::Ints, Attribute::Ints(_)) => return Ok(value),
            (AttributeKind::Float, Attribute::Int(value)) => return Ok(Attribute::Float(*value as f64)),
            (AttributeKind::Text(words), Attribute::Text(word)) => {
                if words.is_empty() || words.contains(&word.as_ref()) {
                    return Ok(value);
                }
                format!("one of {}", words.join(", "))
            }
            (AttributeKind::Int, _) => "an integer".to_string(),
            (AttributeKind::Float, _) => "a number".to_string(),
            (AttributeKind::Flag, _) => "true or false".to_string(),
            (AttributeKind::Text(words), _) => format!("one of {}", words.join(", ")),
            (AttributeKind::Ints, _) => "a list of integers".to_string(),
        };
        Err(format!("takes {wanted}, got {value}"))
    }
}

impl From<Default> for Attribute {
    /// The value of a default; a required attribute has none and reads as absent.
    fn from(value: Default) -> Self {
        match value {
            Default::Required | Default::Absent => Self::Absent,
            Default::Int(value) => Self::Int(value),
            Default::Float(value) => Self::Float(value),
            Default::Flag(value) => Self::Flag(value),
            Default::Text(text) => Self::Text(Cow::Borrowed(text)),
            Default::Ints(values) => Self::Ints(Cow::Borrowed(values)),
        }
    }
}

impl From<i64> for Attribute {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Attribute {
    fn from(value: i32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<usize> for Attribute {
    fn from(value: usize) -> Self {
        // A value past i64 is out of every attribute's range; the clamped value fails the same rules.
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Attribute {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for Attribute {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<&str> for Attribute {
    fn from(value: &str) -> Self {
        Self::Text(Cow::Owned(value.to_string()))
    }
}

impl From<Vec<i64>> for Attribute {
    fn from(values: Vec<i64>) -> Self {
        Self::Ints(Cow::Owned(values))
    }
}

impl From<&[i64]> for Attribute {
    fn from(values: &[i64]) -> Self {
        Self::Ints(Cow::Owned(values.to_vec()))
    }
}

impl From<&[usize]> for Attribute {
    fn from(values: &[usize]) -> Self {
        Self::Ints(values.iter().map(|&value| i64::try_from(value).unwrap_or(i64::MAX)).collect())
    }
}
