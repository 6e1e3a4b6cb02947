//! Reads a network: every key is known, every count agrees, every layer keeps its rules.

use super::node::{Map, Node, Placed};
use super::unit::{Unit, read_unit};
use super::{Fault, MAX_BYTES, NET, NETWORK_KEYS, NetError, TYPES, VERSION, guard};
use aneforge_map::Mapping;
use aneforge_mil::op::MAX_ELEMENTS;
use aneforge_mil::{Body, Constant, DType, Output, TensorType, ValueId, Weight};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Reads `net.plist`, XML or binary, and the weight files that it names, from a folder. Constants stay in their files.
///
/// # Errors
/// [`NetError`] with the place in the property list.
pub fn read(folder: &Path) -> Result<Body, NetError> {
    let path = folder.join(NET);
    let fail = |source| NetError::Read { path: path.clone(), source };
    let length = std::fs::metadata(&path).map_err(fail)?.len();
    if length > MAX_BYTES {
        return Err(NetError::Format { path, problem: format!("it has {length} bytes, the limit is {MAX_BYTES}") });
    }
    let bytes = std::fs::read(&path).map_err(fail)?;
    let value = guard::parse(&bytes).map_err(|problem| NetError::Format { path: path.clone(), problem })?;
    network(&Node::root(&value), folder).map_err(|(place, fault)| NetError::Place { path, place, fault })
}

/// What is known of a network while its units are read.
pub(super) struct Reading {
    pub(super) body: Body,
    /// Values by name: inputs, constants and the units read so far.
    pub(super) values: HashMap<String, ValueId>,
    /// Weight files by index.
    pub(super) files: Vec<Arc<Mapping>>,
}

const TOP_KEYS: [&str; 3] = ["Version", "Networks", "ProcedureList"];

fn network(root: &Node<'_>, folder: &Path) -> Placed<Body> {
    let top = root.map()?;
    top.get("Version")?.is_text(VERSION)?;
    let names = top.get("Networks")?;
    let [name] = names.texts()?[..] else {
        return names.fail(Fault::Value("holds not one network but another number".to_string()));
    };
    top.only(&[&TOP_KEYS[..], &[name]].concat())?;
    let Some(short) = name.strip_prefix("network_").filter(|short| !short.is_empty()) else {
        return names.fail(Fault::Wiring(format!("{name:?} does not begin with \"network_\"")));
    };
    let procedures = top.get("ProcedureList")?;
    let [procedure] = &procedures.array()?[..] else {
        return procedures.fail(Fault::Value("holds not one procedure but another number".to_string()));
    };
    let procedure = procedure.map()?;
    procedure.only(&["Name", "InputList", "OperationList", "OutputList"])?;
    procedure.get("Name")?.is_text(&format!("procedure_{short}"))?;
    let operations = procedure.get("OperationList")?;
    let [operation] = &operations.array()?[..] else {
        return operations.fail(Fault::Value("holds not one operation but another number".to_string()));
    };
    let operation = operation.map()?;
    operation.only(&["NetworkName", "OperationName"])?;
    operation.get("NetworkName")?.is_text(name)?;
    let call = operation.get("OperationName")?.text()?;

    let net = top.get(name)?.map()?;
    let mut reading = Reading {
        body: Body { name: short.to_string(), ..Body::default() },
        values: HashMap::new(),
        files: files(&net.get("Weights")?, folder)?,
    };
    let units = net.get("Units")?;
    let unit_names = distinct(&units)?;
    let inputs = inputs(&mut reading, &procedure.get("InputList")?, call, &unit_names)?;
    let constants = match net.find("Constants") {
        Some(list) => distinct(&list)?,
        None => Vec::new(),
    };
    for constant in &constants {
        read_constant(&mut reading, &net.get(constant)?, constant)?;
    }
    let mut known: Vec<&str> = NETWORK_KEYS.to_vec();
    known.extend(unit_names.iter().chain(&constants));
    for unit in &unit_names {
        let node = net.get(unit)?;
        let Unit { bottoms, value } = read_unit(&mut reading, &node, unit)?;
        // One entry for each input that the unit reads, and none else.
        let listed: HashSet<&str> = inputs.iter().filter(|(_, by)| by == unit).map(|(input, _)| input.as_str()).collect();
        let read: HashSet<&str> =
            bottoms.iter().copied().filter(|bottom| inputs.iter().any(|(input, _)| input == bottom)).collect();
        if listed != read {
            let show = |set: &HashSet<&str>| {
                let mut names: Vec<_> = set.iter().copied().collect();
                names.sort_unstable();
                names.join(", ")
            };
            let problem = format!("InputList has [{}] for unit {unit:?}, which reads [{}]", show(&listed), show(&read));
            return Err(("ProcedureList/0/InputList".to_string(), Fault::Wiring(problem)));
        }
        if reading.values.insert((*unit).to_string(), value).is_some() {
            return node.fail(Fault::Wiring(format!("{unit:?} is the name of an input or a constant as well")));
        }
    }
    let symbols = outputs(&mut reading, &procedure.get("OutputList")?, &net, call, &unit_names)?;
    known.extend(symbols.iter().map(String::as_str));
    net.only(&known)?;
    Ok(reading.body)
}

