//! A function with its names resolved: values, operations, constants. What passes rewrite and devices execute.

use crate::op::MilOp;
use crate::{Array, DType, TensorType, Weight};

/// Index of a value in its [`Body`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One function, single assignment, operations in an order in which they can run.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Function name.
    pub name: String,
    /// Every value, constants included.
    pub values: Vec<Value>,
    /// Operations in order.
    pub operations: Vec<Operation>,
    /// Inputs in call order.
    pub inputs: Vec<ValueId>,
    /// Results with the names people know them by, in order.
    pub outputs: Vec<Output>,
    /// Buffers that live across calls, in call order behind the inputs.
    pub states: Vec<State>,
}

/// A buffer that lives across calls: what a call finds in it and what it leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Name of the buffer.
    pub name: String,
    /// Its contents when the call starts, a value of kind [`ValueKind::State`].
    pub input: ValueId,
    /// Its contents when the call ends; `input` itself where the call only reads.
    pub result: ValueId,
}

/// A result of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Name of the port; emitters make it the SSA name of the value.
    pub name: String,
    /// The value.
    pub value: ValueId,
}

/// One SSA value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// SSA name, unique in the body.
    pub name: String,
    /// Type; strings have dtype `string` and rank 0.
    pub ty: TensorType,
    /// Where it comes from.
    pub kind: ValueKind,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueKind {
    /// A function input.
    Input,
    /// What a state holds when the call starts.
    State,
    /// A constant.
    Constant(Constant),
    /// Result number `output` of operation number `operation`.
    Result {
        /// Index into [`Body::operations`].
        operation: u32,
        /// Which of its results.
        output: u32,
    },
}

/// The data of a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A string.
    Text(String),
    /// A small tensor or scalar that the text writes as a literal.
    Values(Vec<f64>),
    /// A tensor that stands in a weight file.
    Weight(Weight),
}

/// One use of an operator.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The operator's record.
    pub op: &'static MilOp,
    /// One entry per port of the record, in its order.
    pub arguments: Vec<Operand>,
    /// Results.
    pub outputs: Vec<ValueId>,
}

/// What stands at a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Nothing: the port is optional and its default holds.
    Absent,
    /// One value.
    One(ValueId),
    /// Several values at a variadic port.
    Many(Vec<ValueId>),
}

impl Operand {
    /// All values at the port.
    pub fn values(&self) -> &[ValueId] {
        match self {
            Self::Absent => &[],
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }

    /// The same, to be replaced.
    pub fn values_mut(&mut self) -> &mut [ValueId] {
        match self {
            Self::Absent => &mut [],
            Self::One(value) => std::slice::from_mut(value),
            Self::Many(values) => values,
        }
    }
}

impl Constant {
    /// The constant's values in f64, read whole; `None` for strings and for weights that cannot be read.
    pub fn to_array(&self, ty: &TensorType) -> Option<Array> {
        match self {
            Self::Text(_) => None,
            Self::Values(values) => Some(Array { ty: ty.clone(), data: values.clone() }),
            Self::Weight(weight) => weight_array(weight),
        }
    }
}

fn weight_array(weight: &Weight) -> Option<Array> {
    let ty = weight.ty();
    let count = ty.count();
    let mut bytes = Vec::with_capacity(ty.dtype.packed_bytes(count));
    weight
        .stream(&mut |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })
        .ok()?;
    let data = unpack(ty.dtype, &bytes, count)?;
    Some(Array { ty: ty.clone(), data })
}

