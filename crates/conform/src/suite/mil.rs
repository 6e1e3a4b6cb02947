//! Uses of MIL operators and of the engine's own layers: programs and networks of one operation.

use super::Options;
use super::usage::{Form, Use};
use super::values::{Dice, Extents, Range};
use crate::report::{Origin, Table};
use aneforge_mil::op::{Argument, Arguments, Case, Data, Given, MilOp, PortKind};
use aneforge_mil::{Array, Body, Constant, DType, Operand, Output, TensorType, Weight};

/// Attempts per generated use before it is given up.
const ATTEMPTS: usize = 12;
/// Constants above this many elements go to the weight file.
const LITERAL: usize = 64;

/// Every written use of an operator or layer, and those generated from it.
pub(super) fn uses(op: &'static MilOp, table: Table, options: &Options) -> Vec<Use> {
    let mut uses = Vec::new();
    // Which bottoms of a layer are constants is fixed.
    let forms: &[bool] = if table == Table::Native { &[false] } else { &[false, true] };
    for case in op.cases {
        for &constant_operands in forms {
            uses.extend(usage(op, table, case, Origin::Written, case.arguments(op), constant_operands));
        }
        let mut add = |origin, count: usize| {
            for index in 0..count {
                let mut dice = Dice::new(options.seed, &[table.word(), op.name, case.name, &format!("{origin:?}{index}")]);
                let attempt = |_| {
                    let ports = generated(op, case, origin, &mut dice)?;
                    usage(op, table, case, origin, ports, forms[index % forms.len()])
                };
                uses.extend((0..ATTEMPTS).find_map(attempt));
            }
        };
        add(Origin::Reseeded, options.reseeded);
        add(Origin::Edges, usize::from(options.edges));
        add(Origin::Reshaped, options.reshaped);
    }
    uses
}

/// The arguments of a case with other values or extents. `None` where that would change nothing or is not legal.
fn generated(op: &'static MilOp, case: &Case, origin: Origin, dice: &mut Dice) -> Option<Vec<Vec<Argument>>> {
    let written: Vec<usize> = case.given.iter().flat_map(|(name, given)| fixed_extents(op, name, given)).collect();
    let extents = Extents::new(dice, written);
    let mut ports = vec![Vec::new(); op.ports.len()];
    let mut changed = false;
    for (name, given) in case.given {
        let index = op.port(name)?;
        let (low, high) = op.domain(name);
        let range = Range { low, high, avoid: &[] };
        let argument = match *given {
            Given::Tensor(dtype, shape, data) if is_free(op, index, dtype, data) => {
                let shape = if origin == Origin::Reshaped { extents.map(shape) } else { shape.to_vec() };
                let ty = TensorType::new(dtype, shape);
                changed = true;
                Argument::valued(match origin {
                    Origin::Edges if dtype.is_float() => range.edges(&ty),
                    _ => Array::seeded(ty, dice.next(), (low, high)),
                })
            }
            other => other.argument((low, high)),
        };
        ports[index].push(argument);
    }
    let legal = Arguments::checked(op, &ports).and_then(|arguments| (op.infer)(&arguments)).is_ok();
    (changed && legal).then_some(ports)
}

/// Whether values of an argument may be drawn anew: those of tensors whose record draws them, and floats written down.
fn is_free(op: &MilOp, port: usize, dtype: DType, data: Data) -> bool {
    !matches!(op.ports[port].kind, PortKind::Constant | PortKind::Constants)
        && (matches!(data, Data::Seeded(_)) || dtype.is_float())
}

/// Extents of tensors that stay as they are written.
fn fixed_extents(op: &MilOp, name: &str, given: &Given) -> Vec<usize> {
    match (op.port(name), given) {
        (Some(port), Given::Tensor(dtype, shape, data)) if !is_free(op, port, *dtype, *data) => shape.to_vec(),
        _ => Vec::new(),
    }
}

/// The operation with its tensors as inputs, or with all but the first as constants. Written cases that cannot be built are faults.
fn usage(
    op: &'static MilOp,
    table: Table,
    case: &Case,
    origin: Origin,
    ports: Vec<Vec<Argument>>,
    constant_operands: bool,
) -> Option<Use> {
    let name = if constant_operands { format!("{} (constant operands)", case.name) } else { case.name.to_string() };
    let mut inputs = Vec::new();
    let form = match single(op, ports, constant_operands, &mut inputs) {
        Ok(body) if table == Table::Native => Form::Net(body),
        Ok(body) => Form::Body(body),
        Err(problem) => Form::Faulty(problem),
    };
    Use::of(&name, origin, form, inputs, op.tolerance)
}

fn single(
    op: &'static MilOp,
    ports: Vec<Vec<Argument>>,
    constant_operands: bool,
    inputs: &mut Vec<(String, Array)>,
) -> Result<Body, String> {
    let mut body = Body { name: "main".to_string(), ..Body::default() };
    let mut operands = Vec::new();
    for (spec, given) in op.ports.iter().zip(ports) {
        let free = matches!(spec.kind, PortKind::Tensor | PortKind::Variadic);
        let mut ids = Vec::new();
        for (index, Argument { ty, value, text, .. }) in given.into_iter().enumerate() {
            let name = format!("{}_{index}", spec.name);
            ids.push(match (value, text) {
                (Some(array), _) if free && ty.dtype.bits() >= 8 && (!constant_operands || inputs.is_empty()) => {
                    inputs.push((name.clone(), array));
                    body.add_input(name, ty)
                }
                (Some(array), _) if ty.count() > LITERAL && ty.dtype == DType::Fp16 => {
                    let halves: Vec<_> = array.data.iter().map(|&value| half::f16::from_f64(value)).collect();
                    let weight = Weight::from_fp16(ty.shape.clone(), &halves).map_err(|error| error.to_string())?;
                    body.add_constant(name, ty, Constant::Weight(weight))
                }
                (Some(array), _) => body.add_constant(name, ty, Constant::Values(array.data)),
                (None, Some(text)) => body.add_constant(name, ty, Constant::Text(text)),
                (None, None) => return Err(format!("argument {name} has no value")),
            });
        }
        operands.push(match (spec.kind, ids.as_slice()) {
            (_, []) => Operand::Absent,
            (PortKind::Variadic | PortKind::Constants, _) => Operand::Many(ids),
            (_, [id]) => Operand::One(*id),
            _ => return Err(format!("{} values at port {}", ids.len(), spec.name)),
        });
    }
    let types = body.infer(op, &operands).map_err(|error| error.to_string())?;
    let results = types.into_iter().enumerate().map(|(index, ty)| (format!("result_{index}"), ty)).collect();
    let outputs = body.add_operation(op, operands, results);
    // A mask of bits has no form outside of a program.
    let whole = outputs.iter().filter(|&&value| body.ty(value).dtype.bits() >= 8);
    body.outputs = whole.map(|&value| Output { name: body.value(value).name.clone(), value }).collect();
    Ok(body)
}
