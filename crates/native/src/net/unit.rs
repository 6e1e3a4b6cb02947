//! Reads one unit: a layer with its bottoms and parameters.

use super::Fault;
use super::decode::{self, Decoded};
use super::node::{Map, Node, Placed};
use super::read::{Reading, dtype, stored};
use crate::layer::{self, Channels, Layer, ParamKind};
use aneforge_mil::op::PortKind;
use aneforge_mil::{Constant, DType, Operand, TensorType, ValueId};

/// A unit that was read.
pub(super) struct Unit<'a> {
    /// Names in `Bottom`.
    pub(super) bottoms: Vec<&'a str>,
    /// Its result.
    pub(super) value: ValueId,
}

const UNIT_KEYS: [&str; 7] = ["Bottom", "InputType", "Name", "OutputChannels", "OutputType", "Params", "Type"];
const KERNEL_KEYS: [&str; 3] = ["KernelIndex", "KernelOffset", "KernelType"];

/// Adds the operation of a unit to the body.
pub(super) fn read_unit<'a>(reading: &mut Reading, node: &Node<'a>, name: &str) -> Placed<Unit<'a>> {
    let unit = node.map()?;
    let layer = layer_of(&unit.get("Type")?)?;
    let own = layer.params.iter().filter(|param| matches!(param.kind, ParamKind::UnitInt)).map(|param| param.key);
    let known: Vec<&str> = UNIT_KEYS.iter().copied().chain(own).collect();
    unit.only(&known)?;
    unit.get("Name")?.is_text(name)?;
    unit.get("OutputType")?.is_text("Float16")?;
    let (bottoms, mut operands) = bottoms(reading, &unit, layer)?;
    params(reading, &unit, layer, name, &mut operands)?;
    let types = match reading.body.infer(&layer.op, &operands) {
        Ok(types) => types,
        Err(error) => return node.fail(Fault::Rule(error)),
    };
    channels(reading, &unit, layer, &types, &bottoms)?;
    let results = types.into_iter().map(|ty| (name.to_string(), ty)).collect();
    match reading.body.add_operation(&layer.op, operands, results)[..] {
        [value] => Ok(Unit { bottoms, value }),
        _ => node.fail(Fault::Value("a layer has one result".to_string())),
    }
}

fn layer_of(node: &Node<'_>) -> Placed<&'static Layer> {
    let name = node.text()?;
    match layer::find(name) {
        Some(layer) => Ok(layer),
        None => {
            let reason = layer::unusable().iter().find(|row| row.name == name).map_or("no layer has this name", |row| row.reason);
            node.fail(Fault::Layer { name: name.to_string(), reason: reason.to_string() })
        }
    }
}

fn bottoms<'a>(reading: &Reading, unit: &Map<'a>, layer: &'static Layer) -> Placed<(Vec<&'a str>, Vec<Operand>)> {
    let list = unit.get("Bottom")?;
    let names = list.texts()?;
    let types = unit.get("InputType")?.array()?;
    if types.len() != names.len() {
        let fault = Fault::Count { what: "InputType entries", found: types.len().to_string(), expected: names.len().to_string() };
        return unit.fail(fault);
    }
    let mut ids = Vec::with_capacity(names.len());
    for (name, ty) in names.iter().zip(&types) {
        let Some(&id) = reading.values.get(*name) else {
            return list.fail(Fault::Wiring(format!("{name:?} is no input, no constant and no earlier unit")));
        };
        if dtype(ty)? != reading.body.ty(id).dtype {
            return ty.fail(Fault::Wiring(format!("{name:?} is {}", reading.body.ty(id))));
        }
        ids.push(id);
    }
    let mut operands = vec![Operand::Absent; layer.op.ports.len()];
    let port = |name: &str| layer.op.port(name).map(|index| (index, layer.op.ports[index].kind));
    if let [[only]] = layer.bottoms
        && let Some((index, PortKind::Variadic)) = port(only)
    {
        operands[index] = Operand::Many(ids);
        return Ok((names, operands));
    }
    let Some(ports) = layer.bottoms.iter().find(|ports| ports.len() == ids.len()) else {
        let counts: Vec<_> = layer.bottoms.iter().map(|ports| format!("{} ({})", ports.len(), ports.join(", "))).collect();
        let fault = Fault::Count { what: "bottoms", found: ids.len().to_string(), expected: counts.join(" or ") };
        return list.fail(fault);
    };
    for (name, id) in ports.iter().zip(ids) {
        if let Some((index, _)) = port(name) {
            operands[index] = Operand::One(id);
        }
    }
    Ok((names, operands))
}

