//! One pass of a model through a graph: where modules find their parameters as tensors.

use crate::{NnError, Parameter, Parameters};
use aneforge_core::{Graph, GraphError, Tensor, Weight};
use half::f16;
use std::cell::RefCell;

/// The parameters of a model as tensors of one graph, for training or for inference. Modules read them here and leave the
/// statistics that they computed.
#[derive(Debug)]
pub struct Pass {
    graph: Graph,
    tensors: Vec<Tensor>,
    training: bool,
    updates: RefCell<Vec<(Parameter, Tensor)>>,
}

impl Pass {
    /// A pass for inference: parameters are weights of the program, rounded to fp16, under their names.
    ///
    /// # Errors
    /// [`NnError::Weight`].
    pub fn inference(parameters: &Parameters, graph: &Graph) -> Result<Self, NnError> {
        let tensors = parameters.entries().iter().map(|entry| constant(graph, entry)).collect::<Result<_, _>>()?;
        Ok(Self::new(graph, tensors, false))
    }

    /// A pass with tensors of one's own, one for each parameter, in order.
    pub fn new(graph: &Graph, tensors: Vec<Tensor>, training: bool) -> Self {
        Self { graph: graph.clone(), tensors, training, updates: RefCell::default() }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whether statistics come from the batch and are to be updated.
    pub fn is_training(&self) -> bool {
        self.training
    }

    /// A parameter as a tensor; a failed one for a handle of other [`Parameters`] that has no counterpart here.
    pub fn tensor(&self, parameter: Parameter) -> Tensor {
        self.tensors.get(parameter.0).cloned().unwrap_or_else(|| {
            let problem = format!("is not among the {} of this pass; use a model with its own Parameters", self.tensors.len());
            self.graph.failed(GraphError::Input { op: "parameter", input: parameter.0.to_string(), problem })
        })
    }

    /// Leaves the next value of a statistic; the last one left counts.
    pub fn update(&self, parameter: Parameter, value: Tensor) {
        self.updates.borrow_mut().push((parameter, value));
    }

    /// The statistics left so far.
    pub fn updates(&self) -> Vec<(Parameter, Tensor)> {
        self.updates.borrow().clone()
    }
}

/// A parameter that the program holds as a weight.
pub(crate) fn constant(graph: &Graph, entry: &crate::Entry) -> Result<Tensor, NnError> {
    let values: Vec<f16> = entry.values().iter().map(|&value| f16::from_f32(value)).collect();
    Ok(graph.parameter(entry.name(), Weight::from_fp16(entry.shape().to_vec(), &values)?))
}
