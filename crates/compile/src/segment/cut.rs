//! Makes the bodies of the segments and the links between them.

use super::moves::as_layers;
use super::plan::{Place, Plan};
use super::{Link, Move, Segment, SegmentKind, Segments};
use crate::CompileError;
use aneforge_mil::{Body, Operand, Operation, Output, TensorType, ValueId, ValueKind};
use std::collections::{BTreeSet, HashMap};

/// A value of the whole program at the start of a chain of moves, and the moves.
type Source = (ValueId, Vec<Move>);

pub(super) fn cut(body: &Body, plan: &Plan) -> Result<Segments, CompileError> {
    let cutter = Cutter { body, plan };
    let exported = cutter.exported();
    let mut parts = Vec::with_capacity(plan.native.len());
    for segment in 0..plan.native.len() {
        parts.push(cutter.part(segment, &exported)?);
    }
    let mut outputs = Vec::with_capacity(body.outputs.len());
    for output in &body.outputs {
        let source = cutter.source(output.value);
        let made = body.inputs.contains(&source.0) || matches!(cutter.place(source.0), Some(Place::Segment(_)));
        if !made {
            return Err(CompileError::Output { name: output.name.clone(), ty: body.ty(output.value).to_string() });
        }
        outputs.push(cutter.link(&output.name, &source, &exported));
    }
    Ok(Segments { parts, outputs })
}

struct Cutter<'a> {
    body: &'a Body,
    plan: &'a Plan,
}

