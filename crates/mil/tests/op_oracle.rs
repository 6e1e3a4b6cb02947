//! The operator table against coremltools' registry and PyTorch, where `ANEFORGE_PYTHON` names a Python that has both.

mod op_support;

use aneforge_mil::op::{Argument, Case, Default, MilOp, PortKind, builtin};
use serde_json::{Value, json};
use std::io::Write;

#[test]
fn ports_defaults_shapes_and_values_agree_with_coremltools_and_pytorch() {
    let Some(python) = std::env::var_os("ANEFORGE_PYTHON") else {
        println!("not compared with coremltools and PyTorch: ANEFORGE_PYTHON is not set");
        return;
    };
    let table: Vec<Value> = builtin().all().into_iter().map(record).collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(serde_json::to_string(&table).unwrap().as_bytes()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/op_oracle.py");
    let output = std::process::Command::new(&python)
        .arg(script)
        .arg(file.path())
        .output()
        .unwrap_or_else(|error| panic!("ANEFORGE_PYTHON ({python:?}) does not start: {error}"));
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}");
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
}

fn record(op: &'static MilOp) -> Value {
    let port = |port: &aneforge_mil::op::PortSpec| {
        let default = match port.default {
            Default::Required | Default::Absent => Value::Null,
            Default::Int(value) => json!(value),
            Default::Float(value) => json!(value),
            Default::Flag(value) => json!(value),
            Default::Text(value) => json!(value),
            Default::Ints(values) => json!(values),
        };
        json!({ "name": port.name, "required": port.default == Default::Required, "default": default })
    };
    json!({
        "name": op.name,
        "opset": op.opset,
        "ports": op.ports.iter().map(port).collect::<Vec<_>>(),
        "cases": op.cases.iter().map(|case| worked(op, case)).collect::<Vec<_>>(),
    })
}

fn worked(op: &'static MilOp, case: &Case) -> Value {
    let ports = case.arguments(op);
    let argument = |port: &aneforge_mil::op::PortSpec, argument: &Argument| {
        let mut told = json!({ "port": port.name, "variadic": port.kind == PortKind::Variadic });
        match (&argument.text, &argument.value) {
            (Some(text), _) => told["text"] = json!(text),
            (None, value) => {
                told["dtype"] = json!(argument.ty.dtype.keyword());
                told["shape"] = json!(argument.ty.shape);
                told["data"] = json!(value.as_ref().map(|value| &value.data));
            }
        }
        told
    };
    let told = op.ports.iter().zip(&ports).flat_map(|(port, given)| given.iter().map(move |one| argument(port, one)));
    let (_, results) = op_support::run(op, &ports).unwrap_or_else(|error| panic!("{} {}: {error}", op.name, case.name));
    let results: Vec<_> = results.iter().map(|result| json!({ "shape": result.ty.shape, "data": result.data })).collect();
    json!({ "name": case.name, "arguments": told.collect::<Vec<_>>(), "results": results })
}
