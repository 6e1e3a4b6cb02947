//! From a program to files that the frameworks read: as they stand in its bundle where that is for this engine, else compiled for it.

use super::cache::{Cache, Key, Place};
use super::device::Ane;
use super::error::AneError;
use super::resident_state::{Resident, as_ports};
use crate::device::Ports;
use crate::{Device, DeviceError, Program};
use aneforge_compile::bundle::SEGMENTS;
use aneforge_compile::{CompileOptions, FileHash, Limits, Link, SegmentKind, compile_body};
use aneforge_core::Target;
use aneforge_mil::{Body, Dialect};
use aneforge_staging::Staging;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// A program's files in the cache and what they hold.
pub(crate) struct Prepared {
    /// Held until the frameworks have compiled it, so that other processes wait and then find it.
    pub(crate) place: Place,
    pub(crate) key: Key,
    pub(crate) translated: bool,
    pub(crate) cached: bool,
    pub(crate) parts: Vec<Part>,
    /// One for each output of the program, then one for each state that it changes.
    pub(crate) outputs: Vec<Link>,
    pub(crate) states: Vec<Resident>,
    /// Names of the inputs as links know them; states stand behind the others.
    pub(crate) input_names: Vec<String>,
}

/// A program that the engine takes.
pub(crate) struct Part {
    pub(crate) kind: SegmentKind,
    pub(crate) folder: PathBuf,
    pub(crate) function: String,
    pub(crate) ports: Ports,
    pub(crate) ops: Vec<&'static str>,
    pub(crate) operations: usize,
    pub(crate) weight_bytes: u64,
    /// One for each input, in its order; states stand behind the program's inputs.
    pub(crate) inputs: Vec<Link>,
}

/// A file of the program: its name in the bundle and where it is now.
struct File {
    name: String,
    path: PathBuf,
}

fn cache_fault(path: &Path, problem: impl std::fmt::Display) -> DeviceError {
    AneError::Cache { path: path.display().to_string(), problem: problem.to_string() }.into()
}

pub(crate) fn prepare(ane: &Ane, program: &Program) -> Result<Prepared, DeviceError> {
    let wanted = ane.target();
    let written_for = program.origin().and_then(|origin| origin.manifest.as_ref()).map(|manifest| manifest.target.clone());
    let stated: Option<Target> = match &written_for {
        Some(name) => name.parse().ok().or(Some(Target::Generic)),
        None => None,
    };
    if let (Some(Target::Chip { .. }), Some(name)) = (&stated, &written_for)
        && stated != Some(wanted)
    {
        let (program, engine) = (program.name().to_string(), wanted.to_string());
        return Err(AneError::Foreign { program, target: name.clone(), engine }.into());
    }
    let as_it_stands = stated == Some(wanted) && program.body().states.is_empty();
    // Filled under a temporary name; the folder goes when this function returns.
    let staging =
        Staging::beside(&ane.cache().root().join("translated")).map_err(|error| cache_fault(ane.cache().root(), error))?;
    let (files, opened, states) = if as_it_stands {
        (own_files(program)?, None, Vec::new())
    } else {
        let (opened, states) = translate(ane, program, staging.path())?;
        (own_files(&opened)?, Some(opened), states)
    };
    let key = Key {
        program: hash(&files)?,
        chip: ane.own_chip().name.to_string(),
        os_build: ane.build().to_string(),
        route: ane.route_name().to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
    };
    let place = ane.cache().take(&key, program.name())?;
    let cached = place.filled().is_some();
    if !cached {
        place.fill(|folder| files.iter().try_for_each(|file| copy(file, folder)))?;
    }
    let parts = parts(opened.as_ref().unwrap_or(program), place.folder())?;
    for (segment, part) in parts.iter().enumerate() {
        let (bytes, limit) = (part.weight_bytes, ane.options().weight_bytes);
        if bytes > limit {
            return Err(AneError::Weights { program: program.name().to_string(), segment, bytes, limit }.into());
        }
    }
    let compiled = opened.as_ref().unwrap_or(program);
    let input_names = compiled.body().inputs.iter().map(|&id| compiled.body().value(id).name.clone()).collect();
    let outputs = outputs(compiled);
    Ok(Prepared { place, key, translated: !as_it_stands, cached, parts, outputs, states, input_names })
}

/// Compiles a program for this engine, states as ports, into a folder.
fn translate(ane: &Ane, program: &Program, folder: &Path) -> Result<(Program, Vec<Resident>), DeviceError> {
    let engine = ane.target();
    let fail = |error: aneforge_compile::CompileError| AneError::Legalise {
        program: program.name().to_string(),
        engine: engine.to_string(),
        problem: error.to_string(),
    };
    let (body, states) = as_ports(program.body().clone());
    let limits = Limits { weight_bytes: Some(ane.options().weight_bytes), operations: ane.options().operations };
    let options = CompileOptions { target: engine, dialect: Dialect::Modern, limits, ..CompileOptions::default() };
    let compiled = compile_body(body, &options).map_err(fail)?;
    let bundle = folder.join("bundle");
    compiled.write(&bundle).map_err(fail)?;
    Ok((Program::open(&bundle)?, states))
}

