//! What a tensor comes from, for those who walk a graph from outside.

use super::{ConstantData, NodeKind, Tensor};
use crate::{Attribute, GraphError, GraphOp, Weight};

/// Where a tensor comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// An input of the program.
    Input {
        /// Its name.
        name: String,
    },
    /// A weight that training may change.
    Parameter {
        /// Its name.
        name: String,
        /// Its data.
        weight: Weight,
    },
    /// A constant of few elements.
    Values(Vec<f64>),
    /// A constant with the data of a weight.
    Weight(Weight),
    /// A result of an operator.
    Apply {
        /// The operator.
        op: &'static GraphOp,
        /// The tensors at each input, in the order of the record.
        inputs: Vec<Vec<Tensor>>,
        /// The attributes, in the order of the record.
        attributes: Vec<Attribute>,
    },
}

impl Tensor {
    /// Where it comes from. Tensors of one graph that [`Self::place`] tells apart by the result alone have the same source.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn source(&self) -> Result<Source, GraphError> {
        let kind = self.graph().read().node(self.port()?.node).kind.clone();
        Ok(match kind {
            NodeKind::Input { name } => Source::Input { name },
            NodeKind::Parameter { name, weight } => Source::Parameter { name, weight },
            NodeKind::Constant(ConstantData::Values(values)) => Source::Values(values),
            NodeKind::Constant(ConstantData::Weight(weight)) => Source::Weight(weight),
            NodeKind::Apply { op, inputs, attributes } => {
                let tensors = |ports: Vec<_>| ports.into_iter().map(|port| self.graph().tensor_at(port)).collect();
                Source::Apply { op, inputs: inputs.into_iter().map(tensors).collect(), attributes }
            }
        })
    }

    /// Which node of its graph it is a result of, and which one of its results; sources have smaller numbers than what uses them.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn place(&self) -> Result<(usize, usize), GraphError> {
        self.port().map(|port| (port.node.index(), port.output as usize))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{DType, Graph};

    #[test]
    fn a_graph_is_walked_from_a_result_to_its_inputs() {
        let graph = Graph::new();
        let x = graph.input("x", DType::Fp16, &[2, 4]);
        let second = x.split(2, 1).remove(1);
        assert_eq!(second.place().unwrap(), (1, 1));
        let Source::Apply { op, inputs, attributes } = second.source().unwrap() else { panic!("split is an operator") };
        assert_eq!((op.name, attributes), ("split", vec![Attribute::Int(2), Attribute::Int(1)]));
        assert!(inputs[0][0].is_same(&x));
        assert!(matches!(x.source().unwrap(), Source::Input { name } if name == "x"));
        assert!(matches!(graph.scalar(0.5).source().unwrap(), Source::Values(values) if values == [0.5]));
    }
}
