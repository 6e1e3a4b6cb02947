//! A compiled program on disk: a folder with the text, the weight file and a manifest, written whole or not at all.

use crate::manifest::{FileEntry, FileHash, Manifest, Ports, SCHEMA, SegmentEntry, body_ports, ports};
use crate::{CompileError, CompileOptions, Compiled, SegmentKind, Segments};
use aneforge_mil::{BlobError, BlobFileWriter, Body, EmitError, EmitOptions, Emitter, Program};
use aneforge_native::net;
use aneforge_staging::Staging;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

pub use aneforge_staging::discard_unfinished;

/// Name of the program text in a bundle.
pub const TEXT: &str = "model.mil";
/// Name of the weight file in a bundle.
pub const WEIGHTS: &str = "weights.bin";
/// Name of the manifest in a bundle.
pub const MANIFEST: &str = "manifest.json";
/// Folder of the segments in a bundle; each has a folder of its own in it, counted from 0.
pub const SEGMENTS: &str = "segments";

/// Writes a body as a bundle at `folder`, which must not exist, be empty, or be a bundle with nothing else in it, which is then
/// replaced. A link stays a link: the folder that it leads to is replaced.
///
/// # Errors
/// [`CompileError::Emit`] and [`CompileError::Write`]; the folder is then as it was.
pub fn write(body: &Body, segments: Option<&Segments>, options: &CompileOptions, folder: &Path) -> Result<Manifest, CompileError> {
    placed(folder, |staging| match segments {
        None => fill(&[body], options, staging),
        Some(segments) => fill_segments(body, segments, options, staging),
    })
}

/// Writes programs as the functions of one bundle, as [`write`] does.
///
/// # Errors
/// As [`Compiled::write_functions`].
pub fn write_functions(functions: &[(&str, &Compiled)], folder: &Path) -> Result<Manifest, CompileError> {
    let mut bodies: Vec<Body> = Vec::with_capacity(functions.len());
    for &(name, compiled) in functions {
        let refuse = |problem: &str| Err(CompileError::Function { name: name.to_string(), problem: problem.to_string() });
        let first = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        if !first || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            return refuse("has no name of letters, digits and underscores that begins with none of the digits");
        }
        if bodies.iter().any(|body| body.name == name) {
            return refuse("is given twice; functions need names of their own");
        }
        if compiled.segments.is_some() {
            return refuse("is in segments, which stand in a bundle of their own");
        }
        let options = (compiled.options().target, compiled.options().dialect);
        if functions.iter().any(|(_, other)| (other.options().target, other.options().dialect) != options) {
            return refuse("was compiled for another target or dialect than the others");
        }
        bodies.push(Body { name: name.to_string(), ..compiled.body.clone() });
    }
    let Some((_, first)) = functions.first() else {
        return Err(CompileError::Function { name: String::new(), problem: "is missing: give one at least".to_string() });
    };
    placed(folder, |staging| {
        let names = functions.iter().map(|(name, _)| (*name).to_string()).collect();
        Ok(Manifest { functions: names, ..fill(&bodies.iter().collect::<Vec<_>>(), first.options(), staging)? })
    })
}

/// Fills a folder under another name, adds the manifest and renames it.
fn placed(folder: &Path, fill: impl FnOnce(&Path) -> Result<Manifest, CompileError>) -> Result<Manifest, CompileError> {
    let fail = |source| CompileError::write(folder, source);
    let staging = Staging::beside(folder).map_err(fail)?;
    if folder.exists() {
        replaceable(folder)?;
    }
    let manifest = fill(staging.path())?;
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| CompileError::internal(error.to_string()))?;
    write_file(&staging.path().join(MANIFEST), text.as_bytes())?;
    staging.place().map_err(fail)?;
    Ok(manifest)
}

/// Writes the text and the weights into an existing folder.
///
/// # Errors
/// As [`write`].
fn fill(functions: &[&Body], options: &CompileOptions, folder: &Path) -> Result<Manifest, CompileError> {
    let mil = write_mil(functions, options, folder, "")?;
    let Ports { inputs, outputs, states } = ports(&mil.program);
    Ok(Manifest { inputs, outputs, state: states, files: mil.files, ..manifest(functions, options, mil.dialect) })
}

/// Writes each segment into a folder of its own.
fn fill_segments(body: &Body, segments: &Segments, options: &CompileOptions, folder: &Path) -> Result<Manifest, CompileError> {
    let (inputs, outputs) = body_ports(body);
    let mut dialect = format!("net.plist {}", net::VERSION);
    let (mut files, mut entries) = (Vec::new(), Vec::new());
    for (index, part) in segments.parts.iter().enumerate() {
        let inside = format!("{SEGMENTS}/{index}/");
        let place = folder.join(&inside);
        fs::create_dir_all(&place).map_err(|source| CompileError::write(&place, source))?;
        match part.kind {
            SegmentKind::Mil => {
                let mil = write_mil(&[&part.body], options, &place, &inside)?;
                dialect = mil.dialect;
                files.extend(mil.files);
            }
            SegmentKind::Native => {
                net::write(&part.body, &place)?;
                for name in [net::NET, net::WEIGHTS[0], net::WEIGHTS[1]] {
                    let path = place.join(name);
                    if path.exists() {
                        files.push(hashed(&path, format!("{inside}{name}"))?);
                    }
                }
            }
        }
        entries.push(SegmentEntry { kind: part.kind, inputs: part.inputs.clone() });
    }
    let results = segments.outputs.clone();
    Ok(Manifest { inputs, outputs, segments: entries, results, files, ..manifest(&[body], options, dialect) })
}

