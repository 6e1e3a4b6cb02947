//! Models with named parameters, losses, optimizers, and trainers whose whole step is one program.
//!
//! A model is a struct of modules; its forward pass is a plain function. The same one serves training, where parameters are buffers
//! that stay on the device, and inference, where they are weights of the program.
//!
//! ```
//! use aneforge_core::{DType, Graph, Tensor};
//! use aneforge_nn::{Linear, NnError, Parameters, Pass};
//!
//! struct Classifier { first: Linear, second: Linear }
//!
//! impl Classifier {
//!     fn apply(&self, pass: &Pass, x: &Tensor) -> Tensor {
//!         self.second.apply(pass, &self.first.apply(pass, x).relu())
//!     }
//! }
//!
//! let mut parameters = Parameters::new(42);
//! let mut root = parameters.root();
//! let model = Classifier {
//!     first: Linear::new(&mut root.scope("first"), 4, 8, true)?,
//!     second: Linear::new(&mut root.scope("second"), 8, 3, true)?,
//! };
//! assert_eq!(parameters.entries()[1].name(), "first.bias");
//!
//! let graph = Graph::new();
//! let x = graph.input("x", DType::Fp16, &[2, 4]);
//! let logits = model.apply(&Pass::inference(&parameters, &graph)?, &x);
//! assert_eq!(logits.shape()?, [2, 3]);
//! # Ok::<(), NnError>(())
//! ```
//!
//! # Training
//!
//! ```
//! use aneforge_core::{HostArray, Tensor};
//! use aneforge_nn::{DataPort, Linear, NnError, Optimizer, Outcome, Parameters, Pass, Recipe, Training, loss};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut parameters = Parameters::new(42);
//! let model = Linear::new(&mut parameters.root(), 2, 2, true)?;
//! let ports = [DataPort::values("points", &[4, 2]), DataPort::labels("sides", &[4], 2)];
//! let objective = |pass: &Pass, batch: &[Tensor]| Outcome::from(loss::cross_entropy(&model.apply(pass, &batch[0]), &batch[1], 0.0));
//! let device = aneforge_runtime::open("cpu")?;
//! let recipe = Recipe::new(Optimizer::adam(), 0.1);
//! let training = Training {
//!     parameters: &parameters, recipe: &recipe, ports: &ports, model: &objective, device: &device, target: None,
//! };
//! let mut trainer = training.resident()?;
//! let points = HostArray::fp16_from_f32([4, 2], &[1.0, 0.5, -1.0, 0.25, 2.0, -1.0, -0.5, 1.0])?;
//! let sides = HostArray::from_i32([4], &[1, 0, 1, 0])?;
//! let losses = (0..20).map(|_| Ok(trainer.step(&[points.clone(), sides.clone()])?[0].loss)).collect::<Result<Vec<f32>, NnError>>()?;
//! assert!(losses[19] < 0.5 * losses[0]);
//! assert_eq!(trainer.traffic().dispatches, 20);
//! trainer.sync(&mut parameters)?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod checkpoint;
mod clip;
mod detach;
mod error;
mod evaluator;
mod hazard;
mod host;
mod initialise;
mod loaded;
pub mod loss;
mod module;
pub mod optimizer;
pub mod pair;
mod parameters;
mod pass;
mod random;
mod recipe;
mod sampler;
mod schedule;
pub mod state;
mod step;
mod trainer;
mod training;

pub use checkpoint::{CheckpointError, Progress};
pub use clip::{are_numbers, clip_by_norm};
pub use detach::{DETACH, detach};
pub use error::NnError;
pub use evaluator::{Evaluator, Forward};
pub use hazard::{Hazard, HazardKind, hazards};
pub use host::HostTrainer;
pub use initialise::{Initialiser, RELU_GAIN};
pub use module::{
    Attention, AttentionOptions, BatchNorm, Conv2d, Embedding, GroupNorm, LayerNorm, Linear, Mlp, RmsNorm, RopeStyle, SwiGlu, rope,
};
pub use optimizer::Optimizer;
pub use parameters::{Entry, Parameter, Parameters, Scope};
pub use pass::Pass;
pub use random::Random;
pub use recipe::{Group, LossScale, Recipe};
pub use sampler::Sampler;
pub use schedule::Schedule;
pub use step::{DataPort, Model, Outcome, Step};
pub use trainer::{ResidentTrainer, StepReport, Traffic};
pub use training::Training;
