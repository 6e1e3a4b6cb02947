//! What the tests of packages share: bodies of every hand-written case of the operator tables.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../core/tests/support/mod.rs"]
mod graph_support;

use aneforge_mil::op::{Case, MilOp, PortKind, builtin, declared};
use aneforge_mil::{Array, Body, Builder, Constant, DType, Operand, Output, TensorType, ValueId, ValueKind};

/// Element types that Core ML takes at the edges of a program.
pub fn is_edge(ty: &TensorType) -> bool {
    matches!(ty.dtype, DType::Fp16 | DType::Fp32 | DType::Int32) && ty.rank() > 0
}

/// A case of an operator as a program with its inputs: tensors that Core ML takes at an edge are inputs, all other arguments
/// constants, and results of other types are cast.
pub fn case_body(op: &'static MilOp, case: &Case) -> (Body, Vec<Array>) {
    let mut body = Body { name: "main".to_string(), ..Body::default() };
    let mut inputs = Vec::new();
    let mut operands = Vec::new();
    for (spec, given) in op.ports.iter().zip(case.arguments(op)) {
        let mut ids = Vec::new();
        for (index, argument) in given.into_iter().enumerate() {
            let name = format!("{}_{index}", spec.name);
            ids.push(match (argument.text, argument.value) {
                (Some(text), _) => body.add_constant(name, argument.ty, Constant::Text(text)),
                (None, Some(array)) => {
                    let weight = op.name.starts_with("conv") && matches!(spec.name, "weight" | "bias");
                    let moving = matches!(spec.kind, PortKind::Tensor | PortKind::Variadic) && is_edge(&array.ty) && !weight;
                    if moving {
                        inputs.push(array.clone());
                        body.add_input(name, array.ty)
                    } else {
                        body.add_constant(name, array.ty, Constant::Values(array.data))
                    }
                }
                (None, None) => panic!("{}: an argument without data", op.name),
            });
        }
        operands.push(match (spec.kind, ids.as_slice()) {
            (_, []) => Operand::Absent,
            (kind, _) if kind.is_tuple() => Operand::Many(ids),
            (_, [one]) => Operand::One(*one),
            _ => panic!("{}: several values at {}", op.name, spec.name),
        });
    }
    let types = body.infer(op, &operands).unwrap_or_else(|error| panic!("{} {}: {error}", op.name, case.name));
    let results = types.into_iter().enumerate().map(|(index, ty)| (format!("result_{index}"), ty)).collect();
    let ids = body.add_operation(op, operands, results);
    (with_edges(body, &ids), inputs)
}

/// Names results as outputs, cast and reshaped to what Core ML takes where they are something else.
pub fn with_edges(body: Body, results: &[ValueId]) -> Body {
    let mut outputs = Vec::new();
    // Nothing takes elements narrower than a byte out of a program.
    let results = results.iter().filter(|&&id| body.ty(id).dtype.bits() >= 8).copied().collect::<Vec<_>>();
    let mut builder = Builder::extending(body, builtin().clone());
    for (index, result) in results.into_iter().enumerate() {
        let mut value = result;
        let ty = builder.ty(value).clone();
        if !is_edge(&TensorType::new(ty.dtype, [1])) {
            value = builder.op("cast", &[("x", value.into()), ("dtype", "int32".into())]).unwrap();
        }
        let made = matches!(builder.body().value(value).kind, ValueKind::Result { .. });
        if !made || outputs.iter().any(|other: &Output| other.value == value) {
            value = builder.op("identity", &[("x", value.into())]).unwrap();
        }
        if ty.shape.is_empty() {
            value = builder.op("reshape", &[("x", value.into()), ("shape", vec![1i64].into())]).unwrap();
        }
        outputs.push(Output { name: format!("out_{index}"), value });
    }
    let mut body = builder.finish();
    body.outputs = outputs;
    body
}

/// Cases of both tables that Core ML refuses, which the writer says. All others can be written.
pub const REFUSED: &[&str] =
    &["acosh.inverse_of_the_hyperbolic_cosine", "asinh.inverse_of_the_hyperbolic_sine", "graph.prelu.slope_per_channel"];

/// Every case of the operator table.
pub fn cases() -> impl Iterator<Item = (&'static MilOp, &'static Case)> {
    declared().flat_map(|op| op.cases.iter().map(move |case| (op, case)))
}

/// Every case of the graph operators as the program that it lowers to, with its inputs. Native layers, which Core ML has none of,
/// are left out.
pub fn graph_cases() -> Vec<(String, Body, Vec<Array>)> {
    let written = aneforge_core::op::builtin().iter().filter(|op| !op.is_native());
    let all = written.flat_map(|&op| op.cases.iter().map(move |case| (op, case)));
    all.map(|(op, case)| {
        let name = format!("graph.{}.{}", op.name, case.name);
        let built = graph_support::build(op, case);
        let mut body = built.body().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut arrays = Vec::new();
        for (id, array) in std::mem::take(&mut body.inputs).into_iter().zip(built.arrays) {
            // Core ML takes computed weights of convolutions at times, computed biases never.
            let weight = op.name.starts_with("conv") && !arrays.is_empty();
            if is_edge(&array.ty) && !weight {
                body.inputs.push(id);
                arrays.push(array);
            } else {
                body.values[id.index()].kind = ValueKind::Constant(Constant::Values(array.data));
            }
        }
        let results: Vec<ValueId> = body.outputs.iter().map(|output| output.value).collect();
        (name, with_edges(body, &results), arrays)
    })
    .collect()
}
