//! The builder of a body: adds MIL operations with checked arguments and shared constants.

use super::argument::Arg;
use super::names::Names;
use crate::graph::ConstantData;
use crate::{DType, GraphError, Target, TensorType, Weight};
use aneforge_mil::op::{MilOp, OpError, builtin};
use aneforge_mil::{Body, Constant, Operand, Output, ValueId, round_to_fp16};
use std::collections::HashMap;

/// Adds MIL operations to a body.
#[derive(Debug)]
pub struct Lowering {
    body: Body,
    target: Target,
    names: Names,
    constants: HashMap<(DType, Vec<usize>, Vec<u64>), ValueId>,
    texts: HashMap<String, ValueId>,
    weights: HashMap<((usize, usize, DType), TensorType), ValueId>,
    stem: String,
    op: &'static str,
}

impl Lowering {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            body: Body { name: "main".to_string(), ..Body::default() },
            target,
            names: Names::default(),
            constants: HashMap::new(),
            texts: HashMap::new(),
            weights: HashMap::new(),
            stem: String::new(),
            op: "graph",
        }
    }

    /// What the program is for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &TensorType {
        self.body.ty(value)
    }

    /// The shape of a value.
    pub fn shape(&self, value: ValueId) -> &[usize] {
        &self.body.ty(value).shape
    }

    /// The weight behind a value, if it is one that stands in the weight file.
    pub fn weight_of(&self, value: ValueId) -> Option<&Weight> {
        match self.body.constant(value) {
            Some(Constant::Weight(weight)) => Some(weight),
            _ => None,
        }
    }

    /// Whether a value is known when the program is compiled.
    pub fn is_constant(&self, value: ValueId) -> bool {
        self.body.constant(value).is_some()
    }

    /// The elements of a value that is known when the program is compiled.
    pub fn known(&self, value: ValueId) -> Option<Vec<f64>> {
        self.body.constant(value)?.to_array(self.body.ty(value)).map(|array| array.data)
    }

    /// Adds an operation of MIL with one result.
    ///
    /// # Errors
    /// What the operator's record says about the arguments.
    pub fn op(&mut self, name: &str, arguments: &[(&str, Arg)]) -> Result<ValueId, GraphError> {
        let results = self.ops(name, arguments)?;
        results.first().copied().ok_or(GraphError::NoOutputs)
    }

    /// Adds an operation of MIL with any number of results.
    ///
    /// # Errors
    /// What the operator's record says about the arguments, or that MIL has no operator of that name.
    pub fn ops(&mut self, name: &str, arguments: &[(&str, Arg)]) -> Result<Vec<ValueId>, GraphError> {
        match builtin().get(name) {
            Some(op) => self.record(op, arguments),
            None => Err(GraphError::Input {
                op: self.op,
                input: name.to_string(),
                problem: "is no operator of the MIL table; pass its record to Lowering::record".to_string(),
            }),
        }
    }

    /// Adds an operation by its record, which need not be one of the table.
    ///
    /// # Errors
    /// What the record says about the arguments.
    pub fn record(&mut self, op: &'static MilOp, arguments: &[(&str, Arg)]) -> Result<Vec<ValueId>, GraphError> {
        let mut operands = vec![Operand::Absent; op.ports.len()];
        for (name, argument) in arguments {
            let Some(port) = op.port(name) else {
                let known: Vec<_> = op.ports.iter().map(|port| port.name).collect();
                return Err(self.mil(OpError::UnknownPort { op: op.name, port: name.to_string(), known: known.join(", ") }));
            };
            operands[port] = self.operand(name, argument)?;
        }
        let types = self.body.infer(op, &operands).map_err(|error| self.mil(error))?;
        let stem = if self.stem.is_empty() { op.name.to_string() } else { format!("{}_{}", self.stem, op.name) };
        let results = types.into_iter().map(|ty| (self.names.unique(&stem), ty)).collect();
        Ok(self.body.add_operation(op, operands, results))
    }

    /// A constant from values of its element type; floats are rounded to it, equal constants are shared.
    ///
    /// # Errors
    /// [`GraphError::Range`] for a finite number that becomes infinite.
    pub fn constant(&mut self, name: &str, ty: TensorType, values: &[f64]) -> Result<ValueId, GraphError> {
        let mut rounded = Vec::with_capacity(values.len());
        for &value in values {
            let narrow = match ty.dtype {
                DType::Fp16 => round_to_fp16(value).to_f64(),
                DType::Fp32 => f64::from(value as f32),
                _ => value,
            };
            if narrow.is_infinite() && value.is_finite() {
                return Err(GraphError::Range { op: self.op, value });
            }
            rounded.push(narrow);
        }
        Ok(self.inline(name, ty, rounded))
    }

    /// A constant in the weight file; the same data under the same type is one value.
    pub fn weight(&mut self, weight: &Weight) -> ValueId {
        self.named_weight("weight", weight)
    }

    /// A value of another shape with the same elements: the constant itself under that shape where it is one, else a `reshape`.
    ///
    /// # Errors
    /// What `reshape` says about the shape.
    pub fn reshaped(&mut self, value: ValueId, shape: &[usize]) -> Result<ValueId, GraphError> {
        if self.shape(value) == shape {
            return Ok(value);
        }
        let name = self.body.value(value).name.clone();
        let dtype = self.ty(value).dtype;
        match self.body.constant(value).cloned() {
            Some(Constant::Weight(weight)) => {
                if let Some(weight) = weight.reshaped(shape) {
                    return Ok(self.named_weight(&name, &weight));
                }
            }
            Some(Constant::Values(values)) if shape.iter().product::<usize>() == values.len() => {
                return Ok(self.inline(&name, TensorType::new(dtype, shape), values));
            }
            _ => {}
        }
        self.op("reshape", &[("x", value.into()), ("shape", shape.into())])
    }

    /// A value stretched to a shape it broadcasts to: a constant of one number is written out, anything else repeated by `tile`.
    ///
    /// # Errors
    /// What `reshape` and `tile` say about the shapes.
    pub fn broadcast(&mut self, value: ValueId, shape: &[usize]) -> Result<ValueId, GraphError> {
        if self.shape(value) == shape {
            return Ok(value);
        }
        if let Some(Constant::Values(values)) = self.body.constant(value)
            && let [number] = values.as_slice()
        {
            let (name, dtype) = (self.body.value(value).name.clone(), self.ty(value).dtype);
            return Ok(self.inline(&name, TensorType::new(dtype, shape), vec![*number; shape.iter().product()]));
        }
        let mut full = vec![1; shape.len().saturating_sub(self.shape(value).len())];
        full.extend_from_slice(self.shape(value));
        let reps: Vec<usize> = full.iter().zip(shape).map(|(&have, &want)| if have == want { 1 } else { want }).collect();
        let x = self.reshaped(value, &full)?;
        self.repeated(x, &reps)
    }

    /// A value repeated along each axis. For a chip, counts that its engine does not tile by are products of those it does, and what
    /// is left is joined from copies: ANE guide, arXiv 2606.22283, appendix A.
    ///
    /// # Errors
    /// What `tile` says about the counts.
    pub fn repeated(&mut self, value: ValueId, reps: &[usize]) -> Result<ValueId, GraphError> {
        const FACTORS: [usize; 4] = [8, 4, 3, 2];
        if self.target.chip().is_none() || reps.iter().all(|count| *count == 1 || FACTORS.contains(count)) {
            return self.op("tile", &[("x", value.into()), ("reps", reps.into())]);
        }
        let mut value = value;
        for (axis, &count) in reps.iter().enumerate() {
            let mut left = count;
            while let Some(factor) = FACTORS.into_iter().find(|factor| left.is_multiple_of(*factor)) {
                let mut one = vec![1; reps.len()];
                one[axis] = factor;
                value = self.op("tile", &[("x", value.into()), ("reps", one.into())])?;
                left /= factor;
            }
            if left > 1 {
                let copies = vec![value; left];
                let arguments = [("values", copies.into()), ("axis", (axis as i64).into()), ("interleave", false.into())];
                value = self.op("concat", &arguments)?;
            }
        }
        Ok(value)
    }

    pub(crate) fn input(&mut self, name: &str, ty: &TensorType) -> ValueId {
        let name = self.names.unique(name);
        self.body.add_input(name, ty.clone())
    }

    pub(crate) fn named_weight(&mut self, name: &str, weight: &Weight) -> ValueId {
        let key = (weight.identity(), weight.ty().clone());
        if let Some(&known) = self.weights.get(&key) {
            return known;
        }
        let name = if name == "weight" { self.names.numbered(name) } else { self.names.unique(name) };
        let id = self.body.add_constant(name, weight.ty().clone(), Constant::Weight(weight.clone()));
        self.weights.insert(key, id);
        id
    }

    pub(crate) fn constant_node(&mut self, name: &str, ty: &TensorType, data: &ConstantData) -> ValueId {
        match data {
            ConstantData::Values(values) => self.inline(name, ty.clone(), values.clone()),
            ConstantData::Weight(weight) => self.named_weight(name, weight),
        }
    }

    pub(crate) fn reserve(&mut self, name: &str) {
        self.names.reserve(name);
    }

    /// Starts a node: its operations are named after it. Returns the number of the first value it may make.
    pub(crate) fn begin(&mut self, op: &'static str, name: Option<&str>) -> usize {
        self.op = op;
        self.stem = match name {
            Some(name) => self.names.unique(name),
            None => self.names.numbered(op),
        };
        self.body.values.len()
    }

    /// Ends a node: its results take the node's own name.
    pub(crate) fn finish_node(&mut self, first_new: usize, outputs: &[ValueId]) {
        let stem = std::mem::take(&mut self.stem);
        let several = outputs.len() > 1;
        for (index, id) in outputs.iter().enumerate().filter(|(_, id)| id.index() >= first_new) {
            let name = if several { self.names.unique(&format!("{stem}_{index}")) } else { stem.clone() };
            if let Some(value) = self.body.values.get_mut(id.index()) {
                value.name = name;
            }
        }
    }

    pub(crate) fn finish(mut self, outputs: Vec<Output>) -> Body {
        self.body.outputs = outputs;
        self.body
    }

    fn operand(&mut self, port: &str, argument: &Arg) -> Result<Operand, GraphError> {
        // `y_3` says nothing; constants at ports with a meaning (axes, perm, epsilon) are named after them.
        let name = if port.len() == 1 { "scalar" } else { port };
        let scalar = |dtype| TensorType::new(dtype, []);
        Ok(match argument {
            Arg::Absent => Operand::Absent,
            Arg::Value(value) => Operand::One(*value),
            Arg::Many(values) => Operand::Many(values.clone()),
            Arg::Flag(value) => Operand::One(self.inline(name, scalar(DType::Bool), vec![f64::from(u8::from(*value))])),
            Arg::Int(dtype, value) => Operand::One(self.inline(name, scalar(*dtype), vec![*value as f64])),
            Arg::Ints(values) => {
                let ty = TensorType::new(DType::Int32, [values.len()]);
                Operand::One(self.inline(name, ty, values.iter().map(|&value| value as f64).collect()))
            }
            Arg::Float(dtype, value) => Operand::One(self.constant(name, scalar(*dtype), &[*value])?),
            Arg::Text(text) => Operand::One(self.text(name, text)),
        })
    }

    fn inline(&mut self, name: &str, ty: TensorType, values: Vec<f64>) -> ValueId {
        let key = (ty.dtype, ty.shape.clone(), values.iter().map(|value| value.to_bits()).collect());
        if let Some(&known) = self.constants.get(&key) {
            return known;
        }
        let name = self.names.numbered(name);
        let id = self.body.add_constant(name, ty, Constant::Values(values));
        self.constants.insert(key, id);
        id
    }

    fn text(&mut self, name: &str, text: &str) -> ValueId {
        if let Some(&known) = self.texts.get(text) {
            return known;
        }
        let name = self.names.numbered(name);
        let id = self.body.add_constant(name, TensorType::new(DType::String, []), Constant::Text(text.to_string()));
        self.texts.insert(text.to_string(), id);
        id
    }

    fn mil(&self, source: OpError) -> GraphError {
        GraphError::Mil { op: self.op, got: String::new(), source }
    }
}
