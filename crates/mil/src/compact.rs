//! Housekeeping of bodies: dropping what nothing uses, comparing computations.

use crate::{Body, Constant, Operand, ValueId, ValueKind};
use std::collections::HashMap;

impl Body {
    /// Drops operations and constants that no result depends on, and numbers the rest anew in the same order. Inputs and states stay.
    pub fn compact(&mut self) {
        let mut live = vec![false; self.values.len()];
        let states = self.states.iter().map(|state| state.input);
        for id in self.inputs.iter().copied().chain(states).chain(self.roots()) {
            live[id.index()] = true;
        }
        let mut kept = vec![false; self.operations.len()];
        for (operation, kept) in self.operations.iter().zip(&mut kept).rev() {
            *kept = operation.outputs.iter().any(|id| live[id.index()]);
            if *kept {
                let touched = operation.arguments.iter().flat_map(Operand::values).chain(&operation.outputs);
                touched.for_each(|id| live[id.index()] = true);
            }
        }
        let values = numbering(&live).map(ValueId).collect::<Vec<_>>();
        let operations = numbering(&kept).collect::<Vec<_>>();
        let mut flags = live.iter();
        self.values.retain(|_| flags.next().copied().unwrap_or(false));
        let mut flags = kept.iter();
        self.operations.retain(|_| flags.next().copied().unwrap_or(false));
        for value in &mut self.values {
            if let ValueKind::Result { operation, .. } = &mut value.kind {
                *operation = operations[*operation as usize];
            }
        }
        for operation in &mut self.operations {
            let used = operation.arguments.iter_mut().flat_map(Operand::values_mut).chain(&mut operation.outputs);
            used.for_each(|id| *id = values[id.index()]);
        }
        self.inputs.iter_mut().for_each(|id| *id = values[id.index()]);
        self.outputs.iter_mut().for_each(|output| output.value = values[output.value.index()]);
        for state in &mut self.states {
            (state.input, state.result) = (values[state.input.index()], values[state.result.index()]);
        }
    }

    /// Whether two bodies do the same operations in the same order on the same inputs, states and constants and give the same
    /// outputs under the same names. Numbering, names of inner values, and how a constant is held do not matter.
    pub fn same_computation(&self, other: &Body) -> bool {
        if self.operations.len() != other.operations.len()
            || self.inputs.len() != other.inputs.len()
            || self.outputs.len() != other.outputs.len()
            || self.states.len() != other.states.len()
        {
            return false;
        }
        let mut twins: HashMap<ValueId, ValueId> = HashMap::new();
        for (&a, &b) in self.inputs.iter().zip(&other.inputs) {
            if self.value(a).name != other.value(b).name || self.ty(a) != other.ty(b) {
                return false;
            }
            twins.insert(a, b);
        }
        for (a, b) in self.states.iter().zip(&other.states) {
            if a.name != b.name || self.ty(a.input) != other.ty(b.input) {
                return false;
            }
            twins.insert(a.input, b.input);
        }
        for (a, b) in self.operations.iter().zip(&other.operations) {
            let operands = a.arguments.iter().zip(&b.arguments);
            let same = a.op.name == b.op.name
                && a.arguments.len() == b.arguments.len()
                && a.outputs.len() == b.outputs.len()
                && operands.into_iter().all(|(a, b)| self.same_values(a.values(), other, b.values(), &twins));
            if !same || a.outputs.iter().zip(&b.outputs).any(|(&a, &b)| self.ty(a) != other.ty(b)) {
                return false;
            }
            twins.extend(a.outputs.iter().copied().zip(b.outputs.iter().copied()));
        }
        let mut states = self.states.iter().zip(&other.states);
        let mut outputs = self.outputs.iter().zip(&other.outputs);
        states.all(|(a, b)| self.same_values(&[a.result], other, &[b.result], &twins))
            && outputs.all(|(a, b)| a.name == b.name && self.same_values(&[a.value], other, &[b.value], &twins))
    }

    fn same_values(&self, ours: &[ValueId], other: &Body, theirs: &[ValueId], twins: &HashMap<ValueId, ValueId>) -> bool {
        let same = |&a: &ValueId, &b: &ValueId| match (self.constant(a), other.constant(b)) {
            (None, None) => twins.get(&a) == Some(&b),
            (Some(x), Some(y)) => self.ty(a) == other.ty(b) && same_constants(x, y, self.ty(a)),
            _ => false,
        };
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
    }
}

fn same_constants(a: &Constant, b: &Constant, ty: &crate::TensorType) -> bool {
    match (a, b) {
        (Constant::Text(a), Constant::Text(b)) => a == b,
        (Constant::Weight(x), Constant::Weight(y)) if x == y => true,
        _ => match (a.to_array(ty), b.to_array(ty)) {
            (Some(a), Some(b)) => a.data.iter().map(|value| value.to_bits()).eq(b.data.iter().map(|value| value.to_bits())),
            _ => false,
        },
    }
}

/// New index of each kept element.
fn numbering(kept: &[bool]) -> impl Iterator<Item = u32> + '_ {
    kept.iter().scan(0, |next, &kept| {
        let number = *next;
        *next += u32::from(kept);
        Some(number)
    })
}
