//! What can be trained by name: a model and the images that it learns.

use crate::Source;
use aneforge_core::{Tensor, Window};
use aneforge_nn::{Conv2d, GroupNorm, Linear, NnError, Outcome, Parameters, Pass, loss};
use serde::{Deserialize, Serialize};

/// A model and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Dense layers 784, 256, 10 on Fashion-MNIST: the widths of the network whose training on MNIST the ANEForge paper times
    /// (arXiv 2606.17090).
    FashionMlp,
    /// Two 3 by 3 convolutions with 8 and 16 channels, each with a relu and a 2 by 2 maximum, and a dense layer, on Fashion-MNIST.
    FashionCnnSmall,
    /// The same with 16 and 32 channels.
    FashionCnn,
    /// Three 3 by 3 convolutions with 32, 64 and 128 channels, each with a group norm of 8 groups, a relu and a 2 by 2 maximum, and a
    /// dense layer, on CIFAR-10: widths and groups of the network that PyPI aneforge 0.4.0 offers as `cifar_cnn`.
    Cifar10Cnn,
}

impl Task {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::FashionMlp, Self::FashionCnnSmall, Self::FashionCnn, Self::Cifar10Cnn];

    /// Its name in settings and commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::FashionMlp => "fashion-mlp",
            Self::FashionCnnSmall => "fashion-cnn-small",
            Self::FashionCnn => "fashion-cnn",
            Self::Cifar10Cnn => "cifar10-cnn",
        }
    }

    /// The task of a name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// Its images.
    pub fn source(self) -> Source {
        match self {
            Self::FashionMlp | Self::FashionCnnSmall | Self::FashionCnn => Source::FashionMnist,
            Self::Cifar10Cnn => Source::Cifar10,
        }
    }
}

/// A task's model.
#[derive(Clone, Debug)]
pub struct Net {
    blocks: Vec<(Conv2d, Option<GroupNorm>)>,
    dense: Vec<Linear>,
}

impl Net {
    /// Adds the parameters of a task's model. Weights and biases start uniform within `1 / sqrt(inputs)` of their layer.
    ///
    /// # Errors
    /// [`NnError::DuplicateName`] where `parameters` holds a model already.
    pub fn new(task: Task, parameters: &mut Parameters) -> Result<Self, NnError> {
        let [channels, side, _] = task.source().shape();
        let classes = task.source().classes();
        let (widths, groups): (&[usize], _) = match task {
            Task::FashionMlp => (&[], None),
            Task::FashionCnnSmall => (&[8, 16], None),
            Task::FashionCnn => (&[16, 32], None),
            Task::Cifar10Cnn => (&[32, 64, 128], Some(8)),
        };
        let mut root = parameters.root();
        let (mut blocks, mut inputs) = (Vec::new(), channels);
        let padded = Window::default().padding(1);
        for (index, &width) in widths.iter().enumerate() {
            let conv = Conv2d::new(&mut root.scope(format!("conv{}", index + 1)), (inputs, width), 3, &padded, true)?;
            let norm = groups.map(|groups| GroupNorm::new(&mut root.scope(format!("norm{}", index + 1)), groups, width));
            blocks.push((conv, norm.transpose()?));
            inputs = width;
        }
        // Each block halves the sides.
        let flat = inputs * (side >> widths.len()).pow(2);
        let dense = if widths.is_empty() {
            let first = Linear::new(&mut root.scope("dense1"), flat, 256, true)?;
            vec![first, Linear::new(&mut root.scope("dense2"), 256, classes, true)?]
        } else {
            vec![Linear::new(&mut root.scope("dense"), flat, classes, true)?]
        };
        Ok(Self { blocks, dense })
    }

    /// Logits `[batch, classes]` of images `[batch, channels, height, width]`.
    pub fn logits(&self, pass: &Pass, images: &Tensor) -> Tensor {
        let mut x = images.clone();
        for (conv, norm) in &self.blocks {
            x = conv.apply(pass, &x);
            if let Some(norm) = norm {
                x = norm.apply(pass, &x);
            }
            x = x.relu().max_pool(&Window::square(2));
        }
        let batch = x.shape().map_or(1, |shape| shape[0]) as i64;
        x = x.reshape(&[batch, -1]);
        for (index, layer) in self.dense.iter().enumerate() {
            x = layer.apply(pass, &if index > 0 { x.relu() } else { x });
        }
        x
    }

    /// The loss of a batch: cross entropy with label smoothing.
    pub fn outcome(&self, pass: &Pass, batch: &[Tensor], smoothing: f64) -> Outcome {
        Outcome::from(loss::cross_entropy(&self.logits(pass, &batch[0]), &batch[1], smoothing))
    }
}
