//! What an operator sees of one use of it: types, constants and, when its meaning is asked for, values.

use super::{Default, GENERAL, MilOp};
use crate::{Array, DType, TensorType};

/// One value at a port.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its type.
    pub ty: TensorType,
    /// Whether it is known when the program is compiled. A large constant may be known without its values being loaded.
    pub constant: bool,
    /// Its values: present for small constants, for all other tensors only while a meaning is computed.
    pub value: Option<Array>,
    /// The text of a string constant.
    pub text: Option<String>,
}

/// All arguments of one use of an operator, in the order of its ports.
#[derive(Debug)]
pub struct Arguments<'a> {
    /// The operator.
    pub op: &'static MilOp,
    /// Values per port: none where it was left out, several only at a variadic port.
    pub ports: &'a [Vec<Argument>],
}

/// Why a use of an operator is illegal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// A labelled rule is broken.
    #[error("{op} breaks rule {label}: {rule}; got {arguments}")]
    Constraint {
        /// Operator keyword.
        op: &'static str,
        /// The rule's label.
        label: &'static str,
        /// The rule.
        rule: &'static str,
        /// Ports with their types and values.
        arguments: String,
    },
    /// A port that must be there is not.
    #[error("{op} needs an argument {port:?}; got {arguments}")]
    Missing {
        /// Operator keyword.
        op: &'static str,
        /// The port.
        port: &'static str,
        /// Ports with their types and values.
        arguments: String,
    },
    /// A port got something else than it takes.
    #[error("{op}: argument {port:?} {problem}")]
    Port {
        /// Operator keyword.
        op: &'static str,
        /// The port.
        port: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// The operator has no such port.
    #[error("{op} has no argument {port:?}; it takes {known}")]
    UnknownPort {
        /// Operator keyword.
        op: &'static str,
        /// What was given.
        port: String,
        /// What it takes.
        known: String,
    },
}

impl<'a> Arguments<'a> {
    /// Checks ports (presence, dtype, constness) and the labelled rules, in that order.
    ///
    /// # Errors
    /// The first [`OpError`] found.
    pub fn checked(op: &'static MilOp, ports: &'a [Vec<Argument>]) -> Result<Self, OpError> {
        let arguments = Self { op, ports };
        for (spec, given) in op.ports.iter().zip(ports) {
            if given.is_empty() && spec.default == Default::Required {
                return Err(OpError::Missing { op: op.name, port: spec.name, arguments: arguments.describe() });
            }
            let problem = given.iter().find_map(|argument| {
                if !spec.dtypes.contains(&argument.ty.dtype) {
                    let known: Vec<_> = spec.dtypes.iter().map(|dtype| dtype.keyword()).collect();
                    return Some(format!("is {} but takes {}", argument.ty, known.join(", ")));
                }
                let known = argument.constant || !spec.kind.is_attribute();
                (!known).then(|| "must be known when the program is compiled".to_string())
            });
            if let Some(problem) = problem {
                return Err(OpError::Port { op: op.name, port: spec.name.to_string(), problem });
            }
        }
        match GENERAL.iter().chain(op.constraints).find(|constraint| !(constraint.holds)(&arguments)) {
            None => Ok(arguments),
            Some(broken) => {
                Err(OpError::Constraint { op: op.name, label: broken.label, rule: broken.rule, arguments: arguments.describe() })
            }
        }
    }

