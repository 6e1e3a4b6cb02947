//! The operator table against coremltools' registry and PyTorch, where `ANEFORGE_PYTHON` names a Python that has both.

mod op_support;

use aneforge_mil::op::{Argument, Case, Default, MilOp, builtin, listed};
use serde_json::{Value, json};
use std::io::Write;

#[test]
fn ports_defaults_shapes_and_values_agree_with_coremltools_and_pytorch() {
    let Some(python) = std::env::var_os("ANEFORGE_PYTHON") else {
        println!("not compared with coremltools and PyTorch: ANEFORGE_PYTHON is not set");
        return;
    };
    let operators: Vec<Value> = builtin().all().into_iter().map(record).collect();
    let names: Vec<_> = listed().iter().map(|row| row.name).collect();
    let table = json!({ "operators": operators, "listed": names });
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
        "cases": op.cases.iter().flat_map(|case| variants(op, case)).collect::<Vec<_>>(),
    })
}

/// A case as written, and with other extents and values where that is legal.
fn variants(op: &'static MilOp, case: &Case) -> Vec<Value> {
    let mut dice = op_support::Dice(0x0bac1e ^ case.name.len() as u64);
    let written = worked(op, case.name, &case.arguments(op));
    let generated = (0..3).map(|_| op_support::resized(op, case, &mut dice));
    let legal = generated.filter(|ports| op_support::run(op, ports).is_ok()).map(|ports| worked(op, case.name, &ports));
    std::iter::once(written).chain(legal).collect()
}

fn worked(op: &'static MilOp, name: &str, ports: &[Vec<Argument>]) -> Value {
    let argument = |port: &aneforge_mil::op::PortSpec, argument: &Argument| {
        let mut told = json!({ "port": port.name, "variadic": port.kind.is_tuple() });
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
    let told = op.ports.iter().zip(ports).flat_map(|(port, given)| given.iter().map(move |one| argument(port, one)));
    let (_, results) = op_support::run(op, ports).unwrap_or_else(|error| panic!("{} {name}: {error}", op.name));
    let results: Vec<_> = results.iter().map(|result| json!({ "shape": result.ty.shape, "data": result.data })).collect();
    json!({ "name": name, "arguments": told.collect::<Vec<_>>(), "results": results })
}
