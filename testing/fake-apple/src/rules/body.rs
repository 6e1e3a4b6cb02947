//! Predicates on functions.

use super::inspect::Use;
use super::what::{What, dtype};
use aneforge_mil::{Body, Constant, ValueKind};
use std::collections::HashSet;

/// What was found, where the predicate is one on functions and this one meets it.
pub fn meets(what: &What, body: &Body) -> Option<String> {
    match what {
        What::Operator { ops } => {
            let found = body.operations.iter().find(|operation| ops.iter().any(|op| op == operation.op.name))?;
            Some(Use { body, operation: found }.name())
        }
        What::PortGiven { op, port } => {
            let found = Use::of(body, op).find(|site| site.value(port).is_some())?;
            Some(format!("{} has {port}", found.name()))
        }
        What::PortMissing { op, port } => {
            let found = Use::of(body, op).find(|site| site.value(port).is_none())?;
            Some(format!("{} has no {port}", found.name()))
        }
        What::PortRank { op, port, at_least } => {
            let found = Use::of(body, op).find(|site| site.shape(port).is_some_and(|shape| shape.len() >= *at_least))?;
            Some(format!("{} has {port} of rank {at_least} or more", found.name()))
        }
        What::PortExtent { op, port, axis, above } => {
            let extent = |shape: &[usize]| {
                let place = if *axis < 0 { shape.len().checked_sub(axis.unsigned_abs() as usize) } else { Some(*axis as usize) };
                place.and_then(|place| shape.get(place).copied())
            };
            let long = |site: &Use<'_>| site.shape(port).and_then(extent).is_some_and(|extent| extent > *above);
            let found = Use::of(body, op).find(long)?;
            Some(format!("{} has {port} with axis {axis} above {above}", found.name()))
        }
        What::PortNumber { op, port, is } => {
            let one_of =
                |site: &Use<'_>| site.numbers(port).is_some_and(|all| all.iter().any(|&n| is.iter().any(|&i| i as f64 == n)));
            let found = Use::of(body, op).find(one_of)?;
            Some(format!("{} has {port} in {is:?}", found.name()))
        }
        What::ReducedExtent { op, above } => {
            let found = Use::of(body, op).find(|site| site.worked_extent() > *above)?;
            Some(format!("{} works on more than {above} elements", found.name()))
        }
        What::NotPowerOfTwo { op } => {
            let found = Use::of(body, op).find(|site| !site.worked_extent().is_power_of_two())?;
            Some(format!("{} works on {} elements", found.name(), found.worked_extent()))
        }
        What::NormExtent { op, is, at_least } => {
            let found = Use::of(body, op).find(|site| is.contains(&site.worked_extent()) || site.worked_extent() >= *at_least)?;
            Some(format!("{} works on {} elements", found.name(), found.worked_extent()))
        }
        What::NormAffine { op, rank, at_least } => {
            let affine = |site: &Use<'_>| site.value("gamma").is_some() || site.value("beta").is_some();
            let wide = |site: &Use<'_>| site.shape("x").is_some_and(|x| x.len() >= *rank) && site.worked_extent() >= *at_least;
            let found = Use::of(body, op).find(|site| affine(site) && wide(site))?;
            Some(format!("{} has gain or offset over {} elements", found.name(), found.worked_extent()))
        }
        What::RuntimeWeight { op, port, grouped, batch } => {
            let groups = |site: &Use<'_>| site.numbers("groups").and_then(|all| all.first().copied()).unwrap_or(1.0);
            let batches = |site: &Use<'_>| site.shape("x").and_then(|x| x.first().copied()).unwrap_or(1);
            let runtime = |site: &Use<'_>| site.value(port).is_some_and(|id| !site.is_weight(id));
            let met =
                |site: &Use<'_>| runtime(site) && (!grouped || groups(site) > 1.0) && batch.is_none_or(|n| batches(site) >= n);
            let found = Use::of(body, op).find(met)?;
            Some(format!("{} takes {port} at run time", found.name()))
        }
        What::TakesInput { op, port } => {
            let input = |site: &Use<'_>| site.value(port).is_some_and(|id| body.value(id).kind == ValueKind::Input);
            let found = Use::of(body, op).find(input)?;
            Some(format!("{} takes an input of the function", found.name()))
        }
        _ => wider(what, body),
    }
}

