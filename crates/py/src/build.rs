//! Building graphs: tensors, operators by their records, and what the library composes of them.

use crate::array::{dtype, ordered};
use crate::node::{Kind, Tensor};
use crate::session::Session;
use crate::{array, fault};
use aneforge_core::op::{self, InputKind};
use aneforge_core::{Attribute, AttributeKind, DType, GraphError, GraphOp, Heads, Tensor as Built, TensorType, Weight};
use half::f16;
use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

/// A tensor of a graph.
#[pyclass(frozen, module = "aneforge._core")]
pub struct Value(pub Tensor);

#[pymethods]
impl Value {
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.0.ty.shape.clone()
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.ty.dtype.keyword()
    }

    #[getter]
    fn op(&self) -> &'static str {
        self.0.node.op()
    }

    /// What tells it from other tensors.
    #[getter]
    fn key(&self) -> (u64, usize) {
        self.0.key()
    }

    #[getter]
    fn srcs(&self) -> Vec<Self> {
        self.0.node.inputs().cloned().map(Self).collect()
    }

    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let attrs = PyDict::new(py);
        match &self.0.node.kind {
            Kind::Apply { op, attributes, .. } => {
                for (spec, value) in op.attributes.iter().zip(attributes) {
                    match value {
                        Attribute::Absent => {}
                        Attribute::Int(value) => attrs.set_item(spec.name, value)?,
                        Attribute::Float(value) => attrs.set_item(spec.name, value)?,
                        Attribute::Flag(value) => attrs.set_item(spec.name, value)?,
                        Attribute::Text(value) => attrs.set_item(spec.name, value.as_ref())?,
                        Attribute::Ints(values) => attrs.set_item(spec.name, values.to_vec())?,
                    }
                }
            }
            Kind::Parameter { .. } => attrs.set_item("trainable", true)?,
            Kind::Input { name: Some(name) } => attrs.set_item("name", name)?,
            _ => {}
        }
        Ok(attrs)
    }
}

/// A named input of the program.
#[pyfunction]
#[pyo3(signature = (shape, dtype, name=None))]
pub fn input(shape: Vec<usize>, dtype: &str, name: Option<String>) -> PyResult<Value> {
    let ty = TensorType::new(array::dtype(dtype)?, shape);
    let graph = aneforge_core::Graph::new();
    graph.input("x", ty.dtype, &ty.shape).check().map_err(|error| fault::graph(&error))?;
    Ok(Value(Tensor::new(Kind::Input { name }, ty)))
}

/// A constant with the values of an array: fp16 for floats, int32 for integers, or of the type named.
#[pyfunction]
#[pyo3(signature = (values, element=None))]
pub fn constant(values: &Bound<'_, PyAny>, element: Option<&str>) -> PyResult<Value> {
    let given = ordered(values, None, "constant")?;
    let kind: String = given.getattr("dtype")?.getattr("kind")?.extract()?;
    let wanted = match (element, kind.as_str()) {
        (Some(name), _) => dtype(name)?,
        (None, "f") => DType::Fp16,
        (None, "b") => DType::Bool,
        (None, _) => DType::Int32,
    };
    let kept = given.extract::<PyReadonlyArrayDyn<'_, f16>>().ok().filter(|array| wanted == DType::Fp16 && array.len() > 16);
    if let Some(halves) = kept {
        let weight = Weight::from_fp16(halves.shape().to_vec(), halves.as_slice()?);
        return made(|session| {
            Ok(session.graph.weight(weight.map_err(|source| GraphError::Weight { name: "constant".into(), source })?))
        });
    }
    let wide = ordered(&given, Some("float64"), "constant")?.extract::<PyReadonlyArrayDyn<'_, f64>>()?;
    let values = wide.as_slice()?;
    made(|session| Ok(session.graph.values(wanted, wide.shape(), values)))
}

