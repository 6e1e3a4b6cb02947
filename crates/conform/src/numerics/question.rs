//! Questions to a device: programs of one operation, written out with their inputs.

use aneforge_mil::BlobWriter;
use aneforge_mil::op::builtin;
use aneforge_mil::{Body, Constant, DType, EmitOptions, Operand, Output, TensorType, emit, print};
use aneforge_runtime::numerics::ProbeInput;
use half::f16;
use std::io::Cursor;

/// What stands at a port of the operation.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// An fp16 input of a shape.
    Input(Vec<usize>),
    /// An fp16 constant.
    Weight(Vec<usize>, Vec<f16>),
    /// A number of the type that the port takes first.
    Number(f64),
    /// A vector of integers.
    Integers(Vec<i64>),
    /// A flag.
    Flag(bool),
    /// A word.
    Text(&'static str),
}

/// A program with its inputs.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) name: String,
    pub(super) op: &'static str,
    pub(super) body: Body,
    pub(super) inputs: Vec<ProbeInput>,
}

impl Question {
    /// The question that one operation asks.
    pub(super) fn new(
        name: impl Into<String>,
        op: &'static str,
        parts: &[(&str, Part)],
        inputs: Vec<ProbeInput>,
    ) -> Result<Self, String> {
        Ok(Self { name: name.into(), op, body: body(op, parts)?, inputs })
    }
}

/// A program of one operation.
pub(super) fn body(op: &str, parts: &[(&str, Part)]) -> Result<Body, String> {
    let record = builtin().get(op).ok_or_else(|| format!("MIL has no {op}"))?;
    if let Some((port, _)) = parts.iter().find(|(port, _)| record.port(port).is_none()) {
        return Err(format!("{op} has no port {port}"));
    }
    let mut body = Body { name: "main".to_string(), ..Body::default() };
    let mut operands = Vec::with_capacity(record.ports.len());
    for spec in record.ports {
        let Some((_, part)) = parts.iter().find(|(port, _)| *port == spec.name) else {
            operands.push(Operand::Absent);
            continue;
        };
        let first = spec.dtypes.first().copied().unwrap_or(DType::Fp16);
        let scalar = |dtype| TensorType::new(dtype, Vec::new());
        let id = match part {
            Part::Input(shape) => body.add_input(spec.name, TensorType::new(DType::Fp16, shape.clone())),
            Part::Weight(shape, values) => {
                let values = values.iter().map(|value| value.to_f64()).collect();
                body.add_constant(spec.name, TensorType::new(DType::Fp16, shape.clone()), Constant::Values(values))
            }
            Part::Number(value) => body.add_constant(spec.name, scalar(first), Constant::Values(vec![*value])),
            Part::Integers(values) => {
                let ty = TensorType::new(DType::Int32, vec![values.len()]);
                body.add_constant(spec.name, ty, Constant::Values(values.iter().map(|&value| value as f64).collect()))
            }
            Part::Flag(flag) => {
                body.add_constant(spec.name, scalar(DType::Bool), Constant::Values(vec![f64::from(u8::from(*flag))]))
            }
            Part::Text(text) => body.add_constant(spec.name, scalar(DType::String), Constant::Text((*text).to_string())),
        };
        operands.push(Operand::One(id));
    }
    let types = body.infer(record, &operands).map_err(|error| error.to_string())?;
    let results = types.into_iter().enumerate().map(|(index, ty)| (format!("result_{index}"), ty)).collect();
    let outputs = body.add_operation(record, operands, results);
    body.outputs = outputs.iter().map(|&value| Output { name: body.value(value).name.clone(), value }).collect();
    Ok(body)
}

/// The program as one text, all constants written out.
pub(super) fn text(body: &Body) -> Result<String, String> {
    let options = EmitOptions { literal_limit: usize::MAX, ..EmitOptions::default() };
    let mut none = BlobWriter::new(Cursor::new(Vec::new())).map_err(|error| error.to_string())?;
    let program = emit(body, &options, &mut none).map_err(|error| error.to_string())?;
    Ok(print(&program))
}
