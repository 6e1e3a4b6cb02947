//! Blocks that no writer here makes: computed shapes, control flow, operators without a record, states used wrongly.

use super::{Package, ReadOptions};
use crate::proto::{self, Bound, Elements, ImmediateKind, TypeKind, ValueData};
use aneforge_mil::{Body, DType};
use std::collections::BTreeMap;

fn ty(dtype: DType, shape: &[Option<u64>]) -> proto::ValueType {
    let kind = |extent: &Option<u64>| match *extent {
        Some(size) => proto::DimensionKind::Constant(proto::ConstantDimension { size }),
        None => proto::DimensionKind::Unknown(proto::UnknownDimension { variadic: false }),
    };
    let dimensions = shape.iter().map(|extent| proto::Dimension { kind: Some(kind(extent)) }).collect();
    let tensor = proto::TensorType { data_type: proto::data_type_code(dtype), rank: shape.len() as i64, dimensions };
    proto::ValueType { kind: Some(TypeKind::Tensor(tensor)) }
}

fn state(held: proto::ValueType) -> proto::ValueType {
    proto::ValueType { kind: Some(TypeKind::State(Box::new(proto::StateType { wrapped: Some(Box::new(held)) }))) }
}

fn port(name: &str, ty: proto::ValueType) -> proto::NamedValueType {
    proto::NamedValueType { name: name.to_string(), ty: Some(ty) }
}

fn name(name: &str) -> Bound {
    Bound::Name(name.to_string())
}

fn literal(ty: proto::ValueType, elements: Elements) -> Bound {
    let tensor = ImmediateKind::Tensor(proto::TensorValue { elements: Some(elements) });
    Bound::Value(proto::Value { ty: Some(ty), data: Some(ValueData::Immediate(proto::ImmediateValue { kind: Some(tensor) })) })
}

fn ints(values: &[i32]) -> Bound {
    let elements = Elements::Ints(proto::RepeatedInts { values: values.to_vec() });
    literal(ty(DType::Int32, &[Some(values.len() as u64)]), elements)
}

fn flag(value: bool) -> Bound {
    literal(ty(DType::Bool, &[]), Elements::Bools(proto::RepeatedBools { values: vec![value] }))
}

fn int(value: i32) -> Bound {
    literal(ty(DType::Int32, &[]), Elements::Ints(proto::RepeatedInts { values: vec![value] }))
}

fn operation(op: &str, inputs: &[(&str, &[Bound])], outputs: &[proto::NamedValueType]) -> proto::Operation {
    let argument = |bounds: &[Bound]| proto::Argument {
        arguments: bounds.iter().map(|bound| proto::Binding { bound: Some(bound.clone()) }).collect(),
    };
    proto::Operation {
        op: op.to_string(),
        inputs: inputs.iter().map(|(port, bounds)| (port.to_string(), argument(bounds))).collect(),
        outputs: outputs.to_vec(),
        blocks: Vec::new(),
        attributes: BTreeMap::new(),
    }
}

fn read(inputs: Vec<proto::NamedValueType>, operations: Vec<proto::Operation>, options: &ReadOptions) -> Result<Body, String> {
    let opset = "CoreML8".to_string();
    let block = proto::Block { inputs: Vec::new(), outputs: vec!["y".to_string()], operations };
    let function = proto::Function { inputs, blocks: BTreeMap::from([(opset.clone(), block)]), opset };
    let functions = BTreeMap::from([("main".to_string(), function)]);
    let package = Package {
        folder: ".".into(),
        specification: 9,
        description: proto::ModelDescription::default(),
        program: proto::Program { version: 1, functions, attributes: BTreeMap::new() },
    };
    package.body(options).map_err(|error| error.to_string())
}

fn half(shape: &[u64]) -> proto::ValueType {
    ty(DType::Fp16, &shape.iter().map(|&extent| Some(extent)).collect::<Vec<_>>())
}

fn int32(extent: u64) -> proto::ValueType {
    ty(DType::Int32, &[Some(extent)])
}

fn refused(inputs: Vec<proto::NamedValueType>, operations: Vec<proto::Operation>) -> String {
    read(inputs, operations, &ReadOptions::default()).err().unwrap_or_default()
}

