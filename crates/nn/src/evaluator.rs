//! The forward pass beside a trainer, on the weights that the trainer has on the device.

use crate::loaded::bind;
use crate::step::Kept;
use crate::trainer::check_batches;
use crate::training::{bytes_for, ports_for};
use crate::{DataPort, NnError, Parameters, Pass, ResidentTrainer};
use aneforge_core::{DType, Graph, HostArray, Tensor};
use aneforge_runtime::{Bound, Buffer};

/// A forward pass: outputs by name, from the tensors of the ports.
pub type Forward<'a> = dyn Fn(&Pass, &[Tensor]) -> Vec<(String, Tensor)> + 'a;

/// A program whose weights are the trainer's own memory: it gives what the weights of the moment give, and no weight passes the host.
pub struct Evaluator {
    bound: Box<dyn Bound>,
    ports: Vec<DataPort>,
    /// The ports as the program has them.
    taken: Vec<DataPort>,
    data: Vec<Buffer>,
    outputs: Vec<HostArray>,
    dispatches: u64,
}

impl ResidentTrainer {
    /// Builds and loads a forward pass without the statistics of a batch. `average` takes the moving average of the weights in place
    /// of the weights.
    ///
    /// # Errors
    /// [`NnError::UnknownName`] for an average that the recipe does not keep, and what the graph, the compiler and the device report.
    pub fn evaluator(
        &self,
        parameters: &Parameters,
        ports: &[DataPort],
        forward: &Forward<'_>,
        average: bool,
    ) -> Result<Evaluator, NnError> {
        let graph = Graph::new();
        let taken = ports_for(ports, self.target)?;
        let inputs: Vec<Tensor> = taken.iter().map(|port| graph.input(&port.name, port.ty.dtype, &port.ty.shape)).collect();
        let mut shared = Vec::new();
        let mut tensors = Vec::with_capacity(parameters.entries().len());
        for (entry, kept) in parameters.entries().iter().zip(&self.weights) {
            let suffix = match kept {
                Kept::Frozen => {
                    tensors.push(crate::pass::constant(&graph, entry)?);
                    continue;
                }
                Kept::Trained(_) if average => ".average",
                _ => "",
            };
            shared.push(self.loaded.buffer(&format!("{}{suffix}", entry.name()))?);
            tensors.push(graph.input(entry.name(), DType::Fp16, entry.shape()));
        }
        let outputs = forward(&Pass::new(&graph, tensors, false), &inputs);
        let mut forms = Vec::with_capacity(outputs.len());
        for (_, tensor) in &outputs {
            let ty = tensor.ty()?;
            forms.push(HostArray::zeros(ty.dtype, ty.shape.clone()));
        }
        let mut bound = bind(&outputs, self.device.as_ref(), self.target)?;
        for (index, buffer) in shared.into_iter().enumerate() {
            bound.set_input(ports.len() + index, buffer)?;
        }
        let data = (0..ports.len()).map(|index| bound.input(index).cloned()).collect::<Result<_, _>>()?;
        Ok(Evaluator { bound, ports: ports.to_vec(), taken, data, outputs: forms, dispatches: 0 })
    }
}

impl Evaluator {
    /// What the forward pass gives for the arrays of the ports, in order.
    ///
    /// # Errors
    /// As [`ResidentTrainer::step`] for data that does not fit; what the device reports.
    pub fn run(&mut self, arrays: &[HostArray]) -> Result<Vec<HostArray>, NnError> {
        check_batches(arrays, &self.ports, self.data.len())?;
        for ((array, buffer), port) in arrays.iter().zip(&self.data).zip(&self.taken) {
            buffer.write(0, &bytes_for(array, port.ty.dtype)?)?;
        }
        self.bound.execute()?;
        self.dispatches += 1;
        let mut results = self.outputs.clone();
        for (index, result) in results.iter_mut().enumerate() {
            self.bound.output(index)?.read(0, result.bytes_mut())?;
        }
        Ok(results)
    }

    /// Programs executed.
    pub fn dispatches(&self) -> u64 {
        self.dispatches
    }
}

impl std::fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Evaluator({} dispatches)", self.dispatches)
    }
}
