//! A body with its uses at hand, for recognising groups of operations.

use aneforge_mil::op::{Argument, Arguments};
use aneforge_mil::{Body, DType, Operand, Operation, ValueId, ValueKind};
use half::f16;

/// A folded body and who uses what.
pub(crate) struct Graph {
    pub(crate) body: Body,
    /// Operations that use each value.
    users: Vec<Vec<usize>>,
    /// Whether a value is a result of the program or kept in a state.
    is_output: Vec<bool>,
}

impl Graph {
    pub(crate) fn new(body: Body) -> Self {
        let mut users = vec![Vec::new(); body.values.len()];
        for (index, operation) in body.operations.iter().enumerate() {
            for id in operation.arguments.iter().flat_map(Operand::values) {
                if users[id.index()].last() != Some(&index) {
                    users[id.index()].push(index);
                }
            }
        }
        let mut is_output = vec![false; body.values.len()];
        body.roots().for_each(|root| is_output[root.index()] = true);
        Self { body, users, is_output }
    }

    pub(crate) fn shape(&self, id: ValueId) -> &[usize] {
        &self.body.ty(id).shape
    }

    pub(crate) fn dtype(&self, id: ValueId) -> DType {
        self.body.ty(id).dtype
    }

    pub(crate) fn is_fp16(&self, id: ValueId) -> bool {
        self.dtype(id) == DType::Fp16
    }

    pub(crate) fn is_constant(&self, id: ValueId) -> bool {
        self.body.constant(id).is_some()
    }

    pub(crate) fn is_output(&self, id: ValueId) -> bool {
        self.is_output[id.index()]
    }

    /// Operations that use a value.
    pub(crate) fn users(&self, id: ValueId) -> &[usize] {
        &self.users[id.index()]
    }

    /// The only operation that uses a value that is not a result.
    pub(crate) fn only_user(&self, id: ValueId) -> Option<usize> {
        match self.users(id) {
            [user] if !self.is_output(id) => Some(*user),
            _ => None,
        }
    }

    /// Index of the operation that makes a value.
    pub(crate) fn producer(&self, id: ValueId) -> Option<usize> {
        match self.body.value(id).kind {
            ValueKind::Result { operation, .. } => Some(operation as usize),
            _ => None,
        }
    }

    /// The operation that makes a value, if it is of that name.
    pub(crate) fn made_by(&self, id: ValueId, op: &str) -> Option<(usize, &Operation)> {
        let index = self.producer(id)?;
        let operation = &self.body.operations[index];
        (operation.op.name == op).then_some((index, operation))
    }

    /// The one value at a port.
    pub(crate) fn at(&self, operation: &Operation, port: &str) -> Option<ValueId> {
        match operation.arguments.get(operation.op.port(port)?)? {
            Operand::One(id) => Some(*id),
            Operand::Many(ids) if ids.len() == 1 => ids.first().copied(),
            _ => None,
        }
    }

    /// All values at a port.
    pub(crate) fn all_at<'a>(&'a self, operation: &'a Operation, port: &str) -> &'a [ValueId] {
        operation.op.port(port).and_then(|index| operation.arguments.get(index)).map_or(&[], Operand::values)
    }

    /// Reads attributes of an operation the way its record does, defaults included.
    pub(crate) fn attributes<T>(&self, operation: &Operation, read: impl FnOnce(&Arguments<'_>) -> T) -> T {
        let ports: Vec<Vec<Argument>> = self.body.argument_ports(&operation.arguments);
        read(&Arguments { op: operation.op, ports: &ports })
    }

    /// The value of a constant with one element.
    pub(crate) fn scalar(&self, id: ValueId) -> Option<f64> {
        let constant = self.body.constant(id)?;
        (self.body.ty(id).count() == 1).then(|| constant.to_array(self.body.ty(id)))?.and_then(|array| array.data.first().copied())
    }

    /// The elements of an fp16 constant.
    pub(crate) fn halves(&self, id: ValueId) -> Option<Vec<f16>> {
        let ty = self.body.ty(id);
        if ty.dtype != DType::Fp16 {
            return None;
        }
        match self.body.constant(id)? {
            aneforge_mil::Constant::Weight(weight) => weight.to_fp16().ok(),
            constant => Some(constant.to_array(ty)?.data.iter().map(|&value| f16::from_f64(value)).collect()),
        }
    }
}
