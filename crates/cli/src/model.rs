//! Models as inputs of commands.

use crate::compression::Samples;
use crate::failure::Failure;
use crate::package::{self, Selection};
use aneforge::core::lower;
use aneforge::io::models::{self, Model, bert};
use aneforge::io::{BUCKETS, ModelFolder, SafeTensors};
use aneforge::mil::Body;
use aneforge::{Graph, Program, Target, Tensor};
use std::path::{Path, PathBuf};

/// Which model, and in what shape.
#[derive(clap::Args)]
pub struct ModelOptions {
    /// Folder in Hugging Face layout (BERT), .safetensors in torchvision's layout (ResNet, ViT), a bundle, a Core ML package
    /// (.mlpackage), or graph text in a .graph file.
    model: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Tokens per text, for sentence encoders.
    #[arg(long, default_value_t = 128)]
    bucket: usize,
    /// Texts per program, for sentence encoders.
    #[arg(long, default_value_t = 1)]
    batch: usize,
}

impl ModelOptions {
    /// The model as a program before any pass, what it is, and what samples of its inputs can be made from.
    pub fn source(&self, target: Target) -> Result<(String, Body, Samples), Failure> {
        source(self, target)
    }
}

fn source(options: &ModelOptions, target: Target) -> Result<(String, Body, Samples), Failure> {
    let path = &options.model;
    if package::is_package(path) {
        let body = package::body(path, &options.selection)?;
        return Ok((format!("package {}", path.display()), body, Samples::Generated));
    }
    options.selection.refuse(path)?;
    let is_bundle = |name: &str| path.join(name).exists();
    if path.is_dir() && (is_bundle(aneforge::compile::bundle::TEXT) || is_bundle(aneforge::compile::bundle::SEGMENTS)) {
        aneforge::io::bundle::check(path)?;
        let program = Program::open(path)?;
        return Ok((format!("program {}", path.display()), program.body().clone(), Samples::Generated));
    }
    let lowered = |outputs: &[(&str, &Tensor)]| {
        let named: Vec<(String, Tensor)> = outputs.iter().map(|(name, tensor)| ((*name).to_string(), (*tensor).clone())).collect();
        lower(&named, target).map_err(|error| Failure::input(&error))
    };
    if path.extension().is_some_and(|extension| extension == "graph") {
        let read =
            std::fs::read_to_string(path).map_err(|error| Failure::Input(format!("cannot read {}: {error}", path.display())))?;
        let graph = Graph::parse(&read).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
        let outputs: Vec<_> = graph.outputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        return Ok((format!("graph {}", path.display()), lowered(&outputs)?, Samples::Generated));
    }
    let (model, samples) = if path.is_dir() {
        (sentence_encoder(path, options)?, Samples::Texts { folder: path.clone(), batch: options.batch, tokens: options.bucket })
    } else {
        (classifier(path)?, Samples::Generated)
    };
    Ok((model.description.clone(), lowered(&model.named_outputs())?, samples))
}

fn sentence_encoder(folder: &Path, options: &ModelOptions) -> Result<Model, Failure> {
    let folder = ModelFolder::open(folder)?;
    let config = bert::BertConfig::read(folder.config())?;
    if options.batch == 0 || options.bucket == 0 || options.bucket > config.positions {
        return Err(Failure::Input(format!(
            "--batch must be at least 1 and --bucket 1 to {} for this model; usual buckets are {BUCKETS:?}",
            config.positions
        )));
    }
    Ok(bert::build(&folder, &config, options.batch, options.bucket)?)
}

fn classifier(path: &Path) -> Result<Model, Failure> {
    if path.extension().is_none_or(|extension| extension != "safetensors") {
        return Err(Failure::Input(format!(
            "{} is no model: expected a folder in Hugging Face layout, a .safetensors file, a bundle, a Core ML package or a .graph file",
            path.display()
        )));
    }
    Ok(models::image_classifier(&SafeTensors::open(path)?)?)
}
