//! The corpus of graphs: every example of the operator table, and small networks.

#[path = "../../../core/tests/support/mod.rs"]
mod table;

use super::Inputs;
use aneforge::core::{Heads, op::builtin};
use aneforge::{Array, DType, Graph, Tensor, Weight, Window, concat, mha};
use aneforge_testkit::Random;
use half::f16;

/// A graph with values for its inputs.
pub struct Sample {
    pub name: String,
    pub outputs: Vec<(String, Tensor)>,
    pub inputs: Inputs,
    /// What an fp16 device may show against f64, scaled by the largest result.
    pub tolerance: f64,
}

impl Sample {
    pub fn named_outputs(&self) -> Vec<(&str, &Tensor)> {
        self.outputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect()
    }
}

/// Every example of every operator.
pub fn operators() -> Vec<Sample> {
    let examples = builtin().iter().flat_map(|op| op.cases.iter().map(move |case| (op, case)));
    examples
        .map(|(op, case)| {
            let built = table::build(op, case);
            let named = |(tensor, array): (&Tensor, &Array)| (tensor.name().unwrap(), array.clone().rounded());
            Sample {
                name: format!("{}/{}", op.name, case.name),
                outputs: built.named_outputs(),
                inputs: built.inputs.iter().zip(&built.arrays).map(named).collect(),
                tolerance: op.tolerance.max(1e-3),
            }
        })
        .collect()
}

/// Graphs of several operators.
pub fn networks() -> Vec<Sample> {
    vec![transformer_block(), residual_network(), shared_parts(), mixed_results(), diamond()]
}

/// Numbers for graphs: inputs with values and weights, all from one seed.
pub struct Maker {
    pub graph: Graph,
    inputs: Inputs,
    random: Random,
}

impl Maker {
    pub fn new(seed: u64) -> Self {
        Self { graph: Graph::new(), inputs: Vec::new(), random: Random::new(seed) }
    }

    pub fn input(&mut self, name: &str, shape: &[usize], low: f64, high: f64) -> Tensor {
        let values = self.random.values(shape.iter().product(), low, high);
        self.inputs.push((name.to_string(), Array::new(DType::Fp16, shape, values).rounded()));
        self.graph.input(name, DType::Fp16, shape)
    }

    pub fn weight(&mut self, shape: &[usize], low: f64, high: f64) -> Tensor {
        let values: Vec<f16> = self.random.values(shape.iter().product(), low, high).into_iter().map(f16::from_f64).collect();
        self.graph.weight(Weight::from_fp16(shape, &values).unwrap())
    }

    /// A dense layer's weight, scaled to keep activations near 1.
    pub fn dense(&mut self, rows: usize, columns: usize) -> Tensor {
        let end = (3.0 / columns as f64).sqrt();
        self.weight(&[rows, columns], -end, end)
    }

    pub fn sample(self, name: &str, tolerance: f64, outputs: &[(&str, &Tensor)]) -> Sample {
        let outputs = outputs.iter().map(|(name, tensor)| (name.to_string(), (*tensor).clone())).collect();
        Sample { name: name.to_string(), outputs, inputs: self.inputs, tolerance }
    }
}

fn transformer_block() -> Sample {
    let mut make = Maker::new(1);
    let (rows, width, inner) = (12, 32, 64);
    let x = make.input("x", &[2, rows, width], -1.5, 1.5);
    let mask = make.input("mask", &[2, 1, 1, rows], -4.0, 0.0);
    let projections: Vec<Tensor> = (0..4).map(|_| make.dense(width, width)).collect();
    let biases: Vec<Tensor> = (0..4).map(|_| make.weight(&[width], -0.2, 0.2)).collect();
    let pair = |index: usize| (&projections[index], Some(&biases[index]));
    let heads = Heads { query: pair(0), key: pair(1), value: pair(2), output: pair(3), heads: 4 };
    let gains: Vec<Tensor> = (0..2).map(|_| make.weight(&[width], 0.5, 1.5)).collect();
    let offsets: Vec<Tensor> = (0..2).map(|_| make.weight(&[width], -0.3, 0.3)).collect();
    let attended = mha(&x, &x, &heads, Some(&mask));
    let middle = (&x + &attended).layer_norm(-1, Some(&gains[0]), Some(&offsets[0]), 1e-5);
    let (up, up_bias) = (make.dense(inner, width), make.weight(&[inner], -0.2, 0.2));
    let (down, down_bias) = (make.dense(width, inner), make.weight(&[width], -0.2, 0.2));
    let fed = middle.linear(&up, Some(&up_bias)).gelu("EXACT").linear(&down, Some(&down_bias));
    let y = (&middle + &fed).layer_norm(-1, Some(&gains[1]), Some(&offsets[1]), 1e-5);
    let pooled = y.mean(1, false).l2_norm(-1, 1e-12);
    make.sample("transformer block", 1e-2, &[("hidden", &y), ("pooled", &pooled)])
}

