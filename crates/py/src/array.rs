//! Arrays of numpy as bytes of a port, and back.

use crate::fault::raise;
use aneforge_mil::{DType, TensorType};
use half::f16;
use half::slice::HalfFloatSliceExt;
use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// numpy's name of an element type.
pub fn numpy_name(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Fp16 => "float16",
        DType::Fp32 => "float32",
        DType::Int32 => "int32",
        DType::Int16 => "int16",
        DType::UInt16 => "uint16",
        DType::Int8 => "int8",
        DType::UInt8 => "uint8",
        DType::Bool => "bool",
        _ => return None,
    })
}

/// An element type from its name here or in numpy.
pub fn dtype(name: &str) -> PyResult<DType> {
    let known = [DType::Fp16, DType::Fp32, DType::Int32, DType::Int16, DType::UInt16, DType::Int8, DType::UInt8, DType::Bool];
    let found = known.into_iter().find(|dtype| dtype.keyword() == name || numpy_name(*dtype) == Some(name));
    found.ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|dtype| dtype.keyword()).collect();
        raise("ArgumentError", &format!("there is no element type {name:?}; use one of {}", names.join(", ")))
    })
}

/// What an input is read from while a program runs.
pub enum Bytes<'py> {
    /// fp16 in the array's own memory.
    Half(PyReadonlyArrayDyn<'py, f16>),
    /// Converted.
    Own(Vec<u8>),
}

impl Bytes<'_> {
    pub fn get(&self) -> PyResult<&[u8]> {
        match self {
            Self::Half(array) => Ok(bytemuck::cast_slice(array.as_slice()?)),
            Self::Own(bytes) => Ok(bytes),
        }
    }
}

/// The bytes of an argument for a port: fp16 is not copied where it lies in order, fp32 is rounded, all else goes through numpy.
pub fn for_port<'py>(argument: &Bound<'py, PyAny>, name: &str, ty: &TensorType) -> PyResult<Bytes<'py>> {
    if ty.dtype == DType::Fp16 {
        if let Ok(array) = argument.cast::<PyArrayDyn<f32>>() {
            check(name, ty, array.shape())?;
            let array = array.readonly();
            if let Ok(values) = array.as_slice() {
                return Ok(Bytes::Own(rounded(values)));
            }
        } else if let Ok(array) = argument.cast::<PyArrayDyn<f16>>() {
            check(name, ty, array.shape())?;
            if array.is_c_contiguous() {
                return Ok(Bytes::Half(array.readonly()));
            }
        }
    }
    let wanted = numpy_name(ty.dtype).ok_or_else(|| raise("DTypeError", &format!("port {name:?} has no numpy type")))?;
    let array = ordered(argument, Some(wanted), name)?;
    check(name, ty, array.cast::<PyUntypedArray>()?.shape())?;
    Ok(Bytes::Own(array.call_method0("tobytes")?.extract()?))
}

/// A numpy array in row-major order, of a type where one is named.
pub fn ordered<'py>(argument: &Bound<'py, PyAny>, dtype: Option<&str>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = argument.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = numpy.call_method1("asarray", (argument,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !"biuf".contains(kind.as_str()) {
        return Err(raise("DTypeError", &format!("{name}: takes numbers, got {}", argument.get_type().name()?)));
    }
    let options = PyDict::new(py);
    options.set_item("order", "C")?;
    if let Some(dtype) = dtype {
        options.set_item("dtype", dtype)?;
    }
    numpy.call_method("asarray", (array,), Some(&options))
}

/// An array of numpy from the bytes of a port; fp16 is widened where `wide`.
pub fn from_port<'py>(py: Python<'py>, ty: &TensorType, bytes: &[u8], wide: bool) -> PyResult<Bound<'py, PyAny>> {
    if ty.dtype == DType::Fp16 && wide {
        let array = PyArrayDyn::<f32>::zeros(py, ty.shape.as_slice(), false);
        {
            let mut write = array.readwrite();
            let values = write.as_slice_mut()?;
            for (value, pair) in values.iter_mut().zip(bytes.chunks_exact(2)) {
                *value = f16::from_le_bytes([pair[0], pair[1]]).to_f32();
            }
        }
        return Ok(array.into_any());
    }
    let name = numpy_name(ty.dtype).ok_or_else(|| raise("DTypeError", "an output has no numpy type"))?;
    let numpy = py.import(intern!(py, "numpy"))?;
    let flat = numpy.call_method1("frombuffer", (pyo3::types::PyByteArray::new(py, bytes), name))?;
    flat.call_method1("reshape", (ty.shape.clone(),))
}

fn rounded(values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0u8; values.len() * 2];
    match bytemuck::try_cast_slice_mut::<u8, f16>(&mut bytes) {
        Ok(halves) => halves.convert_from_f32_slice(values),
        Err(_) => {
            for (pair, value) in bytes.chunks_exact_mut(2).zip(values) {
                pair.copy_from_slice(&f16::from_f32(*value).to_le_bytes());
            }
        }
    }
    bytes
}

fn check(name: &str, ty: &TensorType, shape: &[usize]) -> PyResult<()> {
    if ty.shape == shape {
        return Ok(());
    }
    Err(raise("ShapeError", &format!("input {name:?} has shape {:?}, got {shape:?}", ty.shape)))
}
