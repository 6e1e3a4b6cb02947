//! Errors of the library as the package's exception classes, which stand in `aneforge._errors`.

use aneforge_compile::CompileError;
use aneforge_core::{GraphError, TargetError};
use aneforge_runtime::DeviceError;
use pyo3::prelude::*;

/// An exception of a class of `aneforge._errors`.
pub fn raise(class: &str, message: &str) -> PyErr {
    Python::attach(|py| {
        let made = py.import("aneforge._errors").and_then(|module| module.getattr(class)?.call1((message,)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// The class of a graph's fault.
fn graph_class(error: &GraphError) -> &'static str {
    match error {
        GraphError::Type { .. } => "DTypeError",
        GraphError::Rank { .. } | GraphError::Range { .. } => "LimitError",
        GraphError::NotDifferentiable { .. } => "UnsupportedError",
        GraphError::Constraint { label: "C0", .. } => "UnsupportedError",
        GraphError::Input { problem, .. } if problem.starts_with("takes fp") || problem.starts_with("takes bool") => "DTypeError",
        GraphError::Attribute { .. } | GraphError::DuplicateName { .. } | GraphError::NoOutputs | GraphError::Text { .. } => {
            "ArgumentError"
        }
        _ => "ShapeError",
    }
}

/// A fault of a graph.
pub fn graph(error: &GraphError) -> PyErr {
    raise(graph_class(error), &error.to_string())
}

/// A fault of the compiler.
pub fn compile(error: &CompileError) -> PyErr {
    match error {
        CompileError::Graph(source) => graph(source),
        CompileError::Limit { .. } => raise("LimitError", &error.to_string()),
        CompileError::Name { .. } => raise("ArgumentError", &error.to_string()),
        _ => raise("CompileError", &error.to_string()),
    }
}

/// A fault of a device.
pub fn device(error: &DeviceError) -> PyErr {
    let class = match error {
        DeviceError::Unsupported { .. } => "UnsupportedError",
        DeviceError::UnknownDevice { .. } | DeviceError::PortName { .. } | DeviceError::PortCount { .. } => "ArgumentError",
        DeviceError::PortShape { .. } => "ShapeError",
        DeviceError::PortDType { .. } => "DTypeError",
        _ => "DeviceError",
    };
    raise(class, &error.to_string())
}

/// A name that is no target.
pub fn target(error: &TargetError) -> PyErr {
    raise("ArgumentError", &error.to_string())
}
