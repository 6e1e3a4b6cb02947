//! Core ML packages as inputs of commands.

use crate::failure::Failure;
use aneforge::mil::Body;
use aneforge::mlpackage::{Package, ReadOptions};
use std::path::{Path, PathBuf};

/// What is read of a Core ML package.
#[derive(clap::Args)]
pub struct Selection {
    /// Function of a bundle or Core ML package that has several; its default where none is named.
    #[arg(long)]
    function: Option<String>,
    /// Shape of an input of a Core ML package that has no fixed one, as name=1,3,224,224; once for each input.
    #[arg(long = "shape", value_name = "NAME=SHAPE", value_parser = shape)]
    shapes: Vec<(String, Vec<usize>)>,
}

impl Selection {
    /// Whether something was selected, which only packages have.
    pub fn is_empty(&self) -> bool {
        self.function.is_none() && self.shapes.is_empty()
    }

    /// The function of a bundle. Shapes go with packages.
    pub fn of_bundle(&self, path: &Path) -> Result<Option<&str>, Failure> {
        match self.shapes.first() {
            None => Ok(self.function.as_deref()),
            Some(_) => Err(Failure::Input(format!("--shape goes with Core ML packages; {} is none", path.display()))),
        }
    }

    /// Refuses a selection where `path` is no package.
    pub fn refuse(&self, path: &Path) -> Result<(), Failure> {
        if self.is_empty() {
            return Ok(());
        }
        Err(Failure::Input(format!("--function and --shape go with Core ML packages; {} is none", path.display())))
    }
}

fn shape(text: &str) -> Result<(String, Vec<usize>), String> {
    let wrong = || "expected name=extents, for example image=1,3,224,224".to_string();
    let (name, extents) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
    let extents = extents.split(',').map(|extent| extent.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    Ok((name.to_string(), extents))
}

/// Whether a folder looks like a Core ML package.
pub fn is_package(path: &Path) -> bool {
    path.join("Manifest.json").is_file() && path.join("Data").is_dir()
}

/// Where a package keeps its weights, if it has any.
pub fn weights(path: &Path) -> Option<PathBuf> {
    Some(path.join("Data/com.apple.CoreML/weights/weight.bin")).filter(|file| file.is_file())
}

/// A function of a package.
pub fn body(path: &Path, selection: &Selection) -> Result<Body, Failure> {
    let package = Package::open(path).map_err(|error| Failure::input(&error))?;
    let shapes = selection.shapes.iter().cloned().collect();
    let options = ReadOptions { function: selection.function.clone(), shapes };
    package.body(&options).map_err(|error| Failure::input(&error))
}
