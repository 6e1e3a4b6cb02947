//! One use of an operator becomes a node.

use super::{Graph, NodeId, NodeKind, Port, Tensor, check_type};
use crate::lower::infer;
use crate::op::{InputKind, Site};
use crate::{Attribute, GraphError, GraphOp, TensorType};
use aneforge_mil::op::Default;

/// What stands at an input of an operator.
#[derive(Clone, Debug)]
pub enum Argument<'a> {
    /// Nothing.
    Absent,
    /// One tensor.
    One(&'a Tensor),
    /// Several, for a variadic input.
    Many(&'a [Tensor]),
}

impl<'a> From<&'a Tensor> for Argument<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::One(tensor)
    }
}

impl<'a> From<Option<&'a Tensor>> for Argument<'a> {
    fn from(tensor: Option<&'a Tensor>) -> Self {
        tensor.map_or(Self::Absent, Self::One)
    }
}

impl<'a> From<&'a [Tensor]> for Argument<'a> {
    fn from(tensors: &'a [Tensor]) -> Self {
        Self::Many(tensors)
    }
}

impl<'a> Argument<'a> {
    fn tensors(&self) -> &'a [Tensor] {
        match self {
            Self::Absent => &[],
            Self::One(tensor) => std::slice::from_ref(tensor),
            Self::Many(tensors) => tensors,
        }
    }
}

/// Ports and types per input.
type Collected = (Vec<Vec<Port>>, Vec<Vec<TensorType>>);

