//! Reads a bundle in segments.

use super::stitch::stitch;
use super::{Part, Segments};
use crate::{DeviceError, Program};
use aneforge_compile::bundle::SEGMENTS;
use aneforge_compile::{Link, Manifest, SegmentEntry, SegmentKind};
use std::path::Path;
use std::sync::Arc;

/// Most segments of a program: about as many programs as an engine holds at once.
const MAX_SEGMENTS: usize = 128;

/// The program of a bundle whose manifest has segments.
///
/// # Errors
/// [`DeviceError::Program`] with the segment and what is wrong.
pub(crate) fn open(bundle: &Path, name: &str, manifest: &Manifest) -> Result<Program, DeviceError> {
    let fault = |problem: String| DeviceError::Program { program: name.to_string(), problem };
    if manifest.segments.len() > MAX_SEGMENTS {
        return Err(fault(format!("the manifest has {} segments, the limit is {MAX_SEGMENTS}", manifest.segments.len())));
    }
    let mut parts = Vec::with_capacity(manifest.segments.len());
    for (index, entry) in manifest.segments.iter().enumerate() {
        let folder = bundle.join(SEGMENTS).join(index.to_string());
        let program = match entry.kind {
            SegmentKind::Mil => Program::open_mil(&folder, None)?,
            SegmentKind::Native => {
                let place = folder.join(aneforge_native::net::NET).display().to_string();
                let read = aneforge_native::net::read(&folder);
                let body = read.map_err(|error| DeviceError::Program { program: place.clone(), problem: error.to_string() })?;
                Program::from_body(place, body)
            }
        };
        let inputs = ordered(entry, &program).map_err(|problem| fault(format!("segment {index}: {problem}")))?;
        parts.push(Part { kind: entry.kind, program: Arc::new(program), inputs });
    }
    let outputs = results(manifest).map_err(fault)?;
    let segments = Segments { parts, outputs };
    let body = stitch(manifest, &segments).map_err(fault)?;
    Ok(Program::in_segments(name, body, segments))
}

/// The links of a segment in the order of its inputs.
fn ordered(entry: &SegmentEntry, program: &Program) -> Result<Vec<Link>, String> {
    let body = program.body();
    if entry.inputs.len() != body.inputs.len() {
        return Err(format!("the manifest links {} inputs, the segment has {}", entry.inputs.len(), body.inputs.len()));
    }
    let link = |name: &String| {
        let found = entry.inputs.iter().find(|link| link.port == *name);
        found.cloned().ok_or_else(|| format!("the manifest links no value to input {name:?}"))
    };
    body.inputs.iter().map(|&id| link(&body.value(id).name)).collect()
}

fn results(manifest: &Manifest) -> Result<Vec<Link>, String> {
    if manifest.results.len() != manifest.outputs.len() {
        return Err(format!("the manifest has {} outputs and {} results", manifest.outputs.len(), manifest.results.len()));
    }
    let link = |name: &String| {
        let found = manifest.results.iter().find(|link| link.port == *name);
        found.cloned().ok_or_else(|| format!("the manifest has no result for output {name:?}"))
    };
    manifest.outputs.iter().map(|port| link(&port.name)).collect()
}
