//! Compiling, loading and running.

use crate::build::Value;
use crate::node::Tensor;
use crate::session::Session;
use crate::{array, fault};
use aneforge_compile::{CompileOptions, compress::Format};
use aneforge_core::{Chip, CompilerTarget, Target};
use aneforge_runtime::{Bound as Binding, Buffer, Device, DeviceError, Executable};
use aneforge_staging::Staging;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How results are handed back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Results {
    One,
    List,
    Named,
}

/// A compiled program on a device.
#[pyclass(subclass, frozen, module = "aneforge._core")]
pub struct Program {
    loaded: Mutex<Option<Arc<dyn Executable>>>,
    /// Made when a view is asked for.
    bound: Mutex<Option<Box<dyn Binding>>>,
    /// Held so that a bundle of our own stays as long as the program.
    _folder: Option<tempfile::TempDir>,
    place: PathBuf,
    device: String,
    target: String,
    operations: usize,
    results: Results,
    wide: bool,
}

#[pymethods]
impl Program {
    /// Compiled from tensors (`compile`) or read from a folder (`load`); this takes the place of another program's.
    #[new]
    fn new(other: PyRef<'_, Prepared>) -> PyResult<Self> {
        let taken = other.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| PyRuntimeError::new_err("this program was taken already"))
    }

    #[pyo3(signature = (*arrays, **named))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arrays: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let loaded = self.executable()?;
        let ports = loaded.inputs();
        let given = arrays.len() + named.map_or(0, |named| named.len());
        if given != ports.len() {
            let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
            let message = format!("the program has {} inputs ({}), {given} were given", ports.len(), names.join(", "));
            return Err(fault::raise("ArgumentError", &message));
        }
        let mut taken = Vec::with_capacity(ports.len());
        for (index, port) in ports.iter().enumerate() {
            let argument = if index < arrays.len() {
                arrays.get_item(index)?
            } else {
                let found = named.map(|named| named.get_item(&port.name)).transpose()?.flatten();
                found.ok_or_else(|| fault::raise("ArgumentError", &format!("input {:?} was not given", port.name)))?
            };
            taken.push(array::for_port(&argument, &port.name, &port.ty)?);
        }
        let bytes = taken.iter().map(array::Bytes::get).collect::<PyResult<Vec<&[u8]>>>()?;
        let mut made: Vec<Vec<u8>> = loaded.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
        py.detach(|| {
            let mut outputs: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
            loaded.execute(&bytes, &mut outputs)
        })
        .map_err(|error| fault::device(&error))?;
        let arrays = loaded.outputs().iter().zip(&made).map(|(port, bytes)| array::from_port(py, &port.ty, bytes, self.wide));
        match self.results {
            Results::One => arrays.into_iter().next().unwrap_or_else(|| Ok(py.None().into_bound(py))),
            Results::List => Ok(pyo3::types::PyList::new(py, arrays.collect::<PyResult<Vec<_>>>()?)?.into_any()),
            Results::Named => {
                let all = PyDict::new(py);
                for (port, array) in loaded.outputs().iter().zip(arrays) {
                    all.set_item(&port.name, array?)?;
                }
                Ok(all.into_any())
            }
        }
    }

    /// Where it runs; said even where the device was chosen automatically.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    /// What it is compiled for.
    #[getter]
    fn target(&self) -> &str {
        &self.target
    }

    /// Number of operations after all passes.
    #[getter]
    fn n_ops(&self) -> usize {
        self.operations
    }

    /// Names, element types and shapes of the inputs.
    #[getter]
    fn inputs(&self) -> PyResult<Vec<(String, &'static str, Vec<usize>)>> {
        Ok(self.executable()?.inputs().iter().map(entry).collect())
    }

    /// Names, element types and shapes of the outputs.
    #[getter]
    fn outputs(&self) -> PyResult<Vec<(String, &'static str, Vec<usize>)>> {
        Ok(self.executable()?.outputs().iter().map(entry).collect())
    }

    /// The program's text; empty where it is in segments.
    #[getter]
    fn mil(&self) -> PyResult<String> {
        let text = self.place.join("model.mil");
        if text.exists() { Ok(std::fs::read_to_string(text)?) } else { Ok(String::new()) }
    }

    /// Memory and steps: `arena_bytes`, `constant_bytes`, `steps` as (name, operators, kernel).
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.executable()?.report();
        let stats = PyDict::new(py);
        stats.set_item("device", report.device)?;
        stats.set_item("arena_bytes", report.arena_bytes)?;
        stats.set_item("constant_bytes", report.constant_bytes)?;
        stats.set_item("steps", report.steps.into_iter().map(|step| (step.name, step.ops, step.kernel)).collect::<Vec<_>>())?;
        stats.set_item("segments", report.segments.into_iter().map(|part| (part.kind, part.device)).collect::<Vec<_>>())?;
        Ok(stats)
    }

    /// Writes the bundle to a folder, which appears whole or not at all; an older bundle there is an error.
    fn save(&self, folder: PathBuf) -> PyResult<()> {
        if folder.exists() {
            let message = format!("{} exists; name another folder or remove it", folder.display());
            return Err(fault::raise("ArgumentError", &message));
        }
        let staging = Staging::beside(&folder)?;
        copy(&self.place, staging.path())?;
        staging.place()?;
        Ok(())
    }

    /// The memory that an input or an output is bound to, for views.
    fn memory(&self, output: bool, index: usize) -> PyResult<Memory> {
        self.with_bound(|bound| if output { bound.output(index).cloned() } else { bound.input(index).cloned() }).map(Memory)
    }

    /// Runs once on the bound memory.
    fn execute(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.with_bound(|bound| bound.execute()))
    }

    /// Lets the device's memory go; calls are errors from then on.
    fn release(&self) {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Memory of a port; views of it keep it.
#[pyclass(frozen, module = "aneforge._core")]
pub struct Memory(Buffer);

#[pymethods]
impl Memory {
    #[getter]
    fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    #[getter]
    fn length(&self) -> usize {
        self.0.len()
    }
}

impl Program {
    fn with_bound<T>(&self, work: impl FnOnce(&mut dyn Binding) -> Result<T, DeviceError>) -> PyResult<T> {
        let loaded = self.executable()?;
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if bound.is_none() {
            *bound = Some(loaded.bind().map_err(|error| fault::device(&error))?);
        }
        let bound = bound.as_mut().ok_or_else(|| fault::raise("DeviceError", "the program has no memory"))?;
        work(bound.as_mut()).map_err(|error| fault::device(&error))
    }

    fn executable(&self) -> PyResult<Arc<dyn Executable>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        loaded.ok_or_else(|| fault::raise("DeviceError", "the program was released; compile or load it again"))
    }
}

