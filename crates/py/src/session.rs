//! From Python's nodes to a graph of the library and back.

use crate::node::{Kind, Node, Tensor};
use aneforge_core::{Attribute, Graph, GraphError, Source, Tensor as Built};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A graph of the library and which node of Python's each of its nodes stands for.
#[derive(Default)]
pub struct Session {
    pub graph: Graph,
    built: HashMap<(u64, usize), Built>,
    nodes: HashMap<usize, Tensor>,
}

impl Session {
    /// The tensor in the library's graph: what it was made of is left out, but for constants, whose values rules may ask for.
    pub fn enter(&mut self, tensor: &Tensor) -> Result<Built, GraphError> {
        if let Some(known) = self.built.get(&tensor.key()) {
            return Ok(known.clone());
        }
        let built = match &tensor.node.kind {
            Kind::Input { .. } | Kind::Apply { .. } => {
                let (number, output) = tensor.key();
                self.graph.input(&format!("{number}.{output}"), tensor.ty.dtype, &tensor.ty.shape)
            }
            _ => self.leaf(tensor, &tensor.node.number.to_string()),
        };
        self.know(tensor, &built)?;
        Ok(built)
    }

    /// Rebuilds everything below some tensors and gives these. Inputs come in order of creation under their names, or `x0`, `x1`...
    pub fn replay(&mut self, roots: &[Tensor]) -> Result<Vec<Built>, GraphError> {
        let mut found: BTreeMap<u64, Tensor> = BTreeMap::new();
        let mut waiting: Vec<&Tensor> = roots.iter().collect();
        while let Some(tensor) = waiting.pop() {
            if found.insert(tensor.node.number, tensor.clone()).is_none() {
                waiting.extend(tensor.node.inputs());
            }
        }
        let (mut inputs, mut parameters) = (0, 0);
        for tensor in found.values() {
            let counted = |name: &Option<String>, letter: char, count: &mut usize| {
                let name = name.clone().unwrap_or_else(|| format!("{letter}{count}"));
                *count += 1;
                name
            };
            match &tensor.node.kind {
                Kind::Apply { op, inputs, attributes } => {
                    let mut lists = Vec::with_capacity(inputs.len());
                    for list in inputs {
                        lists.push(list.iter().map(|input| self.enter(input)).collect::<Result<Vec<_>, _>>()?);
                    }
                    let named: Vec<(&str, Attribute)> =
                        op.attributes.iter().map(|spec| spec.name).zip(attributes.iter().cloned()).collect();
                    for (output, built) in self.graph.apply_lists(op, &lists, &named).iter().enumerate() {
                        let result = Tensor { node: tensor.node.clone(), output, ty: built.ty()?.clone() };
                        self.know(&result, built)?;
                    }
                }
                Kind::Input { name } => {
                    let name = counted(name, 'x', &mut inputs);
                    let built = self.leaf(tensor, &name);
                    self.know(tensor, &built)?;
                }
                Kind::Parameter { name, .. } => {
                    let name = counted(name, 'p', &mut parameters);
                    let built = self.leaf(tensor, &name);
                    self.know(tensor, &built)?;
                }
                Kind::Values(_) | Kind::Weight(_) => {
                    let built = self.leaf(tensor, "");
                    self.know(tensor, &built)?;
                }
            }
        }
        roots.iter().map(|root| self.enter(root)).collect()
    }

    /// Takes results back: nodes for everything new below them.
    pub fn leave(&mut self, results: &[Built]) -> Result<Vec<Tensor>, GraphError> {
        let mut found: BTreeMap<(usize, usize), Built> = BTreeMap::new();
        let mut waiting = results.to_vec();
        while let Some(built) = waiting.pop() {
            let place = built.place()?;
            if self.nodes.contains_key(&place.0) || found.contains_key(&place) {
                continue;
            }
            if let Source::Apply { inputs, .. } = built.source()? {
                waiting.extend(inputs.into_iter().flatten());
            }
            found.insert(place, built);
        }
        for (place, built) in found {
            if self.nodes.contains_key(&place.0) {
                continue;
            }
            let kind = match built.source()? {
                Source::Input { name } => Kind::Input { name: Some(name) },
                Source::Parameter { name, weight } => Kind::Parameter { name: Some(name), weight },
                Source::Values(values) => Kind::Values(values),
                Source::Weight(weight) => Kind::Weight(weight),
                Source::Apply { op, inputs, attributes } => {
                    let own = |list: Vec<Built>| list.iter().map(|input| self.known(input)).collect::<Result<Vec<_>, _>>();
                    Kind::Apply { op, inputs: inputs.into_iter().map(own).collect::<Result<_, _>>()?, attributes }
                }
            };
            self.nodes.insert(place.0, Tensor { node: Node::new(kind), output: place.1, ty: built.ty()?.clone() });
        }
        results.iter().map(|built| self.known(built)).collect()
    }

    fn known(&self, built: &Built) -> Result<Tensor, GraphError> {
        let (node, output) = built.place()?;
        let known = self.nodes.get(&node).ok_or(GraphError::NoOutputs)?;
        // A stand-in for one result of a node is a node of its own in the library's graph, with one result.
        let output = if matches!(built.source()?, Source::Input { .. }) { known.output } else { output };
        Ok(Tensor { node: Arc::clone(&known.node), output, ty: built.ty()?.clone() })
    }

    fn leaf(&self, tensor: &Tensor, name: &str) -> Built {
        match &tensor.node.kind {
            Kind::Values(values) => self.graph.values(tensor.ty.dtype, &tensor.ty.shape, values),
            Kind::Weight(weight) => self.graph.weight(weight.clone()),
            Kind::Parameter { weight, .. } => self.graph.parameter(name, weight.clone()),
            _ => self.graph.input(name, tensor.ty.dtype, &tensor.ty.shape),
        }
    }

    fn know(&mut self, tensor: &Tensor, built: &Built) -> Result<(), GraphError> {
        self.nodes.entry(built.place()?.0).or_insert_with(|| tensor.clone());
        self.built.insert(tensor.key(), built.clone());
        Ok(())
    }
}
