//! Functions of one fp16 value: a vector form, or a table of the results for all 65536 inputs.

use super::graph::Graph;
use super::policy::Policy;
use crate::DeviceError;
use crate::kernel::pointwise;
use crate::kernel::types::{Activation, Context};
use aneforge_mil::op::{Argument, Arguments};
use aneforge_mil::{Array, DType, Operation};
use half::f16;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Number of fp16 bit patterns.
const PATTERNS: usize = 1 << 16;

/// A function of one fp16 value.
#[derive(Clone, Debug)]
pub(crate) enum Function {
    /// Computed in f32 and rounded once.
    Vector(Activation),
    /// Looked up.
    Table(Table),
}

/// Results by the bit pattern of the input.
#[derive(Clone, Debug)]
pub(crate) struct Table(Arc<[f16]>);

impl Function {
    /// Whether the engine computes a function without a table, so that its vector form is exact.
    pub(crate) fn is_exact(activation: Activation) -> bool {
        matches!(activation, Activation::Relu | Activation::Clip(..))
    }

    /// Applies it.
    pub(crate) fn apply(&self, context: Context<'static>, is_exact: bool, x: &[f16], out: &mut [f16]) {
        match self {
            Self::Vector(Activation::Relu) if is_exact => pointwise::exact::relu(context, x, out),
            Self::Vector(Activation::Clip(low, high)) if is_exact => {
                pointwise::exact::clip(context, f16::from_f32(*low), f16::from_f32(*high), x, out);
            }
            Self::Vector(activation) => pointwise::unary(context, *activation, x, out),
            Self::Table(table) => {
                out.iter_mut().zip(x).for_each(|(slot, value)| *slot = table.0[value.to_bits() as usize]);
            }
        }
    }
}

/// Tables by what they depend on, made once in a process: a program loads in the time that one of them takes.
static KNOWN: LazyLock<Mutex<HashMap<String, Table>>> = LazyLock::new(Mutex::default);

/// Most tables that are kept; each takes 128 KiB.
const MOST_KNOWN: usize = 256;

impl Table {
    /// The table of a unary operation with the attributes of one use of it.
    pub(crate) fn of(graph: &Graph, operation: &Operation, policy: &Policy) -> Result<Self, DeviceError> {
        let mut ports: Vec<Vec<Argument>> = graph.body.argument_ports(&operation.arguments);
        let fault = || DeviceError::internal("function", format!("{} has no port x", operation.op.name));
        let port = operation.op.port("x").and_then(|index| ports.get_mut(index)).ok_or_else(fault)?;
        port.clear();
        // Records from outside may share a name, so that their address tells them apart.
        let key = format!("{:p} {} {ports:?}", operation.op, policy.identity());
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(table) = known {
            return Ok(table);
        }
        let table = Self::made(operation, ports, policy)?;
        let mut tables = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.len() >= MOST_KNOWN {
            tables.clear();
        }
        tables.insert(key, table.clone());
        Ok(table)
    }

    /// Computes a table; `ports` are the arguments without x.
    fn made(operation: &Operation, mut ports: Vec<Vec<Argument>>, policy: &Policy) -> Result<Self, DeviceError> {
        let fault = || DeviceError::internal("function", format!("{} has no port x", operation.op.name));
        if let Policy::Engine(engine) = policy
            && let Some(table) = engine.unary_table(&Arguments { op: operation.op, ports: &ports })
        {
            return Ok(Self(table));
        }
        let port = operation.op.port("x").and_then(|index| ports.get_mut(index)).ok_or_else(fault)?;
        let inputs = (0..PATTERNS).map(|bits| policy.input(f16::from_bits(bits as u16)).to_f64()).collect();
        *port = vec![Argument { constant: false, ..Argument::valued(Array::new(DType::Fp16, [PATTERNS], inputs)) }];
        let mut results = (operation.op.meaning)(&Arguments { op: operation.op, ports: &ports })?;
        let mut values = results.drain(..).next().ok_or_else(fault)?.data;
        policy.store(&mut values);
        let table: Arc<[f16]> = values.iter().map(|&value| f16::from_f64(value)).collect();
        if table.len() == PATTERNS { Ok(Self(table)) } else { Err(fault()) }
    }
}