/// A program on its way to Python's class for it.
#[pyclass(frozen, module = "aneforge._core")]
pub struct Prepared(Mutex<Option<Program>>);

/// Compiles tensors under their names and loads the program.
#[pyfunction]
pub fn compile(
    py: Python<'_>,
    outputs: Vec<(String, PyRef<'_, Value>)>,
    form: &str,
    device: &str,
    target: Option<&str>,
    format: Option<&str>,
    wide: bool,
) -> PyResult<Prepared> {
    let roots: Vec<(String, Tensor)> = outputs.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
    let results = match form {
        "one" => Results::One,
        "list" => Results::List,
        _ => Results::Named,
    };
    let format = format.map(str::parse::<Format>).transpose();
    let compress = format.map_err(|error| fault::raise("ArgumentError", &error.to_string()))?;
    py.detach(move || {
        let device = aneforge_runtime::open(device).map_err(|error| fault::device(&error))?;
        let target = target.map_or_else(|| Ok(device.target()), named_target)?;
        let tensors: Vec<Tensor> = roots.iter().map(|(_, tensor)| tensor.clone()).collect();
        let built = Session::default().replay(&tensors).map_err(|error| fault::graph(&error))?;
        let named: Vec<_> = roots.iter().map(|(name, _)| name.as_str()).zip(&built).collect();
        let options = CompileOptions { target, compress, ..CompileOptions::default() };
        let compiled = aneforge_compile::compile(&named, &options).map_err(|error| fault::compile(&error))?;
        let folder = tempfile::Builder::new().prefix("aneforge-").tempdir()?;
        let place = folder.path().join("bundle");
        compiled.write(&place).map_err(|error| fault::compile(&error))?;
        loaded(device.as_ref(), place, Some(folder), target.to_string(), results, wide)
    })
}

/// Loads a bundle from a folder.
#[pyfunction]
pub fn load(py: Python<'_>, folder: PathBuf, device: &str, wide: bool) -> PyResult<Prepared> {
    py.detach(move || {
        let device = aneforge_runtime::open(device).map_err(|error| fault::device(&error))?;
        loaded(device.as_ref(), folder, None, "of the bundle".to_string(), Results::Named, wide)
    })
}

/// Every device: name, whether it is here, what it is or why it is not.
#[pyfunction]
pub fn devices() -> Vec<(String, bool, String)> {
    aneforge_runtime::devices().into_iter().map(|device| (device.name, device.available, device.description)).collect()
}

/// Names of the chips.
#[pyfunction]
pub fn chips() -> Vec<&'static str> {
    aneforge_core::chips().iter().map(|chip: &Chip| chip.name).collect()
}

fn loaded(
    device: &dyn Device,
    place: PathBuf,
    folder: Option<tempfile::TempDir>,
    target: String,
    results: Results,
    wide: bool,
) -> PyResult<Prepared> {
    let program = Arc::new(aneforge_runtime::Program::open(&place).map_err(|error| fault::device(&error))?);
    let executable = device.load(&program).map_err(|error| fault::device(&error))?;
    let results =
        if results == Results::Named && folder.is_none() && executable.outputs().len() == 1 { Results::One } else { results };
    Ok(Prepared(Mutex::new(Some(Program {
        loaded: Mutex::new(Some(executable)),
        bound: Mutex::new(None),
        _folder: folder,
        place,
        device: device.name().to_string(),
        target,
        operations: program.body().operations.len(),
        results,
        wide,
    }))))
}

/// A target by the name of a chip, or of one of the compiler's targets (`h13`), as the PyPI package has them.
fn named_target(name: &str) -> PyResult<Target> {
    let found = name.parse::<Target>();
    let by_compiler = || CompilerTarget::find(name).and_then(CompilerTarget::chip).map(Target::e5rt);
    found.or_else(|error| by_compiler().ok_or(error)).map_err(|error| fault::target(&error))
}

fn entry(port: &aneforge_runtime::Port) -> (String, &'static str, Vec<usize>) {
    (port.name.clone(), port.ty.dtype.keyword(), port.ty.shape.clone())
}

fn copy(from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir(&place)?;
            copy(&entry.path(), &place)?;
        } else {
            std::fs::copy(entry.path(), &place)?;
        }
    }
    Ok(())
}
