//! Adds checked operations to a [`Body`]: what lowerings and passes write programs with.

use crate::op::{MilOp, OpError, OpTable};
use crate::{Body, Constant, DType, Operand, TensorType, ValueId, Weight};
use std::collections::{HashMap, HashSet};

/// What is given for a port.
#[derive(Clone, Debug)]
pub enum Given {
    /// A value.
    Value(ValueId),
    /// Several values, for a variadic port.
    Values(Vec<ValueId>),
    /// An `int32` scalar.
    Int(i64),
    /// An `int32` vector.
    Ints(Vec<i64>),
    /// A float scalar of the port's first float type; rounded to it, ties to even.
    Float(f64),
    /// A bool.
    Flag(bool),
    /// A string.
    Text(String),
}

/// Writes operations into a body; equal small constants are written once.
#[derive(Debug)]
pub struct Builder {
    body: Body,
    table: OpTable,
    constants: HashMap<ConstantKey, ValueId>,
    names: HashSet<String>,
    counters: HashMap<String, usize>,
}

type ConstantKey = (TensorType, Vec<u64>, Option<String>);

impl Builder {
    /// A builder of an empty body with the operators of this crate.
    pub fn new(name: impl Into<String>) -> Self {
        Self::extending(Body { name: name.into(), ..Body::default() }, crate::op::builtin().clone())
    }

    /// A builder that goes on with `body`, with operators of `table`.
    pub fn extending(body: Body, table: OpTable) -> Self {
        let names = body.values.iter().map(|value| value.name.clone()).collect();
        Self { body, table, constants: HashMap::new(), names, counters: HashMap::new() }
    }