fn params(reading: &mut Reading, unit: &Map<'_>, layer: &'static Layer, name: &str, operands: &mut [Operand]) -> Placed<()> {
    let inside = match unit.find("Params") {
        Some(node) => Some(node.map()?),
        None => None,
    };
    let has_kernel = layer.params.iter().any(|param| matches!(param.kind, ParamKind::Kernel));
    if let Some(inside) = &inside {
        let mut known: Vec<&str> = layer.params.iter().filter(|param| lies_inside(&param.kind)).map(|param| param.key).collect();
        known.extend(has_kernel.then_some(KERNEL_KEYS).into_iter().flatten());
        inside.only(&known)?;
    }
    let mut set = |reading: &mut Reading, port: &str, decoded: Decoded| {
        if let Some(index) = layer.op.port(port) {
            let (ty, constant) = decoded;
            operands[index] = Operand::One(reading.body.add_constant(format!("{name}.{port}"), ty, constant));
        }
    };
    for param in layer.params {
        match (param.kind, &inside) {
            (ParamKind::UnitInt, _) => {
                if let Some(node) = unit.find(param.key) {
                    set(reading, param.key, decode::value(&node, ParamKind::Int)?);
                }
            }
            (ParamKind::Kernel, _) | (_, None) => {}
            (ParamKind::Table(columns), Some(inside)) => {
                if let Some(node) = inside.find(param.key) {
                    for (column, decoded) in columns.iter().zip(decode::table(&node, columns)?) {
                        set(reading, &format!("{}_{}", param.key, column.key), decoded);
                    }
                }
            }
            (kind, Some(inside)) => {
                if let Some(node) = inside.find(param.key) {
                    set(reading, param.key, decode::value(&node, kind)?);
                }
            }
        }
    }
    match (&inside, has_kernel) {
        (Some(inside), true) => kernel(reading, unit, inside, layer, operands, name),
        _ => Ok(()),
    }
}

/// Whether a parameter stands in `Params` under its own key.
fn lies_inside(kind: &ParamKind) -> bool {
    !matches!(kind, ParamKind::UnitInt | ParamKind::Kernel)
}

/// The weights of a convolution, whose extents stand in other keys.
fn kernel(
    reading: &mut Reading,
    unit: &Map<'_>,
    inside: &Map<'_>,
    layer: &'static Layer,
    operands: &mut [Operand],
    name: &str,
) -> Placed<()> {
    inside.get("KernelType")?.is_text("Float16")?;
    let (index, offset) = match (inside.find("KernelIndex"), inside.find("KernelOffset")) {
        (Some(index), Some(offset)) => (index, offset),
        (None, None) => return Ok(()),
        _ => return inside.fail(Fault::Wiring("KernelIndex and KernelOffset stand together or not at all".to_string())),
    };
    let groups = match unit.find("NumGroups") {
        Some(node) => node.extent()?,
        None => 1,
    };
    let input = layer.op.port("x").and_then(|port| operands.get(port)).and_then(|operand| operand.values().first());
    let channels = input.and_then(|&id| reading.body.ty(id).shape.get(1).copied()).unwrap_or(1);
    let shape = [
        unit.get("OutputChannels")?.extent()?,
        (channels / groups).max(1),
        inside.get("KernelHeight")?.extent()?,
        inside.get("KernelWidth")?.extent()?,
    ];
    let ty = TensorType::new(DType::Fp16, shape);
    if ty.checked_count().is_none() {
        return inside.fail(Fault::Weights(format!("a kernel of {ty} is larger than any memory")));
    }
    let weight = stored(reading, ty.clone(), &index, &offset)?;
    if let Some(port) = layer.op.port("kernel") {
        operands[port] = Operand::One(reading.body.add_constant(format!("{name}.kernel"), ty, Constant::Weight(weight)));
    }
    Ok(())
}

fn channels(reading: &Reading, unit: &Map<'_>, layer: &Layer, types: &[TensorType], bottoms: &[&str]) -> Placed<()> {
    let Some(node) = unit.find("OutputChannels") else {
        let needed = layer.channels != Channels::Omitted;
        return if needed { unit.fail(Fault::Missing { key: "OutputChannels".to_string() }) } else { Ok(()) };
    };
    let found = node.extent()?;
    let made = types.first().and_then(|ty| ty.shape.get(1).copied()).unwrap_or(0);
    let mut of_bottoms = bottoms.iter().filter_map(|name| reading.values.get(*name)).map(|&id| reading.body.ty(id).shape.get(1));
    let lenient = layer.channels == Channels::Inferred && (found == 1 || of_bottoms.any(|channels| channels == Some(&found)));
    if found == made || lenient {
        return Ok(());
    }
    node.fail(Fault::Count { what: "channels of the result", found: found.to_string(), expected: made.to_string() })
}
