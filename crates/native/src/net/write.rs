//! Writes a body of native layers as a network.

use super::encode::{dictionary, int, params, value};
use super::{NET, NETWORK_KEYS, NetError, TYPES, VERSION, WEIGHTS};
use crate::{Channels, Layer, ParamKind, layer};
use aneforge_mil::{Body, Constant, DType, Operand, Operation, TensorType, ValueId, ValueKind};
use plist::Value;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Constants begin at multiples of this: the granule of the engine's descriptors (arXiv 2606.22283, chapter 21).
const ALIGNMENT: usize = 64;

/// Writes `net.plist`, `weights.0` and, where there are constants, `weights.1` into a folder that exists. Each file appears whole.
///
/// Results carry the names of the body's outputs; published nets have one, called `y`. Several outputs follow the schema's lists, which
/// is not known to have been tried.
///
/// # Errors
/// [`NetError::Body`] for what a network cannot say, [`NetError::Write`].
pub fn write(body: &Body, folder: &Path) -> Result<(), NetError> {
    let net = Net::new(body)?;
    let value = net.value()?;
    whole(&folder.join(WEIGHTS[0]), |_| Ok(()))?;
    if !net.weights.is_empty() {
        whole(&folder.join(WEIGHTS[1]), |file| net.write_weights(file))?;
    }
    whole(&folder.join(NET), |file| value.to_writer_xml(file).map_err(|error| std::io::Error::other(error.to_string())))
}

/// Writes a file under another name first.
fn whole(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), NetError> {
    let fail = |source| NetError::Write { path: path.to_path_buf(), source };
    let mut name = path.as_os_str().to_os_string();
    name.push(".part");
    let write = || {
        let mut file = BufWriter::new(File::create(&name)?);
        fill(&mut file)?;
        file.flush()?;
        std::fs::rename(&name, path)
    };
    write().map_err(|source| {
        let _ = std::fs::remove_file(&name);
        fail(source)
    })
}

/// A body with the names that its parts have in the network.
struct Net<'a> {
    body: &'a Body,
    names: HashMap<ValueId, String>,
    /// Constants in `weights.1` with their places.
    weights: Vec<(ValueId, usize)>,
}

impl<'a> Net<'a> {
    fn new(body: &'a Body) -> Result<Self, NetError> {
        let mut net = Net { body, names: HashMap::new(), weights: Vec::new() };
        let mut taken: HashSet<String> = NETWORK_KEYS.iter().map(ToString::to_string).collect();
        for output in &body.outputs {
            if !matches!(body.value(output.value).kind, ValueKind::Result { .. }) {
                return Err(refuse(&output.name, "a result must be that of a layer: return inputs and constants elsewhere"));
            }
            if !taken.insert(output.name.clone()) {
                return Err(refuse(&output.name, "the name of a result stands there twice or is one of net.plist's own"));
            }
        }
        for &id in &body.inputs {
            let name = &body.value(id).name;
            if !taken.insert(name.clone()) {
                return Err(refuse(name, "an input needs a name of its own that net.plist does not use itself"));
            }
            net.names.insert(id, name.clone());
        }
        for operation in &body.operations {
            let layer = layer::of(operation.op).ok_or_else(|| refuse(operation.op.name, "it is no native layer"))?;
            for id in bottoms(operation, layer).chain(kernel(operation, layer)) {
                net.constant(id, &mut taken)?;
            }
            let [result] = operation.outputs.as_slice() else { return Err(refuse(operation.op.name, "a layer has one result")) };
            let name = fresh(&body.value(*result).name, &mut taken);
            net.names.insert(*result, name);
        }
        let used: HashSet<ValueId> =
            body.operations.iter().flat_map(|op| op.arguments.iter().flat_map(Operand::values)).copied().collect();
        match body.inputs.iter().find(|id| !used.contains(id)) {
            Some(&id) => Err(refuse(&body.value(id).name, "no layer reads this input: drop it")),
            None => Ok(net),
        }
    }

    /// Gives a constant a place in the weight file.
    fn constant(&mut self, id: ValueId, taken: &mut HashSet<String>) -> Result<(), NetError> {
        if self.body.constant(id).is_none() || self.weights.iter().any(|(known, _)| *known == id) {
            return Ok(());
        }
        let ty = self.body.ty(id);
        let end = self.weights.last().map_or(0, |&(last, offset)| offset + bytes(self.body.ty(last)));
        type_name(&self.body.value(id).name, ty)?;
        self.weights.push((id, end.next_multiple_of(ALIGNMENT)));
        let name = fresh(&self.body.value(id).name, taken);
        self.names.insert(id, name);
        Ok(())
    }

    fn name(&self, id: ValueId) -> String {
        self.names.get(&id).cloned().unwrap_or_default()
    }

