//! What a step keeps from call to call: values that go in under a name and come out again.

use crate::NnError;
use aneforge_core::{DType, Graph, HostArray, Tensor};
use std::collections::HashMap;

/// One value that lives across calls.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// What it holds before the first call.
    pub initial: HostArray,
    /// What the call finds.
    pub input: Tensor,
    /// What the call leaves; the input itself where nothing changes it.
    pub current: Tensor,
}

impl Slot {
    /// Whether the program changes it.
    pub fn is_changed(&self) -> bool {
        !self.current.is_same(&self.input)
    }
}

/// The slots of a step, in order of creation. Each is an input of the graph; what a step computes for it becomes an output that a
/// trainer writes to the same memory.
#[derive(Clone, Debug)]
pub struct Slots {
    graph: Graph,
    slots: Vec<Slot>,
    places: HashMap<String, usize>,
}

impl Slots {
    /// No slots yet.
    pub fn new(graph: &Graph) -> Self {
        Self { graph: graph.clone(), slots: Vec::new(), places: HashMap::new() }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// All of them.
    pub fn all(&self) -> &[Slot] {
        &self.slots
    }

    /// The slot of that name, made where there is none: fp16, starting at what `initial` gives. A step that is unrolled finds at its
    /// second turn what the first one left.
    ///
    /// # Errors
    /// [`NnError::Host`] where the values do not fill the shape.
    pub fn slot(&mut self, name: &str, shape: &[usize], initial: impl FnOnce() -> Vec<f64>) -> Result<usize, NnError> {
        if let Some(&place) = self.places.get(name) {
            return Ok(place);
        }
        let initial = HostArray::from_f64(DType::Fp16, shape, &initial())?;
        let input = self.graph.input(name, DType::Fp16, shape);
        let current = input.check()?.clone();
        self.places.insert(name.to_string(), self.slots.len());
        self.slots.push(Slot { name: name.to_string(), initial, input, current });
        Ok(self.slots.len() - 1)
    }

    /// What a slot holds at this point of the step.
    pub fn get(&self, slot: usize) -> Tensor {
        self.slots[slot].current.clone()
    }

    /// Gives it its next value.
    pub fn set(&mut self, slot: usize, value: Tensor) {
        self.slots[slot].current = value;
    }

    /// The values of all slots at this point, to return to where a step is taken back.
    pub fn snapshot(&self) -> Vec<Tensor> {
        self.slots.iter().map(|slot| slot.current.clone()).collect()
    }

    /// Where `kept` is false, every slot that changed since `before` holds again what it held then; slots that are newer keep what
    /// they came in with.
    pub fn keep_if(&mut self, kept: &Tensor, before: &[Tensor]) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let old = before.get(index).unwrap_or(&slot.input);
            if !slot.current.is_same(old) {
                slot.current = kept.select(&slot.current, old);
            }
        }
    }
}