    /// The body so far.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The body, for results to be named.
    pub fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }

    /// The finished body.
    pub fn finish(self) -> Body {
        self.body
    }

    /// The operators at hand.
    pub fn table(&self) -> &OpTable {
        &self.table
    }

    /// The type of a value.
    pub fn ty(&self, id: ValueId) -> &TensorType {
        self.body.ty(id)
    }

    /// Adds a function input.
    pub fn input(&mut self, name: &str, ty: TensorType) -> ValueId {
        let name = self.fresh(name);
        self.body.add_input(name, ty)
    }

    /// A constant tensor from a weight.
    pub fn weight(&mut self, name: &str, weight: Weight) -> ValueId {
        let ty = weight.ty().clone();
        let name = self.fresh(name);
        self.body.add_constant(name, ty, Constant::Weight(weight))
    }

    /// A small constant tensor; floats are rounded to `ty`, ties to even. Equal constants are shared.
    pub fn values(&mut self, ty: TensorType, values: Vec<f64>) -> ValueId {
        let values = crate::Array { ty: ty.clone(), data: values }.rounded().data;
        let key = (ty.clone(), values.iter().map(|value| value.to_bits()).collect(), None);
        if let Some(&id) = self.constants.get(&key) {
            return id;
        }
        let name = self.fresh("c");
        let id = self.body.add_constant(name, ty, Constant::Values(values));
        self.constants.insert(key, id);
        id
    }

    /// A scalar of that element type, shared.
    pub fn scalar(&mut self, dtype: DType, value: f64) -> ValueId {
        self.values(TensorType::new(dtype, []), vec![value])
    }

    /// A string constant, shared.
    pub fn text(&mut self, text: &str) -> ValueId {
        let ty = TensorType::new(DType::String, []);
        let key = (ty.clone(), Vec::new(), Some(text.to_string()));
        if let Some(&id) = self.constants.get(&key) {
            return id;
        }
        let name = self.fresh("c");
        let id = self.body.add_constant(name, ty, Constant::Text(text.to_string()));
        self.constants.insert(key, id);
        id
    }

    /// Adds an operation with one result and gives the result.
    ///
    /// # Errors
    /// The first rule of the operator's record that is broken.
    pub fn op(&mut self, op: &str, given: &[(&str, Given)]) -> Result<ValueId, BuildError> {
        self.op_named(op, given, op)
    }

    /// The same with a hint for the result's SSA name.
    ///
    /// # Errors
    /// As [`Self::op`].
    pub fn op_named(&mut self, op: &str, given: &[(&str, Given)], name: &str) -> Result<ValueId, BuildError> {
        let outputs = self.op_many(op, given, name)?;
        outputs.first().copied().ok_or_else(|| BuildError::NoResult { op: op.to_string() })
    }

    /// Adds an operation with any number of results.
    ///
    /// # Errors
    /// As [`Self::op`].
    pub fn op_many(&mut self, op: &str, given: &[(&str, Given)], name: &str) -> Result<Vec<ValueId>, BuildError> {
        let record = self.table.get(op).ok_or_else(|| BuildError::UnknownOp { op: op.to_string() })?;
        let mut arguments = vec![Operand::Absent; record.ports.len()];
        for (port, value) in given {
            let Some(index) = record.port(port) else {
                let known: Vec<_> = record.ports.iter().map(|spec| spec.name).collect();
                return Err(OpError::UnknownPort { op: record.name, port: (*port).to_string(), known: known.join(", ") }.into());
            };
            arguments[index] = self.operand(record, index, value.clone());
        }
        self.apply(record, arguments, name)
    }

    /// Adds an operation whose operands are at hand.
    ///
    /// # Errors
    /// As [`Self::op`].
    pub fn apply(&mut self, op: &'static MilOp, arguments: Vec<Operand>, name: &str) -> Result<Vec<ValueId>, BuildError> {
        let types = self.body.infer(op, &arguments)?;
        let many = types.len() > 1;
        let results = types
            .into_iter()
            .enumerate()
            .map(|(index, ty)| (if many { self.fresh(&format!("{name}_{index}")) } else { self.fresh(name) }, ty))
            .collect();
        Ok(self.body.add_operation(op, arguments, results))
    }

    /// A name that no value has yet: the hint itself where it is free, else the hint with a number.
    pub fn fresh(&mut self, hint: &str) -> String {
        let mut base: String = hint.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if base.is_empty() || base.starts_with(|c: char| c.is_ascii_digit()) {
            base.insert(0, '_');
        }
        let counter = self.counters.entry(base.clone()).or_insert(0);
        let mut name = if *counter == 0 { base.clone() } else { format!("{base}_{counter}") };
        while !self.names.insert(name.clone()) {
            *counter += 1;
            name = format!("{base}_{counter}");
        }
        *counter += 1;
        name
    }

    fn operand(&mut self, record: &'static MilOp, port: usize, given: Given) -> Operand {
        let dtypes = record.ports[port].dtypes;
        let pick = |wanted: fn(DType) -> bool, fallback| dtypes.iter().copied().find(|&dtype| wanted(dtype)).unwrap_or(fallback);
        match given {
            Given::Value(id) if record.ports[port].kind.is_tuple() => Operand::Many(vec![id]),
            Given::Value(id) => Operand::One(id),
            Given::Values(ids) => Operand::Many(ids),
            Given::Int(value) => {
                let ty = TensorType::new(pick(DType::is_integer, DType::Int32), []);
                Operand::One(self.values(ty, vec![value as f64]))
            }
            Given::Ints(values) => {
                let ty = TensorType::new(pick(DType::is_integer, DType::Int32), [values.len()]);
                Operand::One(self.values(ty, values.iter().map(|&value| value as f64).collect()))
            }
            Given::Float(value) => {
                let ty = TensorType::new(pick(DType::is_float, DType::Fp16), []);
                Operand::One(self.values(ty, vec![value]))
            }
            Given::Flag(value) => Operand::One(self.values(TensorType::new(DType::Bool, []), vec![f64::from(u8::from(value))])),
            Given::Text(text) => Operand::One(self.text(&text)),
        }
    }
}

/// An operation could not be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No operator of that name.
    #[error("there is no MIL operator {op:?}; add its record to the table")]
    UnknownOp {
        /// The name.
        op: String,
    },
    /// The operator has no result.
    #[error("{op} has no result")]
    NoResult {
        /// The operator.
        op: String,
    },
    /// The operator's record refuses the arguments.
    #[error(transparent)]
    Op(#[from] OpError),
}

impl From<ValueId> for Given {
    fn from(id: ValueId) -> Self {
        Self::Value(id)
    }
}

impl From<bool> for Given {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Given {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Given {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Given {
    fn from(text: &str) -> Self {
        Self::Text(text.to_string())
    }
}

impl From<Vec<i64>> for Given {
    fn from(values: Vec<i64>) -> Self {
        Self::Ints(values)
    }
}

impl From<Vec<ValueId>> for Given {
    fn from(values: Vec<ValueId>) -> Self {
        Self::Values(values)
    }
}