    fn value(&self) -> Result<Value, NetError> {
        let network = format!("network_{}", self.body.name);
        let mut inputs = Vec::new();
        let mut entries: Vec<(String, Value)> = Vec::new();
        for operation in &self.body.operations {
            let Some(layer) = layer::of(operation.op) else { continue };
            let unit = operation.outputs.first().map(|&id| self.name(id)).unwrap_or_default();
            let mut seen = HashSet::new();
            for id in bottoms(operation, layer).filter(|id| self.body.inputs.contains(id)) {
                if seen.insert(id) {
                    inputs.push(self.input(id, &unit)?);
                }
            }
            entries.push((unit.clone(), self.unit(operation, layer, &unit)?));
        }
        let units: Vec<Value> = entries.iter().map(|(name, _)| Value::from(name.as_str())).collect();
        let mut outputs = Vec::new();
        for output in &self.body.outputs {
            let unit = self.name(output.value);
            let common = [("OutputInterleave".to_string(), int(1)), ("OutputName".to_string(), Value::from(output.name.as_str()))];
            let ty = Value::from(type_name(&output.name, self.body.ty(output.value))?);
            let common: Vec<_> = common.into_iter().chain([("OutputType".to_string(), ty)]).collect();
            let bottom = [("Bottom".to_string(), Value::from(unit.as_str()))];
            entries.push((output.name.clone(), dictionary(common.iter().cloned().chain(bottom))));
            let place = [("Name".to_string(), Value::from(unit)), ("OperationName".to_string(), Value::from("op0"))];
            outputs.push(dictionary(common.into_iter().chain(place)));
        }
        entries.push(("Units".to_string(), Value::Array(units)));
        let files = if self.weights.is_empty() { &WEIGHTS[..1] } else { &WEIGHTS[..] };
        entries.push(("Weights".to_string(), Value::Array(files.iter().map(|&name| Value::from(name)).collect())));
        let listed: Vec<ValueId> = self.listed().collect();
        if !listed.is_empty() {
            let names = listed.iter().map(|&id| Value::from(self.name(id))).collect();
            entries.push(("Constants".to_string(), Value::Array(names)));
        }
        for &id in &listed {
            entries.push((self.name(id), self.entry(id)?));
        }
        let operation =
            [("NetworkName".to_string(), Value::from(network.as_str())), ("OperationName".to_string(), Value::from("op0"))];
        let procedure = dictionary([
            ("Name".to_string(), Value::from(format!("procedure_{}", self.body.name))),
            ("InputList".to_string(), Value::Array(inputs)),
            ("OperationList".to_string(), Value::Array(vec![dictionary(operation)])),
            ("OutputList".to_string(), Value::Array(outputs)),
        ]);
        Ok(dictionary([
            ("Version".to_string(), Value::from(VERSION)),
            ("Networks".to_string(), Value::Array(vec![Value::from(network.as_str())])),
            ("ProcedureList".to_string(), Value::Array(vec![procedure])),
            (network, dictionary(entries)),
        ]))
    }

    /// Constants that stand in `Constants`: all but kernels, whose place the unit itself says.
    fn listed(&self) -> impl Iterator<Item = ValueId> {
        let bottom = |id: &ValueId| {
            self.body.operations.iter().any(|op| layer::of(op.op).is_some_and(|layer| bottoms(op, layer).any(|other| other == *id)))
        };
        self.weights.iter().map(|(id, _)| *id).filter(bottom)
    }

    fn offset(&self, id: ValueId) -> usize {
        self.weights.iter().find(|(known, _)| *known == id).map_or(0, |(_, offset)| *offset)
    }

    fn input(&self, id: ValueId, unit: &str) -> Result<Value, NetError> {
        let name = self.name(id);
        let [batch, channels, height, width] = extents(&name, self.body.ty(id))?;
        Ok(dictionary([
            ("BatchSize".to_string(), int(batch)),
            ("InputChannels".to_string(), int(channels)),
            ("InputDepth".to_string(), int(1)),
            ("InputHeight".to_string(), int(height)),
            ("InputInterleave".to_string(), int(1)),
            ("InputName".to_string(), Value::from(name.as_str())),
            ("InputType".to_string(), Value::from(type_name(&name, self.body.ty(id))?)),
            ("InputWidth".to_string(), int(width)),
            ("Name".to_string(), Value::from(unit)),
            ("OperationName".to_string(), Value::from("op0")),
        ]))
    }

    fn entry(&self, id: ValueId) -> Result<Value, NetError> {
        let (name, ty) = (self.name(id), self.body.ty(id));
        let [batch, channels, height, width] = extents(&name, ty)?;
        Ok(dictionary([
            ("ConstantBatchSize".to_string(), int(batch)),
            ("ConstantByteOffset".to_string(), int(self.offset(id))),
            ("ConstantChannels".to_string(), int(channels)),
            ("ConstantDepth".to_string(), int(1)),
            ("ConstantHeight".to_string(), int(height)),
            ("ConstantIndex".to_string(), int(1)),
            ("ConstantInterleave".to_string(), int(1)),
            ("ConstantName".to_string(), Value::from(name.as_str())),
            ("ConstantType".to_string(), Value::from(type_name(&name, ty)?)),
            ("ConstantWidth".to_string(), int(width)),
        ]))
    }

