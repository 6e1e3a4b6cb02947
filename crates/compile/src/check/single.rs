//! Distinct uses of operators, each as a program of its own.

use crate::rewrite::alone;
use aneforge_mil::{Body, Constant, DType, Operand, Operation, ValueId, ValueKind, Weight};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Uses of an operator with the same types and settings.
pub struct Use {
    /// Place of the first in the body.
    pub first: usize,
    /// SSA name of its first result.
    pub name: String,
    /// How many.
    pub count: usize,
    /// The use alone: operands that are computed are inputs.
    pub body: Body,
}

/// Constants that are longer are told apart by their types alone.
const SETTING: usize = 16;

/// All distinct uses, in order of their first.
pub fn distinct(body: &Body) -> Vec<Use> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut uses: Vec<Use> = Vec::new();
    let constant = constants(body);
    for (index, operation) in body.operations.iter().enumerate() {
        // What depends on constants alone is folded, or unpacked while weights stream.
        if operation.outputs.iter().all(|output| constant[output.index()]) {
            continue;
        }
        let key = key(body, operation);
        if let Some(&place) = places.get(&key) {
            uses[place].count += 1;
            continue;
        }
        places.insert(key, uses.len());
        let name = operation.outputs.first().map_or_else(String::new, |&output| body.value(output).name.clone());
        uses.push(Use { first: index, name, count: 1, body: alone(body, operation, |id| stand_in(body, id, &constant)) });
    }
    uses
}

fn key(body: &Body, operation: &Operation) -> String {
    let mut key = operation.op.name.to_string();
    for argument in &operation.arguments {
        key.push('|');
        for &id in argument.values() {
            let _ = write!(key, "{}", body.ty(id));
            match body.constant(id) {
                Some(Constant::Text(text)) => key.push_str(text),
                Some(Constant::Values(values)) if values.len() <= SETTING => {
                    let _ = write!(key, "={values:?}");
                }
                Some(_) => key.push_str("=constant"),
                None => {}
            }
        }
    }
    key
}

/// Which values depend on nothing but constants.
pub fn constants(body: &Body) -> Vec<bool> {
    let mut constant: Vec<bool> = body.values.iter().map(|value| matches!(value.kind, ValueKind::Constant(_))).collect();
    for operation in &body.operations {
        let all = operation.arguments.iter().flat_map(Operand::values).all(|id| constant[id.index()]);
        for output in &operation.outputs {
            constant[output.index()] = all;
        }
    }
    constant
}

/// A weight that is never read: where one is made by operations on constants, some ports take nothing but a constant.
fn stand_in(body: &Body, id: ValueId, constant: &[bool]) -> Option<Constant> {
    let ty = body.ty(id);
    let is_made = constant[id.index()] && body.constant(id).is_none();
    (is_made && ty.dtype == DType::Fp16).then(|| Constant::Weight(Weight::computed(ty.shape.clone(), Arc::new(|_| Ok(())))))
}