/// A weight that training may change.
#[pyfunction]
#[pyo3(signature = (values, name=None))]
pub fn parameter(values: &Bound<'_, PyAny>, name: Option<String>) -> PyResult<Value> {
    let wide = ordered(values, Some("float32"), "parameter")?.extract::<PyReadonlyArrayDyn<'_, f32>>()?;
    let weight = Weight::from_fp32(wide.shape().to_vec(), wide.as_slice()?.to_vec());
    let weight = weight.map_err(|source| fault::graph(&GraphError::Weight { name: "parameter".into(), source }))?;
    let ty = weight.ty().clone();
    Ok(Value(Tensor::new(Kind::Parameter { name, weight }, ty)))
}

/// The results of an operator by its record's name.
#[pyfunction]
pub fn apply(name: &str, inputs: Vec<Vec<PyRef<'_, Value>>>, attributes: &Bound<'_, PyDict>) -> PyResult<Vec<Value>> {
    let op = find(name)?;
    let mut given = Vec::with_capacity(attributes.len());
    for (key, value) in attributes {
        let key: String = key.extract()?;
        let spec = op.attributes.iter().find(|spec| spec.name == key);
        let spec = spec.ok_or_else(|| {
            let known: Vec<_> = op.attributes.iter().map(|spec| spec.name).collect();
            fault::raise("ArgumentError", &format!("{name}: has no attribute {key:?}; it takes {}", known.join(", ")))
        })?;
        if !value.is_none() {
            given.push((spec.name, attribute(name, spec.name, spec.kind, &value)?));
        }
    }
    let mut session = Session::default();
    let lists: Result<Vec<Vec<Built>>, GraphError> =
        inputs.iter().map(|list| list.iter().map(|value| session.enter(&value.0)).collect()).collect();
    let lists = lists.map_err(|error| fault::graph(&error))?;
    let results = session.graph.apply_lists(op, &lists, &given);
    left(&mut session, &results)
}

/// What the library composes of operators.
#[pyfunction]
pub fn composite(name: &str, tensors: Vec<Option<PyRef<'_, Value>>>, number: i64, text: &str) -> PyResult<Value> {
    let mut session = Session::default();
    let entered = tensors.iter().map(|value| value.as_ref().map(|value| session.enter(&value.0)).transpose());
    let given = entered.collect::<Result<Vec<_>, GraphError>>().map_err(|error| fault::graph(&error))?;
    let one = |index: usize| {
        given
            .get(index)
            .and_then(Option::as_ref)
            .ok_or_else(|| fault::raise("ShapeError", &format!("{name}: tensor {index} is missing")))
    };
    let maybe = |index: usize| given.get(index).and_then(Option::as_ref);
    let result = match name {
        "mha" => {
            let heads = Heads {
                query: (one(2)?, maybe(3)),
                key: (one(4)?, maybe(5)),
                value: (one(6)?, maybe(7)),
                output: (one(8)?, maybe(9)),
                heads: usize::try_from(number).unwrap_or(0),
            };
            if heads.heads == 0 {
                return Err(fault::raise("ArgumentError", "n_heads must be at least 1"));
            }
            aneforge_core::mha(one(0)?, one(1)?, &heads, maybe(10))
        }
        "geglu" => aneforge_core::geglu(one(0)?, one(1)?, maybe(2)),
        "einsum" => aneforge_core::einsum(text, &given.iter().flatten().cloned().collect::<Vec<_>>()),
        _ => return Err(fault::raise("ArgumentError", &format!("nothing is composed under the name {name:?}"))),
    };
    let mut left = left(&mut session, &[result])?;
    left.pop().ok_or_else(|| fault::raise("ShapeError", "no result"))
}

/// Gradients of a loss with one element.
#[pyfunction]
pub fn backward(py: Python<'_>, loss: PyRef<'_, Value>, wrt: Vec<PyRef<'_, Value>>) -> PyResult<Vec<Value>> {
    let roots: Vec<Tensor> = std::iter::once(&loss.0).chain(wrt.iter().map(|value| &value.0)).cloned().collect();
    let left = py.detach(move || {
        let mut session = Session::default();
        let built = session.replay(&roots)?;
        let gradients = aneforge_core::backward(&built[0], &built[1..]);
        session.leave(&gradients)
    });
    Ok(left.map_err(|error| fault::graph(&error))?.into_iter().map(Value).collect())
}