    fn unit(&self, operation: &Operation, layer: &Layer, name: &str) -> Result<Value, NetError> {
        let ids: Vec<ValueId> = bottoms(operation, layer).collect();
        let mut types = Vec::with_capacity(ids.len());
        for &id in &ids {
            types.push(Value::from(type_name(&self.name(id), self.body.ty(id))?));
        }
        let mut entries = vec![
            ("Bottom".to_string(), Value::Array(ids.iter().map(|&id| Value::from(self.name(id))).collect())),
            ("InputType".to_string(), Value::Array(types)),
            ("Name".to_string(), Value::from(name)),
            ("OutputType".to_string(), Value::from("Float16")),
            ("Type".to_string(), Value::from(layer.op.name)),
        ];
        let result = operation.outputs.first().map(|&id| self.body.ty(id));
        let [_, channels, _, _] = result.map_or(Ok([1; 4]), |ty| extents(name, ty))?;
        if layer.channels != Channels::Omitted {
            entries.push(("OutputChannels".to_string(), int(channels)));
        }
        let mut inside = params(self.body, operation, layer)?;
        for param in layer.params {
            match param.kind {
                ParamKind::UnitInt => {
                    let value = value(self.body, operation, param.key, param)?;
                    entries.extend(value.map(|value| (param.key.to_string(), value)));
                }
                ParamKind::Kernel => {
                    inside.push(("KernelType".to_string(), Value::from("Float16")));
                    if let Some(id) = kernel(operation, layer).next() {
                        inside.push(("KernelIndex".to_string(), int(1)));
                        inside.push(("KernelOffset".to_string(), int(self.offset(id))));
                    }
                }
                _ => {}
            }
        }
        // Published nets have an empty dictionary in a cross product and none in a matrix product.
        if !std::ptr::eq(&raw const layer.op, &raw const layer::MATRIX_MULTIPLICATION.op) {
            entries.push(("Params".to_string(), dictionary(inside)));
        }
        Ok(dictionary(entries))
    }

    fn write_weights(&self, file: &mut dyn Write) -> std::io::Result<()> {
        let mut at = 0;
        for &(id, offset) in &self.weights {
            file.write_all(&vec![0; offset - at])?;
            match self.body.constant(id) {
                Some(Constant::Weight(weight)) => weight
                    .stream(&mut |bytes| file.write_all(bytes).map_err(|error| aneforge_mil::WeightError::Other(error.to_string())))
                    .map_err(|error| std::io::Error::other(error.to_string()))?,
                Some(Constant::Values(values)) => {
                    for &value in values {
                        let word =
                            if self.body.ty(id).dtype == DType::Fp16 { half::f16::from_f64(value).to_bits() } else { value as u16 };
                        file.write_all(&word.to_le_bytes())?;
                    }
                }
                _ => {}
            }
            at = offset + bytes(self.body.ty(id));
        }
        Ok(())
    }
}

/// Values at the ports that `Bottom` names, in its order.
fn bottoms<'a>(operation: &'a Operation, layer: &'a Layer) -> impl Iterator<Item = ValueId> + use<'a> {
    // The longest list has every port; those that are left out of a use are absent.
    let ports = layer.bottoms.iter().max_by_key(|ports| ports.len()).copied().unwrap_or_default();
    ports.iter().flat_map(|port| values_at(operation, port))
}

fn kernel<'a>(operation: &'a Operation, layer: &'a Layer) -> impl Iterator<Item = ValueId> + use<'a> {
    let port = layer.params.iter().find(|param| matches!(param.kind, ParamKind::Kernel)).map_or("", |param| param.key);
    values_at(operation, port)
}

fn values_at<'a>(operation: &'a Operation, port: &str) -> impl Iterator<Item = ValueId> + use<'a> {
    let operand = operation.op.port(port).and_then(|index| operation.arguments.get(index));
    operand.map_or(&[][..], Operand::values).iter().copied()
}

fn bytes(ty: &TensorType) -> usize {
    ty.dtype.packed_bytes(ty.count())
}

fn extents(name: &str, ty: &TensorType) -> Result<[usize; 4], NetError> {
    <[usize; 4]>::try_from(ty.shape.as_slice()).map_err(|_| {
        refuse(name, &format!("it is {ty}, but a tensor of a net has four axes [batch, channels, height, width]: reshape it"))
    })
}

fn type_name(name: &str, ty: &TensorType) -> Result<&'static str, NetError> {
    let row = TYPES.iter().find(|row| row.0 == ty.dtype);
    row.map(|row| row.1).ok_or_else(|| refuse(name, &format!("it is {ty}, but a net holds fp16 and uint16: cast it")))
}

fn fresh(hint: &str, taken: &mut HashSet<String>) -> String {
    let mut name = hint.to_string();
    let mut number = 1;
    while !taken.insert(name.clone()) {
        name = format!("{hint}_{number}");
        number += 1;
    }
    name
}

fn refuse(name: &str, problem: &str) -> NetError {
    NetError::Body { name: name.to_string(), problem: problem.to_string() }
}
