//! A step's program on a device, with its buffers by role.

use crate::step::Step;
use crate::training::bytes_for;
use crate::{NnError, Traffic};
use aneforge_compile::{CompileOptions, compile_body};
use aneforge_core::{DType, HostArray, LowerOptions, Target, Tensor, lower_with};
use aneforge_runtime::{Bound, Buffer, Device, Program};
use half::f16;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Compiles outputs of a graph and loads them with buffers. All inputs stay ports, in the order in which they were made: some serve
/// only what a recipe leaves out.
pub(crate) fn bind(outputs: &[(String, Tensor)], device: &dyn Device, target: Target) -> Result<Box<dyn Bound>, NnError> {
    let body = lower_with(outputs, LowerOptions { target, keep_unused_inputs: true })?;
    let compiled = compile_body(body, &CompileOptions { target, ..CompileOptions::default() })?;
    let folder = tempfile::Builder::new().prefix("aneforge-").tempdir().map_err(NnError::Folder)?;
    compiled.write(&folder.path().join("step"))?;
    let program = Arc::new(Program::open(folder.path().join("step"))?);
    Ok(device.load(&program)?.bind()?)
}

/// A loaded step.
pub(crate) struct Loaded {
    bound: Box<dyn Bound>,
    pub(crate) rates: Vec<Buffer>,
    pub(crate) data: Vec<Buffer>,
    data_types: Vec<DType>,
    slots: Vec<Slot>,
    places: HashMap<String, usize>,
    reports: Vec<(String, Buffer)>,
    more: Vec<(HostArray, Buffer)>,
    pub(crate) traffic: Traffic,
}

struct Slot {
    name: String,
    /// Its type, and what it starts with.
    initial: HostArray,
    buffer: Buffer,
    /// Where its next value arrives if not in the same memory.
    next: Option<Buffer>,
}

impl Loaded {
    /// Compiles and loads a step with `more` outputs behind its reports, and writes what its slots start with. With `resident`, the
    /// outputs of changed slots are bound to the memory of their inputs.
    pub(crate) fn new(
        step: &Step,
        more: &[(String, Tensor)],
        resident: bool,
        device: &dyn Device,
        target: Target,
    ) -> Result<Self, NnError> {
        let changed = step.slots.all().iter().filter(|slot| slot.is_changed());
        let changed = changed.map(|slot| (format!("{}.next", slot.name), slot.current.clone()));
        let outputs: Vec<(String, Tensor)> = step.reports.iter().cloned().chain(more.iter().cloned()).chain(changed).collect();
        let mut bound = bind(&outputs, device, target)?;

        let inputs = step.slots.graph().inputs();
        let memory = |bound: &dyn Bound, tensor: &Tensor| -> Result<Buffer, NnError> {
            // Every tensor asked for is an input of this graph, so it has a place.
            let index = inputs.iter().position(|input| input.is_same(tensor)).unwrap_or(usize::MAX);
            Ok(bound.input(index)?.clone())
        };
        let all = |tensors: &[Tensor]| tensors.iter().map(|tensor| memory(bound.as_ref(), tensor)).collect::<Result<Vec<_>, _>>();
        let (rates, data) = (all(&step.rates)?, all(&step.data)?);
        let data_types = step.data.iter().map(Tensor::dtype).collect::<Result<_, _>>()?;
        let mut outputs = 0..bound.outputs().len();
        let mut output = || outputs.next().unwrap_or(usize::MAX);
        let reports = step.reports.iter().map(|(name, _)| Ok((name.clone(), bound.output(output())?.clone())));
        let reports = reports.collect::<Result<_, NnError>>()?;
        let mut extra = Vec::with_capacity(more.len());
        for (_, tensor) in more {
            extra.push((HostArray::zeros(DType::Fp16, tensor.shape()?), bound.output(output())?.clone()));
        }
        let mut slots = Vec::with_capacity(step.slots.all().len());
        for slot in step.slots.all() {
            let buffer = memory(bound.as_ref(), &slot.input)?;
            let mut next = None;
            if slot.is_changed() {
                let index = output();
                if resident {
                    bound.set_output(index, buffer.clone())?;
                } else {
                    next = Some(bound.output(index)?.clone());
                }
            }
            slots.push(Slot { name: slot.name.clone(), initial: slot.initial.clone(), buffer, next });
        }
        let places = slots.iter().enumerate().map(|(index, slot)| (slot.name.clone(), index)).collect();
        let mut loaded = Self { bound, rates, data, data_types, slots, places, reports, more: extra, traffic: Traffic::default() };
        for index in 0..loaded.slots.len() {
            let initial = loaded.slots[index].initial.bytes().to_vec();
            loaded.write(index, &initial)?;
        }
        Ok(loaded)
    }

