//! `aneforge inspect`

use crate::failure::Failure;
use crate::{output, package};
use aneforge::Manifest;
use aneforge::compile::{Link, Move, SegmentKind};
use aneforge::io::SafeTensors;
use aneforge::mil::{BlobFile, Program as Text, Type};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Show what a bundle, a Core ML package, a MIL text, a weight file or a safetensors file holds.
#[derive(clap::Args)]
pub struct Options {
    /// Bundle folder, .mlpackage, model.mil, weights.bin or .safetensors.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A program text in short.
#[derive(Serialize)]
struct Outline {
    version: String,
    functions: Vec<FunctionOutline>,
}

#[derive(Serialize)]
struct FunctionOutline {
    name: String,
    opset: String,
    inputs: Vec<Row>,
    outputs: Vec<String>,
    operations: BTreeMap<String, usize>,
}

/// A named piece of data.
#[derive(Serialize)]
struct Row {
    name: String,
    ty: String,
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct Weights {
    weights: Vec<Row>,
}

#[derive(Serialize)]
struct Bundle {
    manifest: Manifest,
    program: Outline,
    weights: Vec<Row>,
}

/// A bundle in segments.
#[derive(Serialize)]
struct Segmented {
    manifest: Manifest,
    segments: Vec<Part>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part {
    Mil { program: Outline, weights: Vec<Row> },
    Native { network: Network },
}

/// A network of native layers in short.
#[derive(Serialize)]
struct Network {
    inputs: Vec<Row>,
    outputs: Vec<Row>,
    layers: BTreeMap<String, usize>,
}

/// Reads and tells; the kind of file is told by its name.
pub fn run(options: &Options) -> Result<(), Failure> {
    let path = &options.path;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if package::is_package(path) {
        return core_ml(path, options.json);
    }
    if path.is_dir() {
        return bundle(path, options.json);
    }
    match extension {
        "mil" => {
            let outline = outline(path)?;
            if options.json { output::json(&outline) } else { output::data(&show_outline(&outline)) }
        }
        "bin" => weights(blobs(path)?, options.json),
        "safetensors" => {
            let file = SafeTensors::open(path)?;
            let row = |(name, info): (&str, &aneforge::io::TensorInfo)| Row {
                name: name.to_string(),
                ty: info.ty.to_string(),
                bytes: Some(info.bytes as u64),
            };
            weights(file.tensors().map(row).collect(), options.json)
        }
        _ => Err(Failure::Input(format!("{} is neither a bundle folder nor a .mil, .bin or .safetensors file", path.display()))),
    }
}

fn bundle(folder: &Path, json: bool) -> Result<(), Failure> {
    let checked = aneforge::io::bundle::check(folder)?;
    let Some(manifest) = checked.manifest else {
        return Err(Failure::Input(format!("{} has no {}", folder.display(), aneforge::compile::bundle::MANIFEST)));
    };
    if checked.is_text_edited {
        output::note("the program's text was edited after compiling");
    }
    if !manifest.segments.is_empty() {
        return segments(folder, manifest, json);
    }
    let program = outline(&folder.join(aneforge::compile::bundle::TEXT))?;
    let blobs = blobs(&folder.join(aneforge::compile::bundle::WEIGHTS))?;
    if json {
        return output::json(&Bundle { manifest, program, weights: blobs });
    }
    let size: u64 = blobs.iter().filter_map(|row| row.bytes).sum();
    let mut shown = format!("bundle for {}, written by version {}\n", manifest.target, manifest.version);
    shown.push_str(&show_outline(&program));
    for output in &manifest.outputs {
        shown.push_str(&format!("  output {} {} {}\n", output.name, output.dtype, output::shape(&output.shape)));
    }
    shown.push_str(&format!("{} weight(s), {}\n", blobs.len(), output::bytes(size)));
    output::data(&shown)
}

/// A Core ML package.
#[derive(Serialize)]
struct CoreMl {
    specification: i32,
    functions: Vec<FunctionOutline>,
    weights: Vec<Row>,
}

fn core_ml(folder: &Path, json: bool) -> Result<(), Failure> {
    let opened = aneforge::mlpackage::Package::open(folder).map_err(|error| Failure::input(&error))?;
    let functions = opened.functions().into_iter().map(|function| FunctionOutline {
        name: function.name,
        opset: function.opset,
        inputs: function.inputs.into_iter().map(|(name, ty)| Row { name, ty, bytes: None }).collect(),
        outputs: function.outputs,
        operations: function.operations,
    });
    let functions = functions.collect();
    let weights = package::weights(folder).map_or(Ok(Vec::new()), |file| blobs(&file))?;
    let specification = opened.specification();
    if json {
        return output::json(&CoreMl { specification, functions, weights });
    }
    let size: u64 = weights.iter().filter_map(|row| row.bytes).sum();
    let outline = Outline { version: format!("of Core ML specification {specification}"), functions };
    output::data(&format!("{}{} weight(s), {}\n", show_outline(&outline), weights.len(), output::bytes(size)))
}

/// A bundle in segments: each of them, and how they are linked.
fn segments(folder: &Path, manifest: Manifest, json: bool) -> Result<(), Failure> {
    let mut parts = Vec::new();
    for (index, entry) in manifest.segments.iter().enumerate() {
        let place = folder.join(aneforge::compile::bundle::SEGMENTS).join(index.to_string());
        parts.push(match entry.kind {
            SegmentKind::Mil => Part::Mil {
                program: outline(&place.join(aneforge::compile::bundle::TEXT))?,
                weights: blobs(&place.join(aneforge::compile::bundle::WEIGHTS))?,
            },
            SegmentKind::Native => Part::Native { network: network(&place)? },
        });
    }
    if json {
        return output::json(&Segmented { manifest, segments: parts });
    }
    let mut shown =
        format!("bundle for {} in {} segments, written by version {}\n", manifest.target, parts.len(), manifest.version);
    for (index, (part, entry)) in parts.iter().zip(&manifest.segments).enumerate() {
        shown.push_str(&format!("segment {index}: "));
        match part {
            Part::Mil { program, weights } => {
                shown.push_str(&show_outline(program));
                let size: u64 = weights.iter().filter_map(|row| row.bytes).sum();
                shown.push_str(&format!("  {} weight(s), {}\n", weights.len(), output::bytes(size)));
            }
            Part::Native { network } => {
                shown.push_str("native layers\n");
                let rows: Vec<_> =
                    network.layers.iter().map(|(layer, count)| vec![format!("  {count:>5}"), layer.clone()]).collect();
                shown.push_str(&output::table(&rows, &[]));
            }
        }
        entry.inputs.iter().for_each(|link| shown.push_str(&show_link(link)));
    }
    shown.push_str("outputs\n");
    manifest.results.iter().for_each(|link| shown.push_str(&show_link(link)));
    output::data(&shown)
}

fn network(folder: &Path) -> Result<Network, Failure> {
    let body = aneforge::native::net::read(folder).map_err(|error| Failure::input(&error))?;
    let row = |name: &str, ty: String| Row { name: name.to_string(), ty, bytes: None };
    let mut layers = BTreeMap::new();
    for operation in &body.operations {
        *layers.entry(operation.op.name.to_string()).or_insert(0) += 1;
    }
    Ok(Network {
        inputs: body.inputs.iter().map(|&id| row(&body.value(id).name, body.ty(id).to_string())).collect(),
        outputs: body.outputs.iter().map(|output| row(&output.name, body.ty(output.value).to_string())).collect(),
        layers,
    })
}

fn show_link(link: &Link) -> String {
    let from = link.segment.map_or("the program's input".to_string(), |segment| format!("segment {segment}'s"));
    let moves: Vec<String> = link
        .layout
        .iter()
        .map(|step| match step {
            Move::Reshape(shape) => format!(", reshaped to {}", output::shape(shape)),
            Move::Transpose(order) => format!(", axes in the order {}", output::shape(order)),
        })
        .collect();
    format!("  {} from {from} {}{}\n", link.port, link.value, moves.concat())
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::Input(format!("cannot read {}: {error}", path.display())))
}

fn outline(path: &Path) -> Result<Outline, Failure> {
    let program: Text =
        aneforge::mil::parse(&read(path)?).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
    let functions = program
        .functions
        .into_iter()
        .map(|function| {
            let mut operations = BTreeMap::new();
            for statement in &function.body {
                *operations.entry(statement.op.clone()).or_insert(0) += 1;
            }
            let row = |name: String, ty: &Type| Row { name, ty: ty.to_string(), bytes: None };
            FunctionOutline {
                inputs: function.inputs.into_iter().map(|port| row(port.name, &port.ty)).collect(),
                name: function.name,
                opset: function.opset,
                outputs: function.outputs,
                operations,
            }
        })
        .collect();
    Ok(Outline { version: format!("{}.{}", program.version.0, program.version.1), functions })
}

fn show_outline(outline: &Outline) -> String {
    let mut text = format!("program {}\n", outline.version);
    for function in &outline.functions {
        let constants = function.operations.get("const").copied().unwrap_or(0);
        let all: usize = function.operations.values().sum();
        text.push_str(&format!(
            "function {} for {}: {} operations, {constants} constants\n",
            function.name,
            function.opset,
            all - constants
        ));
        for input in &function.inputs {
            text.push_str(&format!("  input {} {}\n", input.name, input.ty));
        }
        text.push_str(&format!("  returns {}\n", function.outputs.join(", ")));
        let mut counts: Vec<_> = function.operations.iter().filter(|(op, _)| *op != "const").collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let rows: Vec<_> = counts.iter().map(|(op, count)| vec![format!("  {count:>5}"), (*op).clone()]).collect();
        text.push_str(&output::table(&rows, &[]));
    }
    text
}

fn blobs(path: &Path) -> Result<Vec<Row>, Failure> {
    let file = BlobFile::open(path).map_err(|error| Failure::input(&error))?;
    file.iter()
        .map(|blob| {
            let blob = blob.map_err(|error| Failure::input(&error))?;
            Ok(Row {
                name: format!("at {}", blob.offset),
                ty: blob.dtype.keyword().to_string(),
                bytes: Some(blob.bytes.len() as u64),
            })
        })
        .collect()
}

fn weights(rows: Vec<Row>, json: bool) -> Result<(), Failure> {
    if json {
        return output::json(&Weights { weights: rows });
    }
    let cells: Vec<_> =
        rows.iter().map(|row| vec![row.name.clone(), row.ty.clone(), row.bytes.map_or(String::new(), output::bytes)]).collect();
    output::data(&output::table(&cells, &[2]))
}
