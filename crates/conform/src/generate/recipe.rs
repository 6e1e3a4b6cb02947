//! A graph as data: what the generator draws, the shrinker cuts and the builder builds.

use aneforge_core::{Array, Attribute, DType, Graph, GraphError, GraphOp, Tensor, TensorType, round_to_fp16};

/// Nodes in an order in which they can be built, and which results are handed back.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Results that are outputs of the program.
    pub outputs: Vec<Place>,
}

/// One result of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index of the node.
    pub node: usize,
    /// Which of its results.
    pub result: usize,
}

/// One node.
#[derive(Clone, Debug)]
pub enum Node {
    /// An input of the program with what its values are drawn from.
    Input {
        /// Element type and shape.
        ty: TensorType,
        /// Its values.
        draw: Draw,
    },
    /// A constant.
    Constant {
        /// Element type and shape.
        ty: TensorType,
        /// Its values, rounded to the type.
        values: Vec<f64>,
    },
    /// A use of an operator.
    Apply {
        /// The operator.
        op: &'static GraphOp,
        /// Tensors per input of the record.
        inputs: Vec<Vec<Place>>,
        /// Attributes that are not left out.
        attributes: Vec<(&'static str, Attribute)>,
    },
}

/// What values are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// Seed of the values.
    pub seed: u64,
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// Which numbers between them.
    pub flavour: Flavour,
}

/// Which numbers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Evenly spread reals.
    Real,
    /// The same, rounded to whole numbers.
    Whole,
    /// Every other one of the values that fp16 has at its edges.
    Edge,
}

/// Values at which fp16 arithmetic changes its ways: zeros, subnormals, the ends of exact integers, of the engine's products, of the
/// format, and beyond.
const EDGES: [f64; 18] = [
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    65504.0,
    -65504.0,
    32768.0,
    -32752.0,
    4096.0,
    2049.0,
    6.103515625e-5,
    6.097555160522461e-5,
    5.960464477539063e-8,
    -5.960464477539063e-8,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
];

/// A recipe as a graph.
#[derive(Clone, Debug)]
pub struct Built {
    /// The graph.
    pub graph: Graph,
    /// Named outputs.
    pub outputs: Vec<(String, Tensor)>,
    /// Named inputs with what their values are drawn from.
    pub inputs: Vec<(String, TensorType, Draw)>,
}

impl Flavour {
    /// The word for it in a case file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Whole => "whole",
            Self::Edge => "edge",
        }
    }

    /// The flavour of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Real, Self::Whole, Self::Edge].into_iter().find(|flavour| flavour.word() == word)
    }
}

impl Draw {
    /// The values of a tensor: numbers that fp16 holds, also where the type is wider, since devices store fp16.
    pub fn array(&self, ty: &TensorType) -> Array {
        let mut array = Array::seeded(ty.clone(), self.seed, (self.low, self.high));
        if ty.dtype.is_float() {
            array.data.iter_mut().for_each(|value| *value = round_to_fp16(*value).to_f64());
        }
        match self.flavour {
            Flavour::Whole => array.data.iter_mut().for_each(|value| *value = value.round() + 0.0),
            Flavour::Edge if ty.dtype.is_float() => {
                let start = self.seed as usize;
                let places = array.data.iter_mut().enumerate().filter(|(index, _)| (index + start).is_multiple_of(2));
                places.for_each(|(index, value)| *value = EDGES[(start / 2 + index * 7) % EDGES.len()]);
            }
            Flavour::Real | Flavour::Edge => {}
        }
        array
    }
}

impl Node {
    /// The places it uses.
    pub fn uses(&self) -> impl Iterator<Item = Place> {
        let inputs: &[Vec<Place>] = match self {
            Self::Apply { inputs, .. } => inputs,
            _ => &[],
        };
        inputs.iter().flatten().copied()
    }
}

/// A constant as the graph takes it.
pub(super) fn constant(graph: &Graph, ty: &TensorType, values: &[f64]) -> Tensor {
    graph.values(ty.dtype, &ty.shape, values)
}

impl Recipe {
    /// The graph, with inputs `x<n>` and outputs `y<n>`.
    ///
    /// # Errors
    /// What the builder refuses.
    pub fn build(&self) -> Result<Built, GraphError> {
        let graph = Graph::new();
        let mut results: Vec<Vec<Tensor>> = Vec::with_capacity(self.nodes.len());
        let mut named = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let made = match node {
                Node::Input { ty, draw } => {
                    let name = format!("x{index}");
                    let tensor = graph.input(&name, ty.dtype, &ty.shape);
                    named.push((name, ty.clone(), *draw));
                    vec![tensor]
                }
                Node::Constant { ty, values } => vec![constant(&graph, ty, values)],
                Node::Apply { op, inputs, attributes } => {
                    let mut tensors = Vec::with_capacity(inputs.len());
                    for places in inputs {
                        tensors.push(places.iter().map(|place| found(&results, *place)).collect::<Result<Vec<_>, _>>()?);
                    }
                    graph.apply_lists(op, &tensors, attributes)
                }
            };
            made.iter().try_for_each(|tensor| tensor.check().map(|_| ()))?;
            results.push(made);
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for (index, place) in self.outputs.iter().enumerate() {
            outputs.push((format!("y{index}"), found(&results, *place)?));
        }
        Ok(Built { graph, outputs, inputs: named })
    }

    /// Without the nodes that no output needs.
    #[must_use]
    pub fn pruned(&self) -> Self {
        let mut live = vec![false; self.nodes.len()];
        self.outputs.iter().for_each(|place| live[place.node] = true);
        for index in (0..self.nodes.len()).rev() {
            if live[index] {
                self.nodes[index].uses().for_each(|place| live[place.node] = true);
            }
        }
        let mut moved = vec![0; self.nodes.len()];
        let mut nodes = Vec::new();
        let to = |moved: &[usize], place: Place| Place { node: moved[place.node], ..place };
        for (index, node) in self.nodes.iter().enumerate().filter(|(index, _)| live[*index]) {
            moved[index] = nodes.len();
            let mut node = node.clone();
            if let Node::Apply { inputs, .. } = &mut node {
                inputs.iter_mut().flatten().for_each(|place| *place = to(&moved, *place));
            }
            nodes.push(node);
        }
        Self { nodes, outputs: self.outputs.iter().map(|&place| to(&moved, place)).collect() }
    }

    /// The operators that it uses, one entry per use.
    pub fn operators(&self) -> impl Iterator<Item = &'static GraphOp> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Apply { op, .. } => Some(*op),
            _ => None,
        })
    }
}

/// A result of an earlier node.
fn found(results: &[Vec<Tensor>], place: Place) -> Result<Tensor, GraphError> {
    let tensor = results.get(place.node).and_then(|made| made.get(place.result));
    tensor.cloned().ok_or(GraphError::NoOutputs)
}

/// Element types that an input of a program has.
pub(super) fn is_port_type(dtype: DType) -> bool {
    matches!(dtype, DType::Fp16 | DType::Fp32 | DType::Int32 | DType::Bool | DType::UInt8 | DType::Int8 | DType::UInt16)
}