impl Cutter<'_> {
    fn place(&self, id: ValueId) -> Option<Place> {
        match self.body.value(id).kind {
            ValueKind::Result { operation, .. } => self.plan.places.get(operation as usize).copied(),
            _ => None,
        }
    }

    /// What a value is made from through moves that are layouts.
    fn source(&self, id: ValueId) -> Source {
        let mut moves = Vec::new();
        let mut at = id;
        while let (Some(Place::Layout), Some(operation)) = (self.place(at), self.body.producer(at)) {
            let Some(&input) = operation.arguments.first().and_then(|operand| operand.values().first()) else { break };
            moves.push(self.step(operation, at));
            at = input;
        }
        moves.reverse();
        (at, moves)
    }

    fn step(&self, operation: &Operation, result: ValueId) -> Move {
        let order = operation.op.port("perm").and_then(|port| operation.arguments.get(port));
        let order = order.and_then(|operand| operand.values().first()).and_then(|&id| self.body.argument(id).value);
        match order {
            Some(order) => {
                let rank = order.data.len() as f64;
                Move::Transpose(order.data.iter().map(|&axis| if axis < 0.0 { axis + rank } else { axis } as usize).collect())
            }
            None => Move::Reshape(self.body.ty(result).shape.clone()),
        }
    }

    /// Operations of a segment in order, with the stored weights that they read.
    fn operations(&self, segment: usize) -> Vec<usize> {
        let own = |index: usize| self.plan.places.get(index) == Some(&Place::Segment(segment));
        let mut chosen: BTreeSet<usize> = (0..self.body.operations.len()).filter(|&index| own(index)).collect();
        let mut waiting: Vec<usize> = chosen.iter().copied().collect();
        while let Some(index) = waiting.pop() {
            for need in super::plan::needs(self.body, &self.body.operations[index]) {
                if self.plan.places.get(need) == Some(&Place::Stored) && chosen.insert(need) {
                    waiting.push(need);
                }
            }
        }
        chosen.into_iter().collect()
    }

    /// The values that leave their segment, by segment, with the names of their ports.
    fn exported(&self) -> Vec<Vec<(ValueId, String)>> {
        let mut exported: Vec<Vec<ValueId>> = vec![Vec::new(); self.plan.native.len()];
        let mut add = |id: ValueId| {
            if let Some(Place::Segment(maker)) = self.place(id)
                && !exported[maker].contains(&id)
            {
                exported[maker].push(id);
            }
        };
        for segment in 0..self.plan.native.len() {
            for index in self.operations(segment) {
                for &id in self.body.operations[index].arguments.iter().flat_map(Operand::values) {
                    let (source, _) = self.source(id);
                    if self.place(source) != Some(Place::Segment(segment)) {
                        add(source);
                    }
                }
            }
        }
        self.body.outputs.iter().for_each(|output| add(self.source(output.value).0));
        let named = |(native, ids): (&bool, Vec<ValueId>)| match (native, ids.as_slice()) {
            // The name that published networks give their only result.
            (true, &[only]) => vec![(only, "y".to_string())],
            _ => ids.into_iter().map(|id| (id, self.body.value(id).name.clone())).collect(),
        };
        self.plan.native.iter().zip(exported).map(named).collect()
    }

    fn link(&self, port: &str, (source, layout): &Source, exported: &[Vec<(ValueId, String)>]) -> Link {
        let segment = match self.place(*source) {
            Some(Place::Segment(segment)) => Some(segment),
            _ => None,
        };
        let name = segment.and_then(|segment| exported[segment].iter().find(|(id, _)| id == source)).map(|(_, name)| name.clone());
        let value = name.unwrap_or_else(|| self.body.value(*source).name.clone());
        Link { port: port.to_string(), segment, value, layout: layout.clone() }
    }

    fn part(&self, segment: usize, exported: &[Vec<(ValueId, String)>]) -> Result<Segment, CompileError> {
        let native = self.plan.native[segment];
        let operations = self.operations(segment);
        let made: BTreeSet<ValueId> =
            operations.iter().flat_map(|&index| self.body.operations[index].outputs.iter().copied()).collect();
        let mut part =
            Part { whole: self.body, body: Body { name: "main".to_string(), ..Body::default() }, values: HashMap::new() };
        if native {
            part.body.name = format!("segment{segment}");
        }
        let mut inputs: Vec<(Source, ValueId)> = Vec::new();
        let mut links = Vec::new();
        // Inputs first, so that their order is that of their first use.
        for &index in &operations {
            for &id in self.body.operations[index].arguments.iter().flat_map(Operand::values) {
                if made.contains(&id) || self.body.constant(id).is_some() || part.values.contains_key(&id) {
                    continue;
                }
                let source = self.source(id);
                if made.contains(&source.0) {
                    // A move within the segment, which is done when its source is there.
                    continue;
                }
                if self.body.constant(source.0).is_some() || self.place(source.0) == Some(Place::Stored) {
                    let name = &self.body.value(id).name;
                    return Err(CompileError::internal(format!("{name:?} is a stored weight that a layer reads; store it dense")));
                }
                let own = match inputs.iter().find(|(known, _)| *known == source) {
                    Some((_, own)) => *own,
                    None => {
                        let name = self.body.value(id).name.clone();
                        let own = part.body.add_input(name.clone(), self.body.ty(id).clone());
                        links.push(self.link(&name, &source, exported));
                        inputs.push((source, own));
                        own
                    }
                };
                part.values.insert(id, own);
            }
        }
        for &index in &operations {
            let operation = &self.body.operations[index];
            for &id in operation.arguments.iter().flat_map(Operand::values) {
                let (source, layout) = self.source(id);
                if layout.is_empty() || !made.contains(&source) || part.values.contains_key(&id) {
                    continue;
                }
                let from = part.value(source);
                let moved = as_layers(&mut part.body, from, &layout, &self.body.value(id).name)?;
                part.values.insert(id, moved);
            }
            part.add(operation);
        }
        for (id, name) in &exported[segment] {
            let value = part.value(*id);
            part.body.outputs.push(Output { name: name.clone(), value });
        }
        let kind = if native { SegmentKind::Native } else { SegmentKind::Mil };
        Ok(Segment { kind, body: part.body, inputs: links })
    }
}

/// A segment's body while it is made.
struct Part<'a> {
    whole: &'a Body,
    body: Body,
    values: HashMap<ValueId, ValueId>,
}

impl Part<'_> {
    /// The segment's own number of a value; constants are taken over when they are first met.
    fn value(&mut self, id: ValueId) -> ValueId {
        if let Some(&known) = self.values.get(&id) {
            return known;
        }
        let value = self.whole.value(id);
        let own = match &value.kind {
            ValueKind::Constant(constant) => self.body.add_constant(value.name.clone(), value.ty.clone(), constant.clone()),
            _ => self.body.add_input(value.name.clone(), value.ty.clone()),
        };
        self.values.insert(id, own);
        own
    }

    fn add(&mut self, operation: &Operation) {
        let arguments = operation
            .arguments
            .iter()
            .map(|operand| match operand {
                Operand::Absent => Operand::Absent,
                Operand::One(id) => Operand::One(self.value(*id)),
                Operand::Many(ids) => Operand::Many(ids.iter().map(|&id| self.value(id)).collect()),
            })
            .collect();
        let named = |&id: &ValueId| -> (String, TensorType) { (self.whole.value(id).name.clone(), self.whole.ty(id).clone()) };
        let results = operation.outputs.iter().map(named).collect();
        let made = self.body.add_operation(operation.op, arguments, results);
        self.values.extend(operation.outputs.iter().copied().zip(made));
    }
}