/// Packed little-endian elements as f64; sub-byte types are packed least significant bits first. `None` for strings and where
/// `bytes` is too short.
pub fn unpack(dtype: DType, bytes: &[u8], count: usize) -> Option<Vec<f64>> {
    if bytes.len() < dtype.packed_bytes(count) {
        return None;
    }
    let word = |index: usize, width: usize| {
        let mut raw = [0u8; 8];
        raw[..width].copy_from_slice(&bytes[index * width..(index + 1) * width]);
        u64::from_le_bytes(raw)
    };
    let element = |index: usize| match dtype {
        DType::Bool => f64::from(u8::from(bytes[index] != 0)),
        DType::Fp16 => half::f16::from_bits(word(index, 2) as u16).to_f64(),
        DType::Bf16 => half::bf16::from_bits(word(index, 2) as u16).to_f64(),
        DType::Fp32 => f64::from(f32::from_bits(word(index, 4) as u32)),
        DType::Fp64 => f64::from_bits(word(index, 8)),
        DType::Int8 => f64::from(bytes[index] as i8),
        DType::Int16 => f64::from(word(index, 2) as i16),
        DType::Int32 => f64::from(word(index, 4) as i32),
        DType::Int64 => word(index, 8) as i64 as f64,
        DType::UInt8 => f64::from(bytes[index]),
        DType::UInt16 => word(index, 2) as f64,
        DType::UInt32 => word(index, 4) as f64,
        DType::UInt64 => word(index, 8) as f64,
        DType::Int4 | DType::UInt1 | DType::UInt2 | DType::UInt3 | DType::UInt4 | DType::UInt6 => {
            let width = dtype.bits();
            let raw = (0..width).fold(0u32, |value, bit| {
                let position = index * width + bit;
                value | (u32::from(bytes[position / 8] >> (position % 8) & 1) << bit)
            });
            if dtype == DType::Int4 && raw >= 8 { f64::from(raw) - 16.0 } else { f64::from(raw) }
        }
        DType::String => f64::NAN,
    };
    (dtype != DType::String).then(|| (0..count).map(element).collect())
}

impl Body {
    /// The value behind an id.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The type of a value.
    pub fn ty(&self, id: ValueId) -> &TensorType {
        &self.value(id).ty
    }

    /// The constant behind an id, if it is one.
    pub fn constant(&self, id: ValueId) -> Option<&Constant> {
        match &self.value(id).kind {
            ValueKind::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    /// The operation that makes a value, if one does.
    pub fn producer(&self, id: ValueId) -> Option<&Operation> {
        match self.value(id).kind {
            ValueKind::Result { operation, .. } => self.operations.get(operation as usize),
            _ => None,
        }
    }

    /// Adds an input.
    pub fn add_input(&mut self, name: impl Into<String>, ty: TensorType) -> ValueId {
        let id = self.add_value(name.into(), ty, ValueKind::Input);
        self.inputs.push(id);
        id
    }

    /// Adds a state that keeps what it holds until its result is replaced. `value` is the SSA name of its contents.
    pub fn add_state(&mut self, name: impl Into<String>, value: impl Into<String>, ty: TensorType) -> ValueId {
        let id = self.add_value(value.into(), ty, ValueKind::State);
        self.states.push(State { name: name.into(), input: id, result: id });
        id
    }

    /// What a call must leave: the values of the outputs and the new contents of the states.
    pub fn roots(&self) -> impl Iterator<Item = ValueId> + '_ {
        let states = self.states.iter().map(|state| state.result);
        self.outputs.iter().map(|output| output.value).chain(states)
    }

    /// Adds a constant.
    pub fn add_constant(&mut self, name: impl Into<String>, ty: TensorType, constant: Constant) -> ValueId {
        self.add_value(name.into(), ty, ValueKind::Constant(constant))
    }

    /// Adds an operation whose results have the given names and types; the caller has inferred them.
    pub fn add_operation(
        &mut self,
        op: &'static MilOp,
        arguments: Vec<Operand>,
        results: Vec<(String, TensorType)>,
    ) -> Vec<ValueId> {
        let operation = self.operations.len() as u32;
        let outputs: Vec<ValueId> = results
            .into_iter()
            .enumerate()
            .map(|(output, (name, ty))| self.add_value(name, ty, ValueKind::Result { operation, output: output as u32 }))
            .collect();
        self.operations.push(Operation { op, arguments, outputs: outputs.clone() });
        outputs
    }

    /// Number of uses of each value, function results and what states keep counted.
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.values.len()];
        let operands = self.operations.iter().flat_map(|operation| operation.arguments.iter().flat_map(Operand::values));
        for id in operands.copied().chain(self.roots()) {
            counts[id.index()] += 1;
        }
        counts
    }

    fn add_value(&mut self, name: String, ty: TensorType, kind: ValueKind) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        self.values.push(Value { name, ty, kind });
        id
    }
}