/// The operators that expand weights, each once; `none` where all are dense.
fn compression(functions: &[&Body]) -> String {
    let operations = functions.iter().flat_map(|body| &body.operations);
    let expanding: BTreeSet<&str> =
        operations.filter(|operation| operation.op.expands_weight()).map(|operation| operation.op.name).collect();
    if expanding.is_empty() { "none".to_string() } else { Vec::from_iter(expanding).join(", ") }
}

/// A manifest without ports and files.
fn manifest(functions: &[&Body], options: &CompileOptions, dialect: String) -> Manifest {
    Manifest {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_string(),
        target: options.target.to_string(),
        dialect,
        inputs: Vec::new(),
        outputs: Vec::new(),
        state: Vec::new(),
        compression: compression(functions),
        segments: Vec::new(),
        results: Vec::new(),
        functions: Vec::new(),
        files: Vec::new(),
    }
}

/// What was written of a MIL program.
struct Mil {
    program: Program,
    dialect: String,
    files: Vec<FileEntry>,
}

/// Writes a MIL program into a folder, which the manifest calls `inside`.
fn write_mil(functions: &[&Body], options: &CompileOptions, folder: &Path, inside: &str) -> Result<Mil, CompileError> {
    let mut weights = BlobFileWriter::create(folder.join(WEIGHTS)).map_err(blob)?;
    let emit_options = EmitOptions { dialect: options.dialect, ..EmitOptions::default() };
    let mut emitter = Emitter::new(emit_options, weights.blobs().map_err(blob)?);
    functions.iter().try_for_each(|body| emitter.function(body))?;
    let program = emitter.finish();
    let text = aneforge_mil::print(&program);
    write_file(&folder.join(TEXT), text.as_bytes())?;
    let (mut text_hash, mut weights_hash) = (FileHash::new(), FileHash::new());
    text_hash.update(text.as_bytes());
    let weights_bytes = weights.finish_observed(&mut |bytes| weights_hash.update(bytes)).map_err(blob)?;
    let entry = |name: &str, bytes, hash: FileHash| FileEntry { name: format!("{inside}{name}"), bytes, xxh3: hash.to_hex() };
    let files = vec![entry(TEXT, text.len() as u64, text_hash), entry(WEIGHTS, weights_bytes, weights_hash)];
    let dialect = format!("program({}.{})/{}", program.version.0, program.version.1, options.dialect.opset());
    Ok(Mil { program, dialect, files })
}

/// The entry of a file that is on disk already.
fn hashed(path: &Path, name: String) -> Result<FileEntry, CompileError> {
    let fail = |source| CompileError::write(path, source);
    let mut file = fs::File::open(path).map_err(fail)?;
    let (mut hash, mut bytes, mut buffer) = (FileHash::new(), 0u64, vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut buffer).map_err(fail)?;
        if read == 0 {
            return Ok(FileEntry { name, bytes, xxh3: hash.to_hex() });
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
    }
}

/// Checks that what stands at `folder` may be replaced: losing anything else would be losing what is not ours.
fn replaceable(folder: &Path) -> Result<(), CompileError> {
    let refuse = |problem| CompileError::write(folder, std::io::Error::new(std::io::ErrorKind::AlreadyExists, problem));
    let names: Vec<_> = match fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.file_name()).collect(),
        Err(_) => return Err(refuse("exists and is not a bundle; name another folder")),
    };
    if !names.is_empty() {
        if !is_manifest(&folder.join(MANIFEST)) {
            return Err(refuse("exists and is not a bundle; name another folder"));
        }
        let known = |name: &std::ffi::OsString| name == TEXT || name == WEIGHTS || name == MANIFEST;
        let ours = |name: &_| known(name) || (name == SEGMENTS && holds_segments_alone(&folder.join(SEGMENTS)));
        if !names.iter().all(ours) {
            return Err(refuse("holds other files beside a bundle's, which would be lost; move them or name another folder"));
        }
    }
    Ok(())
}

/// Whether a folder holds segments of a bundle and nothing else.
fn holds_segments_alone(folder: &Path) -> bool {
    let names = |folder: &Path| -> Option<Vec<std::ffi::OsString>> {
        fs::read_dir(folder).ok()?.map(|entry| entry.ok().map(|entry| entry.file_name())).collect()
    };
    let ours = [TEXT, WEIGHTS, net::NET, net::WEIGHTS[0], net::WEIGHTS[1]];
    let is_segment = |name: &std::ffi::OsString| {
        let counted = name.to_str().is_some_and(|name| name.parse::<usize>().is_ok());
        counted && names(&folder.join(name)).is_some_and(|files| files.iter().all(|file| ours.iter().any(|own| file == own)))
    };
    names(folder).is_some_and(|names| names.iter().all(is_segment))
}

/// Other tools write files called `manifest.json` too: ours, of any version, is told by its fields.
fn is_manifest(path: &Path) -> bool {
    let fields = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    fields.is_some_and(|fields| ["schema", "dialect", "files"].iter().all(|name| fields.get(name).is_some()))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), CompileError> {
    let mut file = fs::File::create(path).map_err(|source| CompileError::write(path, source))?;
    file.write_all(bytes).map_err(|source| CompileError::write(path, source))
}

fn blob(error: BlobError) -> CompileError {
    CompileError::Emit(match error {
        BlobError::Constant { name, source } => EmitError::Blob { name, source: *source },
        source => EmitError::Blob { name: WEIGHTS.to_string(), source },
    })
}