impl Graph {
    /// Applies an operator, one of this crate or one's own, and returns its results: as many as it has, or a single failed tensor.
    pub fn apply(&self, op: &'static GraphOp, inputs: &[Argument<'_>], attributes: &[(&str, Attribute)]) -> Vec<Tensor> {
        let carried = inputs.iter().flat_map(Argument::tensors).find_map(Tensor::error);
        if let Some(error) = carried {
            return vec![Tensor::failed(self.clone(), error)];
        }
        match self.try_apply(op, inputs, attributes) {
            Ok((node, types)) => types
                .iter()
                .enumerate()
                .map(|(output, ty)| Tensor::new(self.clone(), Port { node, output: output as u32 }, ty))
                .collect(),
            Err(error) => vec![self.failed(error)],
        }
    }

    /// [`Self::apply`] with the tensors of each input in a list of its own, in the order of the record.
    pub fn apply_lists(&self, op: &'static GraphOp, inputs: &[Vec<Tensor>], attributes: &[(&str, Attribute)]) -> Vec<Tensor> {
        let arguments: Vec<Argument<'_>> = op
            .inputs
            .iter()
            .zip(inputs)
            .map(|(spec, tensors)| match (spec.kind, tensors.as_slice()) {
                (InputKind::Variadic, tensors) => Argument::Many(tensors),
                (_, []) => Argument::Absent,
                (_, [first, ..]) => Argument::One(first),
            })
            .collect();
        self.apply(op, &arguments, attributes)
    }

    /// [`Self::apply`] for operators with one result.
    pub fn apply_one(&self, op: &'static GraphOp, inputs: &[Argument<'_>], attributes: &[(&str, Attribute)]) -> Tensor {
        let mut results = self.apply(op, inputs, attributes);
        match results.pop() {
            Some(result) => result,
            None => self.failed(GraphError::NoOutputs),
        }
    }

    fn try_apply(
        &self,
        op: &'static GraphOp,
        inputs: &[Argument<'_>],
        attributes: &[(&str, Attribute)],
    ) -> Result<(NodeId, Vec<TensorType>), GraphError> {
        let attributes = complete_attributes(op, attributes)?;
        let (ports, types) = self.collect_inputs(op, inputs)?;
        let known = self.read().known_apply(op, &ports, &attributes);
        if let Some(known) = known {
            return Ok(known);
        }
        let site = Site { op, types: &types, attributes: &attributes, values: &[] };
        if let Some(broken) = op.constraints.iter().find(|constraint| !(constraint.holds)(&site)) {
            return Err(GraphError::Constraint { op: op.name, label: broken.label, rule: broken.rule, got: site.describe() });
        }
        // The guard ends with the statement: a second one in this thread could wait for a writer that waits for the first.
        let outputs = infer(&self.read(), op, &ports, &types, &attributes)?;
        for ty in &outputs {
            check_type(op.name, ty, true)?;
        }
        let node = self.write().add_apply(op, ports, attributes, outputs.clone());
        Ok((node, outputs))
    }

    fn collect_inputs(&self, op: &'static GraphOp, inputs: &[Argument<'_>]) -> Result<Collected, GraphError> {
        let problem = |input: &str, problem: String| GraphError::Input { op: op.name, input: input.to_string(), problem };
        if inputs.len() > op.inputs.len() {
            let known: Vec<_> = op.inputs.iter().map(|input| input.name).collect();
            return Err(problem(&inputs.len().to_string(), format!("is one too many; the operator takes {}", known.join(", "))));
        }
        let mut ports = Vec::with_capacity(op.inputs.len());
        let mut types = Vec::with_capacity(op.inputs.len());
        for (index, spec) in op.inputs.iter().enumerate() {
            let given = inputs.get(index).map_or(&[][..], Argument::tensors);
            let fits = match spec.kind {
                InputKind::One => given.len() == 1,
                InputKind::Optional => given.len() <= 1,
                InputKind::Variadic => !given.is_empty(),
            };
            if !fits {
                let wanted = match spec.kind {
                    InputKind::One => "exactly one tensor",
                    InputKind::Optional => "at most one tensor",
                    InputKind::Variadic => "at least one tensor",
                };
                return Err(problem(spec.name, format!("takes {wanted}, got {}", given.len())));
            }
            let mut here = Vec::with_capacity(given.len());
            let mut here_types = Vec::with_capacity(given.len());
            for tensor in given {
                if !tensor.graph().is_same(self) {
                    return Err(GraphError::OtherGraph { op: op.name, input: spec.name.to_string() });
                }
                let (port, ty) = (tensor.port()?, tensor.ty()?);
                if !spec.dtypes.contains(&ty.dtype) {
                    let known: Vec<_> = spec.dtypes.iter().map(|dtype| dtype.keyword()).collect();
                    return Err(problem(spec.name, format!("takes {}, got {ty}", known.join(", "))));
                }
                let kind_fits = !spec.constant
                    || matches!(self.read().node(port.node).kind, NodeKind::Constant(_) | NodeKind::Parameter { .. });
                if !kind_fits {
                    return Err(problem(spec.name, "must be a constant or a parameter".to_string()));
                }
                here.push(port);
                here_types.push(ty.clone());
            }
            ports.push(here);
            types.push(here_types);
        }
        Ok((ports, types))
    }
}

fn complete_attributes(op: &'static GraphOp, given: &[(&str, Attribute)]) -> Result<Vec<Attribute>, GraphError> {
    let problem =
        |attribute: &str, problem: String| GraphError::Attribute { op: op.name, attribute: attribute.to_string(), problem };
    if let Some((name, _)) = given.iter().find(|(name, _)| op.attribute(name).is_none()) {
        let known: Vec<_> = op.attributes.iter().map(|attribute| attribute.name).collect();
        return Err(problem(name, format!("is unknown; the operator takes {}", known.join(", "))));
    }
    let mut complete = Vec::with_capacity(op.attributes.len());
    for spec in op.attributes {
        let value = given.iter().find(|(name, _)| *name == spec.name).map(|(_, value)| value.clone());
        complete.push(match (value, spec.default) {
            (Some(value), _) => spec.accept(value).map_err(|text| problem(spec.name, text))?,
            (None, Default::Required) => return Err(problem(spec.name, "is missing".to_string())),
            (None, default) => Attribute::from(default),
        });
    }
    Ok(complete)
}
