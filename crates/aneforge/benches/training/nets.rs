//! The nets and their steps; testing/python/torch_step.py has the same.

use crate::side::Result;
use aneforge::core::{HostArray, Tensor};
use aneforge::nn::{
    Attention, AttentionOptions, DataPort, Embedding, LayerNorm, Linear, Mlp, Model, NnError, Optimizer, Outcome, Parameters, Pass,
    Recipe, ResidentTrainer, Scope, Step, Training, loss,
};
use aneforge::train::Task;
use aneforge::{CompileOptions, IntoProgram, compile};
use std::time::Duration;

/// What is trained.
#[derive(Clone, Copy, PartialEq)]
pub enum Net {
    /// The convolutional net of 16 and 32 channels for Fashion-MNIST, batch 100, Adam.
    Image,
    /// A causal transformer of two layers, width 128, 4 heads, over 256 tokens, batch 16 of 64 positions, AdamW.
    Transformer,
}

const BATCH: usize = 100;
const SEQUENCES: usize = 16;
const POSITIONS: usize = 64;
const WIDTH: usize = 128;
const TOKENS: usize = 256;

impl Net {
    pub const ALL: [Self; 2] = [Self::Image, Self::Transformer];

    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Transformer => "transformer",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Image => "image CNN, batch 100: cpu / PyTorch",
            Self::Transformer => "transformer, 16 x 64: cpu / PyTorch",
        }
    }

    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|net| net.name() == name)
    }
}

/// All that a trainer is built from, and a batch.
struct Setup {
    parameters: Parameters,
    recipe: Recipe,
    ports: [DataPort; 2],
    model: Box<Model<'static>>,
    batch: [HostArray; 2],
}

fn setup(net: Net) -> Result<Setup> {
    let mut parameters = Parameters::new(1);
    let places = |count: usize, classes: usize| (0..count).map(|index| (index * 7919 % classes) as i32).collect::<Vec<i32>>();
    match net {
        Net::Image => {
            let model = aneforge::train::Net::new(Task::FashionCnn, &mut parameters)?;
            let shape = [BATCH, 1, 28, 28];
            let pixels: Vec<f32> = (0..BATCH * 784).map(|index| (index as f32 * 0.618_034).fract() * 2.0 - 1.0).collect();
            Ok(Setup {
                parameters,
                recipe: Recipe::new(Optimizer::adam(), 1e-3),
                ports: [DataPort::values("images", &shape), DataPort::labels("labels", &[BATCH], 10)],
                model: Box::new(move |pass, batch| model.outcome(pass, batch, 0.0)),
                batch: [HostArray::fp16_from_f32(shape, &pixels)?, HostArray::from_i32([BATCH], &places(BATCH, 10))?],
            })
        }
        Net::Transformer => {
            let model = Transformer::new(&mut parameters.root())?;
            let shape = [SEQUENCES, POSITIONS];
            let tokens = places(SEQUENCES * POSITIONS, TOKENS);
            let mut next = tokens.clone();
            next.rotate_left(1);
            Ok(Setup {
                parameters,
                recipe: Recipe::new(Optimizer::adamw(), 1e-3),
                ports: [DataPort::labels("tokens", &shape, TOKENS), DataPort::labels("next", &shape, TOKENS)],
                model: Box::new(move |pass, batch| {
                    Outcome::from(loss::cross_entropy(&model.logits(pass, &batch[0]), &batch[1], 0.0))
                }),
                batch: [HostArray::from_i32(shape, &tokens)?, HostArray::from_i32(shape, &next)?],
            })
        }
    }
}

/// A trainer on `cpu` and a batch.
pub fn trainer(net: Net) -> Result<(ResidentTrainer, [HostArray; 2])> {
    let Setup { parameters, recipe, ports, model, batch } = setup(net)?;
    let device = aneforge::open("cpu")?;
    let training =
        Training { parameters: &parameters, recipe: &recipe, ports: &ports, model: &*model, device: &device, target: None };
    Ok((training.resident()?, batch))
}

/// Prints the time of each step of the plan, longest first, best of many runs.
pub fn profile(net: Net) -> Result<()> {
    let Setup { parameters, recipe, ports, model, .. } = setup(net)?;
    let outputs = Step::build(&parameters, &recipe, &ports, &*model)?.outputs();
    let named: Vec<_> = outputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let executable = aneforge::open("cpu")?.load(&compile(&named, &CompileOptions::default())?.into_program()?)?;
    let inputs: Vec<Vec<u8>> = executable.inputs().iter().map(|port| vec![0; port.byte_length()]).collect();
    let buffers: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut held: Vec<Vec<u8>> = executable.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
    let mut slices: Vec<&mut [u8]> = held.iter_mut().map(Vec::as_mut_slice).collect();
    let mut best = executable.profile(&buffers, &mut slices)?;
    for _ in 0..20 {
        let times = executable.profile(&buffers, &mut slices)?;
        best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
    }
    let report = executable.report();
    println!("arena {:.1} MB, constants {:.1} MB", report.arena_bytes as f64 / 1e6, report.constant_bytes as f64 / 1e6);
    println!("{:.3} ms in {} steps", best.iter().sum::<Duration>().as_secs_f64() * 1e3, best.len());
    let mut steps: Vec<_> = best.iter().zip(&report.steps).collect();
    steps.sort_by(|a, b| b.0.cmp(a.0));
    for (time, step) in steps {
        println!("{:>9.1} us  {}: {} {:?}", time.as_secs_f64() * 1e6, step.name, step.kernel, step.ops);
    }
    Ok(())
}

/// Layers that add to what they read, each behind a norm.
struct Transformer {
    tokens: Embedding,
    places: Embedding,
    layers: Vec<(LayerNorm, Attention, LayerNorm, Mlp)>,
    norm: LayerNorm,
    head: Linear,
}

impl Transformer {
    fn new(scope: &mut Scope<'_>) -> std::result::Result<Self, NnError> {
        let options = AttentionOptions { bias: true, causal: true, ..AttentionOptions::new(4) };
        let mut layers = Vec::new();
        for index in 0..2 {
            let mut layer = scope.scope(format!("layers.{index}"));
            layers.push((
                LayerNorm::new(&mut layer.scope("norm1"), WIDTH)?,
                Attention::new(&mut layer.scope("attention"), WIDTH, options)?,
                LayerNorm::new(&mut layer.scope("norm2"), WIDTH)?,
                Mlp::new(&mut layer.scope("mlp"), WIDTH, 4 * WIDTH)?,
            ));
        }
        Ok(Self {
            tokens: Embedding::new(&mut scope.scope("tokens"), TOKENS, WIDTH, 0.02)?,
            places: Embedding::new(&mut scope.scope("places"), POSITIONS, WIDTH, 0.02)?,
            layers,
            norm: LayerNorm::new(&mut scope.scope("norm"), WIDTH)?,
            head: Linear::new(&mut scope.scope("head"), WIDTH, TOKENS, true)?,
        })
    }

    fn logits(&self, pass: &Pass, tokens: &Tensor) -> Tensor {
        let places: Vec<f64> = (0..POSITIONS).map(|place| place as f64).collect();
        let places = pass.graph().values(aneforge::DType::Int32, &[POSITIONS], &places);
        let mut x = self.tokens.apply(pass, tokens).add(&self.places.apply(pass, &places));
        for (first, attention, second, mlp) in &self.layers {
            x = x.add(&attention.apply(pass, &first.apply(pass, &x), None));
            x = x.add(&mlp.apply(pass, &second.apply(pass, &x)));
        }
        self.head.apply(pass, &self.norm.apply(pass, &x))
    }
}
