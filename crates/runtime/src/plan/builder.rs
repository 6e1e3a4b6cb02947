//! Gives values places while steps are made, and remembers when each place is in use.

use super::graph::Graph;
use super::memory::{Buffer, Lifetime, Slot, Spot};
use super::node::Node;
use super::policy::Policy;
use super::pool::ToLayout;
use super::step::Step;
use crate::report::{Rule, StepReport};
use crate::{DeviceError, element};
use aneforge_mil::{Constant, DType, ValueId};

/// Order of the elements of a value in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Row major, as ports have it.
    Dense,
    /// Channels innermost (NHWC), for rank 4 fp16 around convolutions.
    ChannelsLast,
}

/// A plan under construction.
pub(crate) struct Builder<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) policy: &'a Policy,
    dense: Vec<Option<Spot>>,
    channels_last: Vec<Option<Spot>>,
    pub(crate) lifetimes: Vec<Lifetime>,
    pub(crate) constants: Vec<Buffer>,
    pub(crate) steps: Vec<Box<dyn Step>>,
    pub(crate) reports: Vec<StepReport>,
    pub(crate) packed_bytes: usize,
}

/// What a step is called in reports.
pub(crate) struct Described {
    pub(crate) kernel: String,
    pub(crate) rule: Option<Rule>,
}

impl Described {
    /// The description of a node done by `kernel`: on the engine with the least certain rule among its operators.
    pub(crate) fn of(builder: &Builder<'_>, node: &Node, kernel: impl Into<String>) -> Self {
        let graph = builder.graph;
        let operations = node.covers.iter().map(|&index| &graph.body.operations[index]);
        let rules = operations.filter_map(|operation| match builder.policy {
            Policy::Engine(engine) if engine.is_dump() => Some(graph.attributes(operation, |a| engine.rule_of(a))),
            policy => policy.rule(operation.op),
        });
        let rule = rules.max_by_key(|rule| rule.label);
        Self { kernel: kernel.into(), rule }
    }
}

impl<'a> Builder<'a> {
    pub(crate) fn new(graph: &'a Graph, policy: &'a Policy) -> Self {
        let values = graph.body.values.len();
        Self {
            graph,
            policy,
            dense: vec![None; values],
            channels_last: vec![None; values],
            lifetimes: Vec::new(),
            constants: Vec::new(),
            steps: Vec::new(),
            reports: Vec::new(),
            packed_bytes: 0,
        }
    }

    /// Where a value is in row-major order; a constant is loaded and a layout changed at the first use.
    pub(crate) fn read(&mut self, id: ValueId) -> Result<Spot, DeviceError> {
        if let Some(spot) = self.dense[id.index()] {
            return Ok(spot);
        }
        if let Some(from) = self.channels_last[id.index()] {
            return self.change_layout(id, from, Layout::Dense);
        }
        let graph = self.graph;
        let constant = graph
            .body
            .constant(id)
            .ok_or_else(|| DeviceError::internal("builder", format!("{} is read before it is made", graph.body.value(id).name)))?;
        let spot = self.constant(constant_bytes(graph, id, constant)?);
        self.dense[id.index()] = Some(spot);
        Ok(spot)
    }

    /// Where a rank-4 fp16 value is with channels innermost.
    pub(crate) fn read_channels_last(&mut self, id: ValueId) -> Result<Spot, DeviceError> {
        if let Some(spot) = self.channels_last[id.index()] {
            return Ok(spot);
        }
        let from = self.read(id)?;
        if let [_, channels, height, width] = self.graph.shape(id)
            && (*channels == 1 || height * width == 1)
        {
            self.channels_last[id.index()] = Some(from);
            return Ok(from);
        }
        self.change_layout(id, from, Layout::ChannelsLast)
    }

    /// Whether a value is at hand with channels innermost without moving anything.
    pub(crate) fn is_channels_last(&self, id: ValueId) -> bool {
        self.channels_last[id.index()].is_some()
    }

    /// A place for a value that the next step makes.
    pub(crate) fn make(&mut self, id: ValueId, layout: Layout) -> Result<Slot, DeviceError> {
        let graph = self.graph;
        let bytes = element::byte_length(graph.body.ty(id)).ok_or_else(|| DeviceError::Unsupported {
            op: "function",
            name: graph.body.value(id).name.clone(),
            problem: format!("{} does not fit memory", graph.body.ty(id)),
        })?;
        let slot = self.scratch(bytes);
        self.set(id, layout, slot.into());
        Ok(slot)
    }