/// Every operator: name, summary, inputs with kind and whether constant, attributes with kind and default, rules.
#[pyfunction]
pub fn operators(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let mut all = Vec::new();
    for op in op::builtin() {
        let record = PyDict::new(py);
        record.set_item("name", op.name)?;
        record.set_item("summary", op.summary)?;
        record.set_item("available", op.is_available())?;
        let kind = |kind| match kind {
            InputKind::One => "one",
            InputKind::Optional => "optional",
            InputKind::Variadic => "variadic",
        };
        let types = |dtypes: &[DType]| dtypes.iter().map(|dtype| dtype.keyword()).collect::<Vec<_>>();
        let inputs: Vec<_> =
            op.inputs.iter().map(|input| (input.name, kind(input.kind), input.constant, types(input.dtypes))).collect();
        record.set_item("inputs", inputs)?;
        let attributes = PyDict::new(py);
        for spec in op.attributes {
            attributes.set_item(
                spec.name,
                (kind_name(spec.kind), format!("{:?}", spec.default), Attribute::from(spec.default).to_string()),
            )?;
        }
        record.set_item("attributes", attributes)?;
        record.set_item("rules", op.constraints.iter().map(|rule| (rule.label, rule.rule)).collect::<Vec<_>>())?;
        all.push(record);
    }
    Ok(all)
}

fn kind_name(kind: AttributeKind) -> &'static str {
    match kind {
        AttributeKind::Int => "int",
        AttributeKind::Float => "float",
        AttributeKind::Flag => "bool",
        AttributeKind::Text(_) => "str",
        AttributeKind::Ints => "ints",
    }
}

fn find(name: &str) -> PyResult<&'static GraphOp> {
    let found = op::builtin().iter().copied().find(|op| op.name == name);
    found.ok_or_else(|| fault::raise("ArgumentError", &format!("there is no operator {name:?}")))
}

fn attribute(op: &str, name: &str, kind: AttributeKind, value: &Bound<'_, PyAny>) -> PyResult<Attribute> {
    let takes = |what: &str| fault::raise("DTypeError", &format!("{op}: {name} takes {what}, got {}", value.get_type()));
    match kind {
        AttributeKind::Flag if value.is_instance_of::<PyBool>() => Ok(Attribute::Flag(value.is_truthy()?)),
        AttributeKind::Flag => Err(takes("True or False")),
        AttributeKind::Text(_) if value.is_instance_of::<PyString>() => Ok(Attribute::from(value.extract::<String>()?.as_str())),
        AttributeKind::Text(_) => Err(takes("a word")),
        AttributeKind::Int => value.extract::<i64>().map(Attribute::Int).map_err(|_| takes("an integer")),
        AttributeKind::Float if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() => {
            Ok(Attribute::Float(value.extract()?))
        }
        AttributeKind::Float => value.extract::<f64>().map(Attribute::Float).map_err(|_| takes("a number")),
        AttributeKind::Ints => match value.extract::<i64>() {
            Ok(one) => Ok(Attribute::from(vec![one])),
            Err(_) => value.extract::<Vec<i64>>().map(Attribute::from).map_err(|_| takes("integers")),
        },
    }
}

fn made(build: impl FnOnce(&Session) -> Result<Built, GraphError>) -> PyResult<Value> {
    let mut session = Session::default();
    let built = build(&session).map_err(|error| fault::graph(&error))?;
    let mut results = left(&mut session, &[built])?;
    results.pop().ok_or_else(|| fault::raise("ShapeError", "no result"))
}

fn left(session: &mut Session, results: &[Built]) -> PyResult<Vec<Value>> {
    let left = session.leave(results).map_err(|error| fault::graph(&error))?;
    Ok(left.into_iter().map(Value).collect())
}
