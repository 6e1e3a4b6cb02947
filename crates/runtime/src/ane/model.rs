//! A model of the frameworks on one of three ways, and the files that it wants.

use super::cache::Place;
use super::folder::Folder;
use aneforge_compile::bundle::{TEXT, WEIGHTS};
use aneforge_map::Mapping;
use aneforge_native::net;
use aneforge_sys::SysError;
use aneforge_sys::ane::{self, AppleNeuralEngine, Client, Descriptor, InMemoryModel, Request, Weights};
use aneforge_sys::objc::{Data, Value};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a compilation leaves, with which a later load needs no compiler (maderix/ANE, pull request 22; Espresso).
const KEPT: [&str; 2] = ["net.plist", "data"];

/// How a model is made.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// Program text and a dictionary of weights.
    Text {
        /// Folder with the text and the weights.
        folder: PathBuf,
        /// Where what a compilation leaves is kept.
        kept: PathBuf,
    },
    /// A network and its weights.
    Network {
        /// Folder with net.plist and the weights.
        folder: PathBuf,
    },
    /// A folder with text and weights, through the client.
    Client {
        /// The folder.
        folder: PathBuf,
    },
}

impl Way {
    pub(crate) fn text(place: &Place, folder: &Path, number: usize) -> Self {
        Self::Text { folder: folder.to_path_buf(), kept: place.folder().join(format!("kept-{number}")) }
    }

    pub(crate) fn is_client(&self) -> bool {
        matches!(self, Self::Client { .. })
    }
}

/// A model.
pub(crate) enum Model {
    /// Through the in-memory class, with the folder that it wants filled; the folder goes with the model.
    Memory(InMemoryModel, Folder),
    /// Through the client.
    Client(ane::Model, Client),
}

/// A mapped file whose bytes the framework borrows.
struct Borrowed(Mapping);

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Model {
    /// Makes the model and writes the files that its class expects and does not write itself.
    pub(crate) fn new(engine: &Arc<AppleNeuralEngine>, way: &Way) -> Result<Self, SysError> {
        match way {
            Way::Client { folder } => {
                let model = ane::Model::new(engine, folder, "s")?;
                Ok(Self::Client(model, Client::shared(engine)?))
            }
            Way::Text { folder, .. } => {
                let text = fs::read_to_string(folder.join(TEXT)).map_err(|error| file_fault(&folder.join(TEXT), &error))?;
                let mut weights = Weights::new();
                // A dictionary with files that the text does not name is refused by some versions.
                let weight_file = text.contains("BLOBFILE").then(|| folder.join(WEIGHTS));
                if let Some(path) = &weight_file {
                    weights.add(&format!("@model_path/{WEIGHTS}"), data(engine, path)?);
                }
                let model = InMemoryModel::new(&Descriptor::from_text(engine, &text, &weights)?)?;
                let own = Self::folder(&model)?;
                copy(&folder.join(TEXT), &own.path().join(TEXT))?;
                if let Some(path) = &weight_file {
                    copy(path, &own.path().join(WEIGHTS))?;
                }
                Ok(Self::Memory(model, own))
            }
            Way::Network { folder } => {
                let plist = fs::read(folder.join(net::NET)).map_err(|error| file_fault(&folder.join(net::NET), &error))?;
                let mut weights = Weights::new();
                let files: Vec<&str> = net::WEIGHTS.into_iter().filter(|name| folder.join(name).exists()).collect();
                for name in &files {
                    weights.add(name, data(engine, &folder.join(name))?);
                }
                let model = InMemoryModel::new(&Descriptor::from_network(engine, &plist, &weights)?)?;
                let own = Self::folder(&model)?;
                copy(&folder.join(net::NET), &own.path().join(net::NET))?;
                for name in files {
                    copy(&folder.join(name), &own.path().join(name))?;
                }
                Ok(Self::Memory(model, own))
            }
        }
    }

    /// The folder that the class reads: it is named by the program's hash.
    fn folder(model: &InMemoryModel) -> Result<Folder, SysError> {
        let path = match model.local_path() {
            Ok(path) => path,
            Err(SysError::Lacking { .. }) => std::env::temp_dir().join(model.hex_identifier()?),
            Err(error) => return Err(error),
        };
        Folder::at(path.clone()).map_err(|error| file_fault(&path, &error))
    }

    pub(crate) fn compile(&mut self, engine: &Arc<AppleNeuralEngine>, quality: u32) -> Result<(), SysError> {
        match self {
            Self::Memory(model, _) => model.compile(quality, engine.no_options()),
            Self::Client(model, client) => client.compile(model, &engine.mil_options()?, quality),
        }
    }

    pub(crate) fn load(&mut self, engine: &Arc<AppleNeuralEngine>, quality: u32) -> Result<(), SysError> {
        match self {
            Self::Memory(model, _) => model.load(quality, engine.no_options()),
            Self::Client(model, client) => client.load(model, engine.no_options(), quality),
        }
    }

    pub(crate) fn evaluate(&mut self, request: &mut Request, quality: u32) -> Result<(), SysError> {
        match self {
            Self::Memory(model, _) => model.evaluate(quality, request),
            Self::Client(model, client) => client.evaluate(model, request, quality),
        }
    }

    pub(crate) fn attributes(&self) -> Result<Value, SysError> {
        match self {
            Self::Memory(model, _) => model.attributes(),
            Self::Client(model, _) => model.attributes(),
        }
    }

    /// Keeps what a compilation left. Best effort: without it the next process compiles.
    pub(crate) fn keep(&self, way: &Way) {
        let (Self::Memory(_, folder), Way::Text { kept, .. }) = (self, way) else { return };
        let Ok(staging) = aneforge_staging::Staging::beside(kept) else { return };
        let copied = KEPT
            .iter()
            .filter(|name| folder.path().join(name).exists())
            .map(|name| fs::copy(folder.path().join(name), staging.path().join(name)));
        if copied.into_iter().all(|result| result.is_ok()) {
            let _ = staging.place();
        }
    }

    /// Puts what an earlier compilation left where the class looks for it; says whether there was something.
    pub(crate) fn restore(&self, way: &Way) -> bool {
        let (Self::Memory(_, folder), Way::Text { kept, .. }) = (self, way) else { return false };
        let there = KEPT.iter().filter(|name| kept.join(name).exists());
        let copied: Vec<bool> = there.map(|name| copy(&kept.join(name), &folder.path().join(name)).is_ok()).collect();
        !copied.is_empty() && copied.iter().all(|&copied| copied)
    }
}

/// The bytes of a file, borrowed by the framework where it can, else copied.
fn data(engine: &Arc<AppleNeuralEngine>, path: &Path) -> Result<Data, SysError> {
    let mapping = Mapping::open(path).map_err(|error| file_fault(path, &error.source))?;
    let runtime = engine.objective_c();
    let borrowed = Arc::new(Borrowed(mapping));
    match Data::shared(runtime, borrowed.clone()) {
        Err(SysError::Lacking { .. }) => Data::copy_of(runtime, borrowed.as_ref().as_ref()),
        result => result,
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), SysError> {
    // Under a name of its own first: another process may read the same folder, which is named by contents.
    let temporary = to.with_extension(format!("part-{}-{:?}", std::process::id(), std::thread::current().id()));
    let made = fs::copy(from, &temporary).and_then(|_| fs::rename(&temporary, to));
    made.map_err(|error| file_fault(to, &error))
}

fn file_fault(path: &Path, error: &io::Error) -> SysError {
    SysError::Open { path: path.display().to_string(), reason: error.to_string() }
}