fn distinct<'a>(list: &Node<'a>) -> Placed<Vec<&'a str>> {
    let names = list.texts()?;
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(**name) || NETWORK_KEYS.contains(name)) {
        Some(name) => list.fail(Fault::Wiring(format!("{name:?} stands there twice or is a key of the network itself"))),
        None => Ok(names),
    }
}

fn files(list: &Node<'_>, folder: &Path) -> Placed<Vec<Arc<Mapping>>> {
    let mut files = Vec::new();
    for (index, node) in list.array()?.iter().enumerate() {
        // Nothing outside of the folder is read, and there is no end of files.
        node.is_text(&format!("weights.{index}"))?;
        if index >= super::WEIGHTS.len() {
            return node.fail(Fault::Value(format!("there are at most {} weight files", super::WEIGHTS.len())));
        }
        match Mapping::open(folder.join(super::WEIGHTS[index])) {
            Ok(mapping) => files.push(Arc::new(mapping)),
            Err(error) => return node.fail(Fault::Weights(error.to_string())),
        }
    }
    Ok(files)
}

/// Element type under a key.
pub(super) fn dtype(node: &Node<'_>) -> Placed<DType> {
    let text = node.text()?;
    match TYPES.iter().find(|row| row.1 == text) {
        Some(row) => Ok(row.0),
        None => node.fail(Fault::Value(format!("{text:?} is no element type of a net; it holds Float16 and UInt16"))),
    }
}

/// A tensor type from the keys of its extents, batch first.
fn tensor(map: &Map<'_>, ty: &str, keys: [&str; 4], depth: &str, interleave: &str) -> Placed<TensorType> {
    map.get(depth)?.is_int(1)?;
    map.get(interleave)?.is_int(1)?;
    let mut shape = [0; 4];
    for (extent, key) in shape.iter_mut().zip(keys) {
        *extent = map.get(key)?.extent()?;
    }
    let ty = TensorType::new(dtype(&map.get(ty)?)?, shape);
    match ty.checked_count() {
        Some(count) if count <= MAX_ELEMENTS => Ok(ty),
        _ => map.fail(Fault::Value(format!("{ty} has more elements than any engine addresses"))),
    }
}

const INPUT_KEYS: [&str; 4] = ["BatchSize", "InputChannels", "InputHeight", "InputWidth"];