fn residual_network() -> Sample {
    let mut make = Maker::new(2);
    let image = make.input("image", &[1, 3, 19, 17], -1.0, 1.0);
    let stem = make.weight(&[8, 3, 7, 7], -0.1, 0.1);
    let stem_bias = make.weight(&[8], -0.2, 0.2);
    let x = image.conv(&stem, Some(&stem_bias), &Window::default().stride(2).padding(3)).relu();
    let x = x.max_pool(&Window::square(3).stride(2).padding(1));
    let (first, second) = (make.weight(&[8, 8, 3, 3], -0.2, 0.2), make.weight(&[8, 8, 3, 3], -0.2, 0.2));
    let bias = make.weight(&[8], -0.2, 0.2);
    let same = Window::default().padding(1);
    let block = x.conv(&first, Some(&bias), &same).relu().conv(&second, Some(&bias), &same);
    let x = (&block + &x).relu();
    let (down, wide) = (make.weight(&[16, 8, 1, 1], -0.5, 0.5), make.weight(&[16, 8, 3, 3], -0.2, 0.2));
    let [mean, gamma, beta] = [make.weight(&[16], -0.3, 0.3), make.weight(&[16], 0.5, 1.5), make.weight(&[16], -0.3, 0.3)];
    let variance = make.weight(&[16], 0.5, 2.0);
    let half = Window::default().stride(2);
    let straight = x.conv(&down, None, &half);
    let bent = x.conv(&wide, None, &half.padding(1)).batch_norm(&mean, &variance, Some(&gamma), Some(&beta), 1e-5);
    let features = (&bent + &straight).relu();
    let (head, head_bias) = (make.dense(10, 16), make.weight(&[10], -0.1, 0.1));
    let logits = features.mean([2, 3], false).linear(&head, Some(&head_bias));
    make.sample("residual network", 1e-2, &[("logits", &logits)])
}

/// One value used by several outputs, one output used by another, and parts of a split of which one is dropped.
fn shared_parts() -> Sample {
    let mut make = Maker::new(3);
    let x = make.input("x", &[2, 6, 8], -2.0, 2.0);
    let unused = make.input("unused", &[3], -1.0, 1.0);
    let _ = unused.relu();
    let parts = x.split(3, 1);
    let (a, b) = (parts[0].tanh(), &parts[2] * 0.5 + 0.25);
    let joined = concat(&[a.clone(), b.clone()], 1);
    let scaled = joined.softmax(-1);
    make.sample("shared parts", 2e-3, &[("scaled", &scaled), ("a", &a), ("joined", &joined)])
}

/// Results that are no fp16 numbers beside ones that are, and scalars.
fn mixed_results() -> Sample {
    let mut make = Maker::new(4);
    let (x, y) = (make.input("x", &[5, 7], -2.0, 2.0), make.input("y", &[7], -2.0, 2.0));
    let mask = x.greater(&y);
    let chosen = mask.select(&x, &y);
    let total = chosen.sum([0i64; 0], false);
    let wide = chosen.cast(DType::Fp32);
    make.sample("mixed results", 2e-3, &[("mask", &mask), ("chosen", &chosen), ("total", &total), ("wide", &wide)])
}

/// The same sub-expression by two ways, constants that fold, identities that vanish.
fn diamond() -> Sample {
    let mut make = Maker::new(5);
    let x = make.input("x", &[4, 16], -2.0, 2.0);
    let constant = make.graph.full(&[16], 0.5) + make.graph.full(&[16], 0.25);
    let left = (&x * &constant).relu();
    let right = (&x * &constant).relu() * 1.0 + 0.0;
    let y = (&left + &right).transpose(&[1, 0]).transpose(&[1, 0]).reshape(&[2, 32]).reshape(&[-1]);
    make.sample("diamond", 2e-3, &[("y", &y)])
}