    /// A place for scratch.
    pub(crate) fn scratch(&mut self, bytes: usize) -> Slot {
        self.lifetimes.push(Lifetime { bytes, first: usize::MAX, last: 0 });
        Slot(self.lifetimes.len() as u32 - 1)
    }

    /// A constant that the plan makes for itself.
    pub(crate) fn constant(&mut self, buffer: Buffer) -> Spot {
        self.constants.push(buffer);
        Spot::Constant(self.constants.len() as u32 - 1)
    }

    /// Makes `spot` the place of a value.
    pub(crate) fn set(&mut self, id: ValueId, layout: Layout, spot: Spot) {
        match layout {
            Layout::Dense => self.dense[id.index()] = Some(spot),
            Layout::ChannelsLast => {
                self.channels_last[id.index()] = Some(spot);
                // With one channel or one pixel both orders are the same.
                if let [_, channels, height, width] = self.graph.shape(id)
                    && (*channels == 1 || height * width == 1)
                {
                    self.dense[id.index()] = Some(spot);
                }
            }
        }
    }

    /// Adds the step that does `node`, with every place it reads, writes or uses as scratch.
    pub(crate) fn push(&mut self, node: &Node, described: Described, step: Box<dyn Step>, reads: &[Spot], writes: &[Slot]) {
        let name = node.outputs.first().map(|&id| self.graph.body.value(id).name.clone()).unwrap_or_default();
        let report = StepReport { name, ops: node.ops(self.graph), kernel: described.kernel, rule: described.rule };
        self.push_step(report, step, reads, writes);
    }

    fn push_step(&mut self, report: StepReport, step: Box<dyn Step>, reads: &[Spot], writes: &[Slot]) {
        let now = self.steps.len();
        reads.iter().for_each(|&spot| self.touch(spot, now));
        writes.iter().for_each(|&slot| self.touch(slot.into(), now));
        self.steps.push(step);
        self.reports.push(report);
    }

    /// Notes that a place is in use at step `now`.
    pub(crate) fn touch(&mut self, spot: Spot, now: usize) {
        if let Spot::Slot(slot) = spot {
            let lifetime = &mut self.lifetimes[slot.0 as usize];
            lifetime.first = lifetime.first.min(now);
            lifetime.last = lifetime.last.max(now);
        }
    }

    fn change_layout(&mut self, id: ValueId, from: Spot, to: Layout) -> Result<Spot, DeviceError> {
        let &[batch, channels, height, width] = self.graph.shape(id) else {
            return Err(DeviceError::internal("builder", "a layout change needs rank 4"));
        };
        if self.graph.dtype(id) != DType::Fp16 {
            return Err(DeviceError::internal("builder", "a layout change needs fp16"));
        }
        let slot = self.make(id, to)?;
        let (rows, columns) = match to {
            Layout::Dense => (height * width, channels),
            Layout::ChannelsLast => (channels, height * width),
        };
        let report = StepReport {
            name: self.graph.body.value(id).name.clone(),
            ops: Vec::new(),
            kernel: match to {
                Layout::Dense => "layout: channels last to row major".to_string(),
                Layout::ChannelsLast => "layout: row major to channels last".to_string(),
            },
            rule: None,
        };
        self.push_step(report, Box::new(ToLayout { from, to: slot, batch, rows, columns }), &[from], &[slot]);
        Ok(slot.into())
    }
}

fn constant_bytes(graph: &Graph, id: ValueId, constant: &Constant) -> Result<Buffer, DeviceError> {
    let ty = graph.body.ty(id);
    if let Constant::Weight(weight) = constant
        && ty.dtype.bits() >= 8
    {
        let mut bytes = Vec::with_capacity(ty.dtype.packed_bytes(ty.count()));
        weight.stream(&mut |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        return Buffer::from_bytes(&bytes);
    }
    let fault = || DeviceError::internal("builder", format!("constant {} cannot be read as {ty}", graph.body.value(id).name));
    let array = constant.to_array(ty).ok_or_else(fault)?;
    let mut buffer = Buffer::zeroed(element::byte_length(ty).ok_or_else(fault)?)?;
    element::write(ty.dtype, &array.data, buffer.bytes_mut()).ok_or_else(fault)?;
    Ok(buffer)
}