    pub(crate) fn write_data(&mut self, batches: &[HostArray]) -> Result<(), NnError> {
        for ((array, buffer), &dtype) in batches.iter().zip(&self.data).zip(&self.data_types) {
            let bytes = bytes_for(array, dtype)?;
            buffer.write(0, &bytes)?;
            self.traffic.data_bytes += bytes.len() as u64;
        }
        Ok(())
    }

    pub(crate) fn write_rates(&mut self, rates: impl Iterator<Item = f64>) -> Result<(), NnError> {
        for (rate, buffer) in rates.zip(&self.rates) {
            buffer.write(0, &f16::from_f64(rate).to_le_bytes())?;
            self.traffic.data_bytes += 2;
        }
        Ok(())
    }

    pub(crate) fn execute(&mut self) -> Result<(), NnError> {
        let start = Instant::now();
        self.bound.execute()?;
        self.traffic.device_time += start.elapsed();
        self.traffic.dispatches += 1;
        Ok(())
    }

    /// The reports of a number of turns, by name.
    pub(crate) fn read_reports(&mut self, turns: usize) -> Result<Vec<(String, Vec<f32>)>, NnError> {
        let mut columns = Vec::with_capacity(self.reports.len());
        for (name, buffer) in &self.reports {
            let mut bytes = vec![0; turns * 2];
            buffer.read(0, &mut bytes)?;
            self.traffic.report_bytes += bytes.len() as u64;
            columns.push((name.clone(), HostArray::from_bytes(DType::Fp16, [turns], bytes)?.to_f32()));
        }
        Ok(columns)
    }

    /// One of the outputs behind the reports.
    pub(crate) fn read_more(&mut self, index: usize) -> Result<HostArray, NnError> {
        let (form, buffer) = &self.more[index];
        let mut array = form.clone();
        buffer.read(0, array.bytes_mut())?;
        self.traffic.state_bytes += array.bytes().len() as u64;
        Ok(array)
    }

    pub(crate) fn slot_names(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| slot.name.as_str())
    }

    pub(crate) fn has_slot(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    pub(crate) fn read_slot(&mut self, name: &str) -> Result<HostArray, NnError> {
        let slot = &self.slots[self.place(name)?];
        let mut array = slot.initial.clone();
        slot.buffer.read(0, array.bytes_mut())?;
        self.traffic.state_bytes += array.bytes().len() as u64;
        Ok(array)
    }

    /// The next value of a slot, where it has one that is not in the slot's own memory.
    pub(crate) fn read_changed(&mut self, name: &str) -> Result<Option<HostArray>, NnError> {
        let Some(slot) = self.places.get(name).map(|&place| &self.slots[place]) else { return Ok(None) };
        let Some(next) = &slot.next else { return Ok(None) };
        let mut array = slot.initial.clone();
        next.read(0, array.bytes_mut())?;
        self.traffic.state_bytes += array.bytes().len() as u64;
        Ok(Some(array))
    }

    /// The memory of a slot.
    pub(crate) fn buffer(&self, name: &str) -> Result<Buffer, NnError> {
        Ok(self.slots[self.place(name)?].buffer.clone())
    }

    pub(crate) fn slot_type(&self, name: &str) -> Result<&aneforge_core::TensorType, NnError> {
        Ok(self.slots[self.place(name)?].initial.ty())
    }

    pub(crate) fn write_slot(&mut self, name: &str, bytes: &[u8]) -> Result<(), NnError> {
        let place = self.place(name)?;
        self.write(place, bytes)
    }

    fn write(&mut self, place: usize, bytes: &[u8]) -> Result<(), NnError> {
        self.slots[place].buffer.write(0, bytes)?;
        self.traffic.state_bytes += bytes.len() as u64;
        Ok(())
    }

    fn place(&self, name: &str) -> Result<usize, NnError> {
        self.places.get(name).copied().ok_or_else(|| {
            let known = self.slot_names().collect::<Vec<_>>().join(", ");
            NnError::UnknownName { name: name.to_string(), known }
        })
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Loaded({} states, {:?})", self.slots.len(), self.traffic)
    }
}
