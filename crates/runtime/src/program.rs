//! A program that devices load: what a bundle's text and weights say.

use crate::DeviceError;
use crate::segment::{self, Segments};
use aneforge_compile::Manifest;
use aneforge_compile::bundle::MANIFEST;
use aneforge_mil::op::builtin;
use aneforge_mil::{BlobFolder, BlobSource, Body, parse, resolve};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File name of the program's text in a bundle.
const TEXT_FILE: &str = "model.mil";

/// A parsed program, ready to be loaded by any device.
#[derive(Clone, Debug)]
pub struct Program {
    name: String,
    body: Body,
    segments: Option<Segments>,
    origin: Option<Origin>,
}

/// Where a program stands on disk.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) folder: PathBuf,
    /// The bundle's manifest, where it has one.
    pub(crate) manifest: Option<Arc<Manifest>>,
}

impl Program {
    /// Reads the program of a bundle: the text `model.mil` and the weight files that it names; or, where the manifest says so, its
    /// segments and how they are linked.
    ///
    /// # Errors
    /// [`DeviceError::Program`] with the place in the text and a caret under it.
    pub fn open(bundle: impl AsRef<Path>) -> Result<Self, DeviceError> {
        Self::open_named(bundle.as_ref(), None)
    }

    /// Reads one function of a bundle that has several. Functions of a bundle share its compiled program on an engine while one of them
    /// is loaded.
    ///
    /// # Errors
    /// As [`Self::open`]; a name that no function has is told with all that there are.
    pub fn open_function(bundle: impl AsRef<Path>, function: &str) -> Result<Self, DeviceError> {
        Self::open_named(bundle.as_ref(), Some(function))
    }

    fn open_named(bundle: &Path, function: Option<&str>) -> Result<Self, DeviceError> {
        let path = bundle.join(MANIFEST);
        let manifest = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok());
        let mut program = match (manifest.as_ref().filter(|manifest| !manifest.segments.is_empty()), function) {
            (Some(_), Some(name)) if name != "main" => {
                let problem = format!("it is in segments and has one function, \"main\"; {name:?} is none of its");
                return Err(DeviceError::Program { program: bundle.display().to_string(), problem });
            }
            (Some(manifest), _) => segment::open(bundle, &bundle.display().to_string(), manifest)?,
            (None, _) => Self::open_mil(bundle, function)?,
        };
        program.origin = Some(Origin { folder: bundle.to_path_buf(), manifest: manifest.map(Arc::new) });
        Ok(program)
    }

    /// Reads a program that is one MIL text.
    pub(crate) fn open_mil(bundle: &Path, function: Option<&str>) -> Result<Self, DeviceError> {
        let path = bundle.join(TEXT_FILE);
        let name = path.display().to_string();
        let text = std::fs::read(&path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "the text is not UTF-8".to_string()))
            .map_err(|problem| DeviceError::Program { program: name.clone(), problem })?;
        Self::resolved(&name, &text, function, &BlobFolder::new(bundle))
    }

    /// Reads a program from its text; `blobs` finds the weight files that it names. The function is `main`, or the only one.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_text(name: &str, text: &str, blobs: &dyn BlobSource) -> Result<Self, DeviceError> {
        Self::resolved(name, text, None, blobs)
    }

    fn resolved(name: &str, text: &str, function: Option<&str>, blobs: &dyn BlobSource) -> Result<Self, DeviceError> {
        let fault = |problem: String| DeviceError::Program { program: name.to_string(), problem };
        let program = parse(text).map_err(|error| fault(error.to_string()))?;
        let function = match (function, program.functions.as_slice()) {
            (Some(function), _) => function,
            (None, [only]) => only.name.as_str(),
            (None, _) => "main",
        };
        let body = resolve(&program, function, builtin(), blobs).map_err(|error| fault(error.render(text)))?;
        Ok(Self { name: name.to_string(), body, segments: None, origin: None })
    }

    /// A program from a body that is already resolved; the caller has verified it.
    pub fn from_body(name: impl Into<String>, body: Body) -> Self {
        Self { name: name.into(), body, segments: None, origin: None }
    }

    pub(crate) fn in_segments(name: impl Into<String>, body: Body, segments: Segments) -> Self {
        Self { name: name.into(), body, segments: Some(segments), origin: None }
    }

    /// Its segments, where it is not one text.
    pub(crate) fn segments(&self) -> Option<&Segments> {
        self.segments.as_ref()
    }

    /// Where it stands on disk, where it was read from there.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// What people know it by: the file it came from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its function; of a program in segments all of them put together.
    pub fn body(&self) -> &Body {
        &self.body
    }
}