/// Those that look at more than one port of one operation.
fn wider(what: &What, body: &Body) -> Option<String> {
    match what {
        What::MadeBy { ops, ports, by } => {
            let made = |site: &Use<'_>| {
                let values = ports.iter().filter_map(|port| site.value(port));
                values.filter_map(|id| body.producer(id)).any(|producer| producer.op.name.starts_with(by.as_str()))
            };
            let found = ops.iter().flat_map(|op| Use::of(body, op)).find(made)?;
            Some(format!("{} takes a result of {by}", found.name()))
        }
        What::Conversion { from, to } => {
            let is = |wanted: &Option<String>, id| wanted.as_deref().is_none_or(|name| dtype(name) == Some(body.ty(id).dtype));
            let met = |site: &Use<'_>| {
                let ends = site.value("x").zip(site.operation.outputs.first().copied());
                ends.is_some_and(|(x, y)| body.ty(x).dtype != body.ty(y).dtype && is(from, x) && is(to, y))
            };
            Use::of(body, "cast").find(met).map(|found| found.name())
        }
        What::Extent { above, channels } => {
            let results = body.operations.iter().flat_map(|operation| operation.outputs.iter().copied());
            let mut values = body.inputs.iter().copied().chain(body.states.iter().map(|state| state.input)).chain(results);
            let long = |ty: &aneforge_mil::TensorType| {
                let axes = ty.shape.iter().enumerate().filter(|(axis, _)| (ty.rank() == 4 && *axis == 1) == *channels);
                axes.map(|(_, &extent)| extent).any(|extent| extent > *above)
            };
            let found = values.find(|&id| long(body.ty(id)))?;
            Some(format!("{:?} is {}, the limit is {above}", body.value(found).name, body.ty(found)))
        }
        What::PortType { types } => {
            let mut ports = body.inputs.iter().copied().chain(body.outputs.iter().map(|output| output.value));
            let refused = |id: &aneforge_mil::ValueId| types.iter().any(|name| dtype(name) == Some(body.ty(*id).dtype));
            let found = ports.find(refused)?;
            Some(format!("port {:?} is {}", body.value(found).name, body.ty(found)))
        }
        What::UnmadeOutput {} => {
            let unmade = |output: &&aneforge_mil::Output| body.value(output.value).kind == ValueKind::Input;
            body.outputs.iter().find(unmade).map(|output| format!("output {:?} is an input", output.name))
        }
        What::OneOfOutputs { op } if body.outputs.len() > 1 => {
            let made = |output: &&aneforge_mil::Output| body.producer(output.value).is_some_and(|producer| producer.op.name == op);
            body.outputs.iter().find(made).map(|output| format!("output {:?} is made by {op}", output.name))
        }
        What::ZeroProduct {} => {
            let zero = |site: &Use<'_>, port: &str| site.numbers(port).is_some_and(|all| all.iter().all(|&n| n == 0.0));
            let reduced = |site: &Use<'_>, port: &str| {
                let producer = site.value(port).and_then(|id| body.producer(id));
                producer.is_some_and(|producer| producer.op.name.starts_with("reduce_"))
            };
            let met = |site: &Use<'_>| (zero(site, "x") && reduced(site, "y")) || (zero(site, "y") && reduced(site, "x"));
            Use::of(body, "mul").find(met).map(|found| format!("{} multiplies a reduction by zero", found.name()))
        }
        What::SquareWidth { modulus, above } => {
            let read: HashSet<_> = body
                .operations
                .iter()
                .filter(|user| TABLES.contains(&user.op.name))
                .flat_map(|user| user.arguments.iter().flat_map(|operand| operand.values().iter().copied()))
                .collect();
            let wide = |site: &Use<'_>| site.shape("x").and_then(<[usize]>::last).is_some_and(|width| width % modulus > *above);
            let met = |site: &Use<'_>| wide(site) && site.operation.outputs.iter().any(|id| read.contains(id));
            Use::of(body, "square").find(met).map(|found| format!("{} of such a width is read by a table function", found.name()))
        }
        What::PatchConvolution {} => {
            let met = |site: &Use<'_>| {
                let (kernel, strides) = (site.shape("weight").and_then(|w| w.get(2..)), site.numbers("strides"));
                kernel.zip(strides).is_some_and(|(kernel, strides)| {
                    kernel.len() == strides.len() && kernel.iter().zip(&strides).all(|(&k, &s)| k > 1 && k as f64 == s)
                })
            };
            Use::of(body, "conv").find(met).map(|found| format!("{} moves by its own kernel", found.name()))
        }
        What::ConstantBytes { above } => {
            let stored = body.values.iter().filter(|value| matches!(&value.kind, ValueKind::Constant(Constant::Weight(_))));
            let bytes: u64 = stored.map(|value| value.ty.dtype.packed_bytes(value.ty.count()) as u64).sum();
            (bytes > *above).then(|| format!("{bytes} bytes of constants"))
        }
        What::InnerExtent { multiple } => {
            let met = |site: &Use<'_>| {
                let values = [site.value("x"), site.value("y")];
                let flag = |port: &str| site.numbers(port).is_some_and(|all| all.first() == Some(&1.0));
                let inner =
                    site.shape("x").and_then(|x| x.get(x.len().checked_sub(if flag("transpose_x") { 2 } else { 1 })?).copied());
                values.into_iter().flatten().all(|id| !site.is_weight(id)) && inner.is_some_and(|inner| inner % multiple != 0)
            };
            Use::of(body, "matmul").find(met).map(|found| format!("{} has an inner extent of another size", found.name()))
        }
        _ => None,
    }
}

/// Functions that the engine reads from a table.
const TABLES: [&str; 15] =
    ["gelu", "exp", "exp2", "log", "sqrt", "rsqrt", "inverse", "sigmoid", "tanh", "erf", "silu", "sin", "cos", "atan", "softplus"];
