//! Model families as graphs, with weights by the names that their authors' libraries give them.
//!
//! Each builder takes a checked weight file and returns named outputs of a fresh [`Graph`](aneforge_core::Graph), ready for
//! [`aneforge_compile::compile`]. Weights stay in the file until they are compiled.

pub mod bert;
mod layers;
pub mod resnet;
pub mod vit;

use crate::{IoError, SafeTensors};
use aneforge_core::{Graph, GraphError, Tensor};

/// A built model: its outputs by name. The graph lives behind the tensors.
#[derive(Clone, Debug)]
pub struct Model {
    /// What it is, for example `resnet [2, 2, 2, 2]`.
    pub description: String,
    /// Outputs in order.
    pub outputs: Vec<(String, Tensor)>,
}

/// Why a model could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file is unreadable, damaged or lacks something.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The weights do not form a legal graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The file's tensors belong to no family known here.
    #[error("{path} holds no model known here (torchvision ResNet, torchvision ViT); its first tensors are {found}")]
    Unknown {
        /// The file.
        path: std::path::PathBuf,
        /// A few names.
        found: String,
    },
}

impl Model {
    /// A model from its outputs.
    ///
    /// # Errors
    /// The first rule broken on the way to an output.
    pub(crate) fn new(description: String, outputs: Vec<(&str, Tensor)>) -> Result<Self, ModelError> {
        outputs.iter().try_for_each(|(_, tensor)| tensor.check().map(drop))?;
        Ok(Self { description, outputs: outputs.into_iter().map(|(name, tensor)| (name.to_string(), tensor)).collect() })
    }

    /// The outputs as [`aneforge_compile::compile`] takes them.
    pub fn named_outputs(&self) -> Vec<(&str, &Tensor)> {
        self.outputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect()
    }
}

/// Builds the image classifier that a weight file in torchvision's key layout holds, told by its tensors' names.
///
/// # Errors
/// [`ModelError::Unknown`] where the names fit no family, else as the family's builder.
pub fn image_classifier(weights: &SafeTensors) -> Result<Model, ModelError> {
    if weights.info("conv_proj.weight").is_some() {
        return vit::build(&Graph::new(), weights);
    }
    if weights.info("layer1.0.conv1.weight").is_some() {
        return resnet::build(&Graph::new(), weights);
    }
    let found: Vec<_> = weights.tensors().take(4).map(|(name, _)| name).collect();
    Err(ModelError::Unknown { path: weights.path().to_path_buf(), found: found.join(", ") })
}
