//! One use of a graph operator as its rules and its lowering see it.

use super::{GraphOp, InputKind};
use crate::{Attribute, DType, GraphError, TensorType};
use aneforge_mil::ValueId;
use std::fmt::Write;

/// Inputs and attributes of one use of an operator.
#[derive(Debug)]
pub struct Site<'a> {
    /// The operator.
    pub op: &'static GraphOp,
    /// Types per input of the record.
    pub types: &'a [Vec<TensorType>],
    /// Attributes in the order of the record, defaults filled in.
    pub attributes: &'a [Attribute],
    /// MIL values per input; empty while rules are checked.
    pub values: &'a [Vec<ValueId>],
}

impl<'a> Site<'a> {
    /// Types at an input.
    pub fn all(&self, input: &str) -> &'a [TensorType] {
        self.op.input(input).and_then(|index| self.types.get(index)).map_or(&[], Vec::as_slice)
    }

    /// Whether something stands at an input.
    pub fn has(&self, input: &str) -> bool {
        !self.all(input).is_empty()
    }

    /// Shape at an input; empty where nothing stands there.
    pub fn shape(&self, input: &str) -> &'a [usize] {
        self.all(input).first().map_or(&[], |ty| &ty.shape)
    }

    /// Rank at an input.
    pub fn rank(&self, input: &str) -> usize {
        self.shape(input).len()
    }

    /// Element type at an input; fp16 where nothing stands there.
    pub fn dtype(&self, input: &str) -> DType {
        self.all(input).first().map_or(DType::Fp16, |ty| ty.dtype)
    }

    /// The attribute of that name.
    pub fn attribute(&self, name: &str) -> &'a Attribute {
        self.op.attribute(name).and_then(|index| self.attributes.get(index)).unwrap_or(&Attribute::Absent)
    }

    /// An integer attribute; 0 where it is absent.
    pub fn int(&self, name: &str) -> i64 {
        match self.attribute(name) {
            Attribute::Int(value) => *value,
            _ => 0,
        }
    }

    /// An integer attribute as a size; `None` where it is absent or negative.
    pub fn size(&self, name: &str) -> Option<usize> {
        match self.attribute(name) {
            Attribute::Int(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }

    /// A float attribute; `None` where it is absent.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.attribute(name) {
            Attribute::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// A switch; false where it is absent.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.attribute(name), Attribute::Flag(true))
    }

    /// A word; empty where it is absent.
    pub fn text(&self, name: &str) -> &'a str {
        match self.attribute(name) {
            Attribute::Text(text) => text,
            _ => "",
        }
    }

    /// Integers; empty where they are absent.
    pub fn ints(&self, name: &str) -> &'a [i64] {
        match self.attribute(name) {
            Attribute::Ints(values) => values,
            _ => &[],
        }
    }

    /// An axis attribute that may count from the end; `None` where it is out of range.
    pub fn axis(&self, name: &str, rank: usize) -> Option<usize> {
        resolve_axis(self.int(name), rank)
    }

    /// Axes that may count from the end; `None` where one is out of range or stands there twice.
    pub fn axes(&self, name: &str, rank: usize) -> Option<Vec<usize>> {
        let mut axes = Vec::new();
        for &axis in self.ints(name) {
            let axis = resolve_axis(axis, rank)?;
            if axes.contains(&axis) {
                return None;
            }
            axes.push(axis);
        }
        Some(axes)
    }

    /// The MIL value at an input.
    ///
    /// # Errors
    /// [`GraphError::Input`] where nothing stands there.
    pub fn value(&self, input: &str) -> Result<ValueId, GraphError> {
        self.values_at(input).first().copied().ok_or_else(|| GraphError::Input {
            op: self.op.name,
            input: input.to_string(),
            problem: "is missing".to_string(),
        })
    }

    /// All MIL values at an input.
    pub fn values_at(&self, input: &str) -> &'a [ValueId] {
        self.op.input(input).and_then(|index| self.values.get(index)).map_or(&[], Vec::as_slice)
    }

    /// Inputs with their types and attributes with their values, for error messages.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (spec, types) in self.op.inputs.iter().zip(self.types) {
            for (index, ty) in types.iter().enumerate() {
                let separator = if text.is_empty() { "" } else { ", " };
                let _ = match spec.kind {
                    InputKind::Variadic => write!(text, "{separator}{}[{index}] = {ty}", spec.name),
                    _ => write!(text, "{separator}{} = {ty}", spec.name),
                };
            }
        }
        for (spec, value) in self.op.attributes.iter().zip(self.attributes) {
            if *value != Attribute::Absent {
                let separator = if text.is_empty() { "" } else { ", " };
                let _ = write!(text, "{separator}{} = {value}", spec.name);
            }
        }
        text
    }
}

/// Resolves an axis that may count from the end.
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> Option<usize> {
    let resolved = if axis < 0 { axis.checked_add(i64::try_from(rank).ok()?)? } else { axis };
    usize::try_from(resolved).ok().filter(|&axis| axis < rank)
}