    /// All values at a port; empty where it was left out or does not exist.
    pub fn all(&self, port: &str) -> &'a [Argument] {
        self.op.port(port).and_then(|index| self.ports.get(index)).map_or(&[], Vec::as_slice)
    }

    /// The value at a port.
    pub fn get(&self, port: &str) -> Option<&'a Argument> {
        self.all(port).first()
    }

    /// Whether something stands at a port.
    pub fn has(&self, port: &str) -> bool {
        self.get(port).is_some()
    }

    /// The shape at a port; empty where nothing stands there.
    pub fn shape(&self, port: &str) -> &'a [usize] {
        self.get(port).map_or(&[], |argument| &argument.ty.shape)
    }

    /// The type at a port.
    ///
    /// # Errors
    /// [`OpError::Missing`].
    pub fn ty(&self, port: &'static str) -> Result<&'a TensorType, OpError> {
        self.get(port).map(|argument| &argument.ty).ok_or_else(|| self.missing(port))
    }

    /// The values at a port.
    ///
    /// # Errors
    /// [`OpError::Missing`] where they are not known.
    pub fn array(&self, port: &'static str) -> Result<&'a Array, OpError> {
        self.get(port).and_then(|argument| argument.value.as_ref()).ok_or_else(|| self.missing(port))
    }

    /// A scalar number: what stands there, else the port's default.
    pub fn number(&self, port: &str) -> Option<f64> {
        match self.get(port) {
            Some(argument) => argument.value.as_ref().and_then(|array| array.data.first().copied()),
            None => match self.default(port) {
                Default::Int(value) => Some(value as f64),
                Default::Float(value) => Some(value),
                Default::Flag(value) => Some(f64::from(u8::from(value))),
                _ => None,
            },
        }
    }

    /// An integer: what stands there, else the port's default.
    pub fn int(&self, port: &str) -> Option<i64> {
        self.number(port).filter(|value| value.fract() == 0.0).map(|value| value as i64)
    }

    /// A flag: what stands there, else the port's default, else false.
    pub fn flag(&self, port: &str) -> bool {
        self.number(port).is_some_and(|value| value != 0.0)
    }

    /// An integer vector: what stands there, else the port's default.
    pub fn ints(&self, port: &str) -> Option<Vec<i64>> {
        match self.get(port) {
            Some(argument) => Some(argument.value.as_ref()?.data.iter().map(|&value| value as i64).collect()),
            None => match self.default(port) {
                Default::Ints(values) => Some(values.to_vec()),
                _ => None,
            },
        }
    }

    /// A string: what stands there, else the port's default.
    pub fn text(&self, port: &str) -> Option<&'a str> {
        match self.get(port) {
            Some(argument) => argument.text.as_deref(),
            None => match self.default(port) {
                Default::Text(text) => Some(text),
                _ => None,
            },
        }
    }

    /// Resolves an axis that may count from the end; `None` where it is out of range.
    pub fn axis(&self, axis: i64, rank: usize) -> Option<usize> {
        let resolved = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(resolved).ok().filter(|&axis| axis < rank)
    }

    /// Ports with their types, and the values of small constants.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        for (spec, given) in self.op.ports.iter().zip(self.ports) {
            for argument in given {
                let shown = match (&argument.text, &argument.value) {
                    (Some(text), _) => format!("{text:?}"),
                    (None, Some(array)) if spec.kind.is_attribute() && array.data.len() <= 8 => format!("{:?}", array.data),
                    _ => argument.ty.to_string(),
                };
                parts.push(format!("{} = {shown}", spec.name));
            }
        }
        parts.join(", ")
    }

    /// The error for a port whose value is needed and not there.
    pub fn missing(&self, port: &'static str) -> OpError {
        OpError::Missing { op: self.op.name, port, arguments: self.describe() }
    }

    fn default(&self, port: &str) -> Default {
        self.op.port(port).map_or(Default::Absent, |index| self.op.ports[index].default)
    }
}

impl Argument {
    /// An argument of which only the type is known.
    pub fn typed(ty: TensorType) -> Self {
        Self { ty, constant: false, value: None, text: None }
    }

    /// A large constant of which only the type is loaded.
    pub fn known(ty: TensorType) -> Self {
        Self { ty, constant: true, value: None, text: None }
    }

    /// A constant with its values, or any tensor while a meaning is computed.
    pub fn valued(value: Array) -> Self {
        Self { ty: value.ty.clone(), constant: true, value: Some(value), text: None }
    }

    /// A string argument.
    pub fn string(text: impl Into<String>) -> Self {
        Self { ty: TensorType::new(DType::String, []), constant: true, value: None, text: Some(text.into()) }
    }
}