#[test]
fn shapes_that_the_program_computes_are_known_once_inputs_are_bound() {
    let rows = ty(DType::Fp16, &[Some(2), None, Some(16)]);
    let operations = || {
        vec![
            operation("shape", &[("x", &[name("x")])], &[port("extents", int32(3))]),
            operation(
                "slice_by_size",
                &[("x", &[name("extents")]), ("begin", &[ints(&[0])]), ("size", &[ints(&[2])])],
                &[port("outer", int32(2))],
            ),
            operation(
                "reduce_prod",
                &[("x", &[name("outer")]), ("axes", &[ints(&[0])]), ("keep_dims", &[flag(true)])],
                &[port("product", int32(1))],
            ),
            operation(
                "concat",
                &[("values", &[name("product"), ints(&[16])]), ("axis", &[int(0)]), ("interleave", &[flag(false)])],
                &[port("target", int32(2))],
            ),
            operation(
                "reshape",
                &[("x", &[name("x")]), ("shape", &[name("target")])],
                &[port("y", ty(DType::Fp16, &[None, Some(16)]))],
            ),
        ]
    };
    for extent in [1usize, 5, 9] {
        let shapes = BTreeMap::from([("x".to_string(), vec![2, extent, 16])]);
        let body = read(vec![port("x", rows.clone())], operations(), &ReadOptions { shapes, ..ReadOptions::default() });
        let body = body.unwrap_or_else(|error| panic!("{error}"));
        let ops: Vec<_> = body.operations.iter().map(|operation| operation.op.name).collect();
        assert_eq!(ops, ["reshape"]);
        assert_eq!(body.ty(body.outputs[0].value).shape, [2 * extent, 16]);
    }
    let error = refused(vec![port("x", rows)], operations());
    assert!(error.contains("\"x\"") && error.contains("give it a shape"), "{error}");
}

#[test]
fn control_flow_is_refused_with_what_to_do() {
    for op in ["while_loop", "cond", "relu"] {
        let mut held = operation(op, &[("x", &[name("x")])], &[port("y", half(&[2]))]);
        held.blocks.push(proto::Block::default());
        let error = refused(vec![port("x", half(&[2]))], vec![held]);
        assert!(error.contains(op) && error.contains("\"y\"") && error.contains("unroll"), "{error}");
    }
}

#[test]
fn operators_without_a_record_are_named_with_their_place() {
    for (op, word) in [("made_up", "not known"), ("lstm", "unrolled")] {
        let unknown = operation(op, &[("x", &[name("x")])], &[port("y", half(&[2]))]);
        let error = refused(vec![port("x", half(&[2]))], vec![unknown]);
        assert!(error.contains(op) && error.contains("operation 0") && error.contains(word), "{error}");
    }
}

#[test]
fn an_update_gives_what_it_wrote_and_states_are_used_as_states_only() {
    let inputs = || vec![port("x", half(&[2])), port("sum", state(half(&[2])))];
    let options = ReadOptions::default();
    let update =
        |op: &str, to: &str, data: &str, ty| operation(op, &[("state", &[name(to)]), ("value", &[name(data)])], &[port("y", ty)]);
    let body = read(inputs(), vec![update("coreml_update_state", "sum", "x", half(&[2]))], &options);
    let body = body.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(body.states[0].result, body.inputs[0]);
    assert_eq!(body.outputs[0].value, body.inputs[0]);

    let refuse = |operation: proto::Operation, words: &[&str]| {
        let error = refused(inputs(), vec![operation]);
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    };
    refuse(update("coreml_update_state", "x", "x", half(&[2])), &["\"x\""]);
    refuse(update("coreml_update_state", "sum", "sum", half(&[2])), &["\"sum\""]);
    refuse(update("coreml_update_state", "sum", "x", half(&[3])), &["declared", "[3]"]);
    refuse(update("write_state", "sum", "x", half(&[2])), &["\"input\""]);
    refuse(operation("relu", &[("x", &[name("sum")])], &[port("y", half(&[2]))]), &["\"sum\""]);
    refuse(operation("read_state", &[("input", &[name("sum")])], &[]), &["results are declared"]);
    let mut wide = inputs();
    wide[0] = port("x", half(&[3]));
    let error = refused(wide, vec![update("coreml_update_state", "sum", "x", half(&[3]))]);
    assert!(error.contains("\"sum\"") && error.contains("[3]"), "{error}");
    let twice = vec![port("sum", half(&[2])), port("sum", state(half(&[2])))];
    assert!(refused(twice, Vec::new()).contains("taken"));
}
