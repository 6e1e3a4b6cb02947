//! Looks at one operation of a function.

use aneforge_mil::{Body, Constant, Operand, Operation, ValueId};

/// An operation in its function.
#[derive(Clone, Copy)]
pub struct Use<'a> {
    pub body: &'a Body,
    pub operation: &'a Operation,
}

impl<'a> Use<'a> {
    /// The uses of an operator.
    pub fn of(body: &'a Body, name: &'a str) -> impl Iterator<Item = Use<'a>> {
        body.operations.iter().filter(move |operation| operation.op.name == name).map(move |operation| Use { body, operation })
    }

    /// What stands at a port.
    pub fn operand(&self, port: &str) -> Option<&'a Operand> {
        self.operation.op.port(port).and_then(|index| self.operation.arguments.get(index))
    }

    /// The first value at a port.
    pub fn value(&self, port: &str) -> Option<ValueId> {
        self.operand(port).and_then(|operand| operand.values().first().copied())
    }

    /// The shape of the first value at a port.
    pub fn shape(&self, port: &str) -> Option<&'a [usize]> {
        self.value(port).map(|id| self.body.ty(id).shape.as_slice())
    }

    /// The numbers of a small constant at a port.
    pub fn numbers(&self, port: &str) -> Option<Vec<f64>> {
        let id = self.value(port)?;
        match self.body.constant(id)? {
            Constant::Values(values) => Some(values.clone()),
            other => other.to_array(self.body.ty(id)).map(|array| array.data),
        }
    }

    /// The axes that the operator works on, resolved; all of `x` where none are named.
    pub fn axes(&self) -> Vec<usize> {
        let rank = self.shape("x").map_or(0, <[usize]>::len);
        let named = self.numbers("axes").or_else(|| self.numbers("axis"));
        let resolve = |axis: f64| {
            let axis = if axis < 0.0 { axis + rank as f64 } else { axis };
            (axis >= 0.0 && axis < rank as f64).then_some(axis as usize)
        };
        named.map_or_else(|| (0..rank).collect(), |axes| axes.into_iter().filter_map(resolve).collect())
    }

    /// The extent of `x` along those axes.
    pub fn worked_extent(&self) -> usize {
        let shape = self.shape("x").unwrap_or_default();
        self.axes().iter().filter_map(|&axis| shape.get(axis)).product()
    }

    /// Whether a value is known when the program is compiled, directly or through operators that unpack weights.
    pub fn is_weight(&self, id: ValueId) -> bool {
        let unpacked = self.body.producer(id).is_some_and(|operation| operation.op.name.starts_with("constexpr_"));
        self.body.constant(id).is_some() || unpacked
    }

    /// What it is called in a message.
    pub fn name(&self) -> String {
        let result = self.operation.outputs.first().map_or("", |&id| self.body.value(id).name.as_str());
        format!("{} {result:?}", self.operation.op.name)
    }
}