/// Adds the inputs; gives each with the unit that reads it.
fn inputs(reading: &mut Reading, list: &Node<'_>, call: &str, units: &[&str]) -> Placed<Vec<(String, String)>> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for node in list.array()? {
        let entry = node.map()?;
        let own = ["InputDepth", "InputInterleave", "InputName", "InputType", "Name", "OperationName"];
        entry.only(&[&INPUT_KEYS[..], &own].concat())?;
        entry.get("OperationName")?.is_text(call)?;
        let ty = tensor(&entry, "InputType", INPUT_KEYS, "InputDepth", "InputInterleave")?;
        let (name, unit) = (entry.get("InputName")?.text()?, entry.get("Name")?.text()?);
        if name.is_empty() || NETWORK_KEYS.contains(&name) {
            return node.fail(Fault::Wiring(format!("{name:?} cannot be the name of an input")));
        }
        if !units.contains(&unit) {
            return node.fail(Fault::Wiring(format!("Name is {unit:?}, which is no unit")));
        }
        let pair = (name.to_string(), unit.to_string());
        if pairs.contains(&pair) {
            return node.fail(Fault::Wiring(format!("input {name:?} stands there twice for unit {unit:?}")));
        }
        match reading.values.get(name) {
            Some(&known) if reading.body.ty(known) == &ty => {}
            Some(&known) => {
                let problem = format!("input {name:?} is {ty} here and {} before", reading.body.ty(known));
                return node.fail(Fault::Wiring(problem));
            }
            None => {
                let id = reading.body.add_input(name, ty);
                reading.values.insert(name.to_string(), id);
            }
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

const CONSTANT_KEYS: [&str; 4] = ["ConstantBatchSize", "ConstantChannels", "ConstantHeight", "ConstantWidth"];

fn read_constant(reading: &mut Reading, node: &Node<'_>, name: &str) -> Placed<()> {
    let entry = node.map()?;
    let own = ["ConstantByteOffset", "ConstantDepth", "ConstantIndex", "ConstantInterleave", "ConstantName", "ConstantType"];
    entry.only(&[&CONSTANT_KEYS[..], &own].concat())?;
    entry.get("ConstantName")?.is_text(name)?;
    let ty = tensor(&entry, "ConstantType", CONSTANT_KEYS, "ConstantDepth", "ConstantInterleave")?;
    let weight = stored(reading, ty.clone(), &entry.get("ConstantIndex")?, &entry.get("ConstantByteOffset")?)?;
    let id = reading.body.add_constant(name, ty, Constant::Weight(weight));
    match reading.values.insert(name.to_string(), id) {
        Some(_) => node.fail(Fault::Wiring(format!("{name:?} is the name of an input as well"))),
        None => Ok(()),
    }
}

/// A tensor in a weight file.
pub(super) fn stored(reading: &Reading, ty: TensorType, index: &Node<'_>, offset: &Node<'_>) -> Placed<Weight> {
    let file = usize::try_from(index.int()?).ok().and_then(|index| reading.files.get(index));
    let Some(file) = file else { return index.fail(Fault::Weights(format!("there are {} weight files", reading.files.len()))) };
    let place = match usize::try_from(offset.int()?) {
        Ok(place) if place % 2 == 0 => place,
        _ => return offset.fail(Fault::Weights("expected an even number of bytes".to_string())),
    };
    let dtype = ty.dtype;
    Weight::from_mapping(ty, dtype, file.clone(), place).or_else(|error| offset.fail(Fault::Weights(error.to_string())))
}

fn outputs(reading: &mut Reading, list: &Node<'_>, net: &Map<'_>, call: &str, units: &[&str]) -> Placed<Vec<String>> {
    let mut symbols: Vec<String> = Vec::new();
    for node in list.array()? {
        let entry = node.map()?;
        entry.only(&["Name", "OperationName", "OutputInterleave", "OutputName", "OutputType", "OutputChannels"])?;
        entry.get("OperationName")?.is_text(call)?;
        entry.get("OutputInterleave")?.is_int(1)?;
        let (unit, symbol) = (entry.get("Name")?.text()?, entry.get("OutputName")?.text()?);
        if !units.contains(&unit) {
            return node.fail(Fault::Wiring(format!("Name is {unit:?}, which is no unit")));
        }
        if symbols.iter().any(|known| known == symbol) || NETWORK_KEYS.contains(&symbol) || reading.values.contains_key(symbol) {
            return node.fail(Fault::Wiring(format!("the output name {symbol:?} is taken")));
        }
        let Some(&value) = reading.values.get(unit) else { return node.fail(Fault::Wiring(format!("{unit:?} makes nothing"))) };
        let ty = reading.body.ty(value).clone();
        if dtype(&entry.get("OutputType")?)? != ty.dtype {
            return node.fail(Fault::Wiring(format!("OutputType is not that of unit {unit:?}, which makes {ty}")));
        }
        if let Some(channels) = entry.find("OutputChannels") {
            let (found, expected) = (channels.int()?, ty.shape.get(1).copied().unwrap_or(0));
            if usize::try_from(found) != Ok(expected) {
                let fault = Fault::Count { what: "channels", found: found.to_string(), expected: expected.to_string() };
                return channels.fail(fault);
            }
        }
        let place = net.get(symbol)?.map()?;
        place.only(&["Bottom", "OutputInterleave", "OutputName", "OutputType"])?;
        place.get("Bottom")?.is_text(unit)?;
        place.get("OutputName")?.is_text(symbol)?;
        place.get("OutputInterleave")?.is_int(1)?;
        dtype(&place.get("OutputType")?)?;
        reading.body.outputs.push(Output { name: symbol.to_string(), value });
        symbols.push(symbol.to_string());
    }
    if symbols.is_empty() {
        return list.fail(Fault::Value("a network has at least one output".to_string()));
    }
    Ok(symbols)
}
