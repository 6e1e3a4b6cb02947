//! Puts the segments together again: the body that the whole program was cut from, as far as its meaning goes.
//!
//! It gives the program its ports, and every link is checked on the way: that its value exists before it is used, and that its moves lead
//! to the type of its port.

use super::Segments;
use aneforge_compile::{Link, Manifest, Move, PortEntry};
use aneforge_mil::op::builtin;
use aneforge_mil::{Body, Builder, DType, Operand, Output, TensorType, ValueId, ValueKind};
use std::collections::HashMap;

/// Values by segment (`None` for the program's inputs) and name.
type Known = HashMap<(Option<usize>, String), ValueId>;

pub(super) fn stitch(manifest: &Manifest, segments: &Segments) -> Result<Body, String> {
    let mut builder = Builder::extending(Body { name: "main".to_string(), ..Body::default() }, builtin().clone());
    let mut known: Known = HashMap::new();
    for port in &manifest.inputs {
        let ty = port_type(port)?;
        let id = builder.body_mut().add_input(port.name.clone(), ty);
        if known.insert((None, port.name.clone()), id).is_some() {
            return Err(format!("input {:?} stands in the manifest twice", port.name));
        }
    }
    for (index, part) in segments.parts.iter().enumerate() {
        let body = part.program.body();
        let mut values: HashMap<ValueId, ValueId> = HashMap::new();
        for (&id, link) in body.inputs.iter().zip(&part.inputs) {
            let value = follow(&mut builder, &known, link, body.ty(id)).map_err(|problem| format!("segment {index}: {problem}"))?;
            values.insert(id, value);
        }
        append(&mut builder, body, &mut values).map_err(|problem| format!("segment {index}: {problem}"))?;
        for output in &body.outputs {
            let Some(&value) = values.get(&output.value) else {
                return Err(format!("segment {index} does not make {:?}", output.name));
            };
            known.insert((Some(index), output.name.clone()), value);
        }
    }
    let mut outputs = Vec::with_capacity(manifest.outputs.len());
    for (port, link) in manifest.outputs.iter().zip(&segments.outputs) {
        let value = follow(&mut builder, &known, link, &port_type(port)?)?;
        outputs.push(Output { name: port.name.clone(), value });
    }
    let mut body = builder.finish();
    body.outputs = outputs;
    Ok(body)
}

fn port_type(port: &PortEntry) -> Result<TensorType, String> {
    let dtype = DType::from_keyword(&port.dtype).ok_or_else(|| format!("port {:?} has no known element type", port.name))?;
    let ty = TensorType::new(dtype, port.shape.clone());
    let small =
        ty.rank() <= aneforge_mil::op::MAX_RANK && ty.checked_count().is_some_and(|count| count <= aneforge_mil::op::MAX_ELEMENTS);
    if small { Ok(ty) } else { Err(format!("port {:?} of type {ty} is larger than any engine takes", port.name)) }
}

fn follow(builder: &mut Builder, known: &Known, link: &Link, wanted: &TensorType) -> Result<ValueId, String> {
    let from = match link.segment {
        Some(segment) => format!("output {:?} of segment {segment}", link.value),
        None => format!("input {:?} of the program", link.value),
    };
    let source = known.get(&(link.segment, link.value.clone()));
    let mut value = *source.ok_or_else(|| format!("port {:?} takes {from}, which is not made before it", link.port))?;
    for step in &link.layout {
        let shape = builder.ty(value).shape.clone();
        if step.shape(&shape).is_none() {
            return Err(format!("port {:?}: {step:?} cannot move a tensor of shape {shape:?}", link.port));
        }
        let list = |values: &[usize]| values.iter().map(|&value| value as i64).collect::<Vec<i64>>();
        let made = match step {
            Move::Reshape(shape) => builder.op("reshape", &[("x", value.into()), ("shape", list(shape).into())]),
            Move::Transpose(order) => builder.op("transpose", &[("x", value.into()), ("perm", list(order).into())]),
        };
        value = made.map_err(|error| error.to_string())?;
    }
    match builder.ty(value) {
        ty if ty == wanted => Ok(value),
        ty => Err(format!("port {:?} is {wanted}, but {from} gives it {ty}", link.port)),
    }
}

/// Adds a segment's operations.
fn append(builder: &mut Builder, body: &Body, values: &mut HashMap<ValueId, ValueId>) -> Result<(), String> {
    for operation in &body.operations {
        let mut arguments = Vec::with_capacity(operation.arguments.len());
        for operand in &operation.arguments {
            let mut ids = Vec::new();
            for &id in operand.values() {
                ids.push(match (values.get(&id), &body.value(id).kind) {
                    (Some(&known), _) => known,
                    (None, ValueKind::Constant(constant)) => {
                        let name = builder.fresh(&body.value(id).name);
                        let own = builder.body_mut().add_constant(name, body.ty(id).clone(), constant.clone());
                        values.insert(id, own);
                        own
                    }
                    (None, _) => return Err(format!("{} uses a value before it is made", operation.op.name)),
                });
            }
            arguments.push(match (operand, ids.as_slice()) {
                (Operand::Many(_), _) => Operand::Many(ids),
                (_, &[id]) => Operand::One(id),
                _ => Operand::Absent,
            });
        }
        let name = operation.outputs.first().map(|&id| body.value(id).name.as_str()).unwrap_or_default();
        let made = builder.apply(operation.op, arguments, name).map_err(|error| error.to_string())?;
        values.extend(operation.outputs.iter().copied().zip(made));
    }
    Ok(())
}
