//! Cuts a program that uses native layers, or holds more than an engine takes in one program, into segments: MIL programs and networks
//! of native layers, run one after the other.
//!
//! As few segments as the dependencies allow: operations of one kind that can run next to each other share a segment. Transposes and
//! reshapes at the edge of a network become the layout of its ports instead of segments of their own. Every operation runs in one
//! segment, once.

mod caps;
mod cut;
mod moves;
mod plan;

pub use caps::Limits;
pub use plan::phases;

use crate::CompileError;
use aneforge_core::Target;
use aneforge_mil::{Body, TensorType};
use serde::{Deserialize, Serialize};

/// A program in segments.
#[derive(Clone, Debug)]
pub struct Segments {
    /// The segments in the order in which they run.
    pub parts: Vec<Segment>,
    /// Where each output of the program comes from; ports are the outputs' names.
    pub outputs: Vec<Link>,
}

/// One segment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// What it is made of.
    pub kind: SegmentKind,
    /// Its operations; native layers alone where it is native.
    pub body: Body,
    /// Where each of its inputs comes from, in their order.
    pub inputs: Vec<Link>,
}

/// What a segment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SegmentKind {
    /// A MIL program.
    Mil,
    /// A network of native layers.
    Native,
}

/// Where the value at a port comes from and how its elements are moved on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The port that takes the value.
    pub port: String,
    /// The segment that makes it; an input of the program where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<usize>,
    /// Output of that segment, or input of the program.
    pub value: String,
    /// Moves in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layout: Vec<Move>,
}

/// A move of all elements of a tensor that computes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Move {
    /// The same elements under another shape.
    Reshape(Vec<usize>),
    /// Axes in another order: axis `i` of the result is axis `order[i]` of the tensor.
    Transpose(Vec<usize>),
}

impl Move {
    /// The shape that a tensor has after the move; `None` where it cannot be moved so.
    pub fn shape(&self, shape: &[usize]) -> Option<Vec<usize>> {
        match self {
            Self::Reshape(wanted) => {
                let count = |shape: &[usize]| shape.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent));
                (count(wanted)? == count(shape)?).then(|| wanted.clone())
            }
            Self::Transpose(order) => {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                let moved = || order.iter().map(|&axis| shape[axis]).collect();
                sorted.iter().copied().eq(0..shape.len()).then(moved)
            }
        }
    }
}

/// The segments of a program; `None` where no operation is a native layer and the limits are kept: such a program stays whole.
///
/// # Errors
/// [`CompileError::Limit`] where the target's chip lacks a layer, a value of a type that no port has goes between segments, or one
/// operation exceeds the limits.
pub fn segment(body: &Body, target: &Target, limits: &Limits) -> Result<Option<Segments>, CompileError> {
    let native = body.operations.iter().any(|operation| aneforge_native::layer::of(operation.op).is_some());
    let plan = caps::divide(body, plan::plan(body), limits, target)?;
    if !native && plan.native.len() < 2 {
        return Ok(None);
    }
    if let Some(state) = body.states.first() {
        return Err(CompileError::Limit {
            op: "state",
            name: state.name.clone(),
            ty: body.ty(state.input).to_string(),
            rule: "a program in segments keeps no state".to_string(),
            target: target.to_string(),
            remedy: "make it an input and an output, or use operators of MIL in place of native layers, and fewer or compressed weights",
            is_size: false,
        });
    }
    check_layers(body, target)?;
    let segments = cut::cut(body, &plan)?;
    check_ports(&segments, target)?;
    Ok(Some(segments))
}

fn check_layers(body: &Body, target: &Target) -> Result<(), CompileError> {
    let Some(chip) = target.chip() else { return Ok(()) };
    for operation in body.operations.iter().filter(|operation| aneforge_native::layer::of(operation.op).is_some()) {
        let first = operation.op.support.native_from();
        if first.is_none_or(|first| chip.family.number() < first) {
            let id = operation.outputs.first().copied();
            let rule = match first {
                Some(first) => format!("the layer runs from A{first} on ({})", operation.op.support.source),
                None => format!("no engine runs the layer ({})", operation.op.support.source),
            };
            return Err(CompileError::Limit {
                op: operation.op.name,
                name: id.map(|id| body.value(id).name.clone()).unwrap_or_default(),
                ty: id.map(|id| body.ty(id).to_string()).unwrap_or_default(),
                rule,
                target: chip.product.to_string(),
                remedy: "use operators of MIL in its place or another chip",
                is_size: false,
            });
        }
    }
    Ok(())
}

/// Between segments a chip hands over fp16 alone.
fn check_ports(segments: &Segments, target: &Target) -> Result<(), CompileError> {
    let Some(chip) = target.chip() else { return Ok(()) };
    for part in &segments.parts {
        for output in &part.body.outputs {
            let ty: &TensorType = part.body.ty(output.value);
            if ty.dtype != aneforge_core::DType::Fp16 {
                return Err(CompileError::Limit {
                    op: "segment",
                    name: part.body.value(output.value).name.clone(),
                    ty: ty.to_string(),
                    rule: "values between segments are fp16".to_string(),
                    target: chip.product.to_string(),
                    remedy: "cast it to fp16 before it leaves its segment and back behind that",
                    is_size: false,
                });
            }
        }
    }
    Ok(())
}