/// The files of a program's bundle, as its manifest lists them.
fn own_files(program: &Program) -> Result<Vec<File>, DeviceError> {
    let fault = |problem: &str| DeviceError::Program { program: program.name().to_string(), problem: problem.to_string() };
    let origin = program.origin().ok_or_else(|| DeviceError::internal("prepare", "a program without files"))?;
    let manifest = origin.manifest.as_ref().ok_or_else(|| fault("the bundle has no manifest"))?;
    let mut files = Vec::with_capacity(manifest.files.len());
    for entry in &manifest.files {
        // The manifest may come from anywhere; its names must not lead out of the folder.
        if !Path::new(&entry.name).components().all(|component| matches!(component, Component::Normal(_))) {
            return Err(fault(&format!("the manifest names the file {:?}, which is not in the bundle", entry.name)));
        }
        files.push(File { name: entry.name.clone(), path: origin.folder.join(&entry.name) });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// The hash of what the files hold now, whatever the manifest says of them.
fn hash(files: &[File]) -> Result<String, DeviceError> {
    let mut hash = FileHash::new();
    let mut buffer = vec![0; 1 << 18];
    for File { name, path } in files {
        hash.update(&(name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        let mut file = fs::File::open(path).map_err(|error| cache_fault(path, error))?;
        let mut length = 0u64;
        loop {
            match file.read(&mut buffer).map_err(|error| cache_fault(path, error))? {
                0 => break,
                read => {
                    hash.update(&buffer[..read]);
                    length += read as u64;
                }
            }
        }
        hash.update(&length.to_le_bytes());
    }
    Ok(hash.to_hex())
}

/// Weights are linked where the disk allows it, because they are large and files of bundles are replaced, never changed.
fn copy(file: &File, folder: &Path) -> Result<(), AneError> {
    let target = folder.join(&file.name);
    let fail = |error: std::io::Error| AneError::Cache { path: target.display().to_string(), problem: error.to_string() };
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(fail)?;
    }
    if fs::hard_link(&file.path, &target).is_err() {
        fs::copy(&file.path, &target).map_err(fail)?;
    }
    Ok(())
}

/// The parts of a program whose files stand in `folder`.
fn parts(program: &Program, folder: &Path) -> Result<Vec<Part>, DeviceError> {
    let Some(segments) = program.segments() else {
        let own = |name: &String| Link { port: name.clone(), segment: None, value: name.clone(), layout: Vec::new() };
        let inputs = program.body().inputs.iter().map(|&id| own(&program.body().value(id).name)).collect();
        return Ok(vec![part(SegmentKind::Mil, folder.to_path_buf(), program.body(), inputs)?]);
    };
    let numbered = segments.parts.iter().enumerate();
    numbered
        .map(|(index, one)| {
            let folder = folder.join(SEGMENTS).join(index.to_string());
            part(one.kind, folder, one.program.body(), one.inputs.clone())
        })
        .collect()
}

fn part(kind: SegmentKind, folder: PathBuf, body: &Body, inputs: Vec<Link>) -> Result<Part, DeviceError> {
    let mut ops = Vec::new();
    for operation in &body.operations {
        if !ops.contains(&operation.op.name) {
            ops.push(operation.op.name);
        }
    }
    let size = |name: &str| fs::metadata(folder.join(name)).map_or(0, |data| data.len());
    let names: &[&str] = match kind {
        SegmentKind::Mil => &[aneforge_compile::bundle::WEIGHTS],
        SegmentKind::Native => &aneforge_native::net::WEIGHTS,
    };
    let weight_bytes = names.iter().map(|name| size(name)).sum();
    let function = if body.name.is_empty() { "main".to_string() } else { body.name.clone() };
    Ok(Part { kind, folder, function, ports: Ports::of(body)?, ops, operations: body.operations.len(), weight_bytes, inputs })
}

fn outputs(program: &Program) -> Vec<Link> {
    match program.segments() {
        Some(segments) => segments.outputs.clone(),
        None => {
            let own = |name: &String| Link { port: name.clone(), segment: Some(0), value: name.clone(), layout: Vec::new() };
            program.body().outputs.iter().map(|output| own(&output.name)).collect()
        }
    }
}

/// Where the folder of a device's cache is.
pub(crate) fn cache_of(place: &super::options::CachePlace) -> Cache {
    use super::options::CachePlace;
    let user = || {
        let named = std::env::var_os("ANEFORGE_CACHE_DIR").map(PathBuf::from);
        let home = || {
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let apple = home.as_ref().map(|home| home.join("Library/Caches")).filter(|folder| folder.is_dir());
            apple.or_else(|| home.map(|home| home.join(".cache")))
        };
        named.or_else(|| home().map(|folder| folder.join("aneforge"))).unwrap_or_else(|| std::env::temp_dir().join("aneforge"))
    };
    match place {
        CachePlace::User => Cache::at(user().join("ane")),
        CachePlace::Folder(folder) => Cache::at(folder),
    }
}
