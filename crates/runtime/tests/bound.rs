//! Executables with buffers bound to their ports, on every device that computes.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::{DType, HostArray};
use aneforge_runtime::{Bound, Buffer, DeviceError, Executable, open};
use common::program;
use std::sync::Arc;

const DEVICES: [&str; 3] = ["reference", "cpu", "emulator:m1"];
const ADD: &str = r#"tensor<fp16, [1, 8]> y = add(x = x, y = s)[name = string("y")];"#;
const INPUTS: &str = "tensor<fp16, [1, 8]> x, tensor<fp16, [1, 8]> s";

fn halves(values: [f32; 8]) -> Vec<u8> {
    HostArray::from_array(&aneforge_mil::Array::new(DType::Fp16, [1, 8], values.map(f64::from).to_vec())).unwrap().bytes().to_vec()
}

fn loaded(device: &str, statements: &str, inputs: &str, outputs: &str) -> Arc<dyn Executable> {
    open(device).unwrap().load(&program(inputs, statements, outputs)).unwrap()
}

fn contents(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    buffer.read(0, &mut bytes).unwrap();
    bytes
}

fn bind(executable: &Arc<dyn Executable>) -> Box<dyn Bound> {
    executable.bind().unwrap()
}

#[test]
fn an_output_bound_to_its_own_input_accumulates() {
    for device in DEVICES {
        let mut bound = bind(&loaded(device, ADD, INPUTS, "y"));
        bound.input(0).unwrap().write(0, &halves([1.0; 8])).unwrap();
        let result = bound.output(0).unwrap().clone();
        bound.set_input(1, result.clone()).unwrap();
        for count in 1..=4 {
            bound.execute().unwrap();
            assert_eq!(contents(&result), halves([count as f32; 8]), "{device}");
        }
    }
}

#[test]
fn programs_share_buffers_and_one_buffer_may_stand_at_two_inputs() {
    for device in DEVICES {
        let mut first = bind(&loaded(device, ADD, INPUTS, "y"));
        let negate = r#"tensor<fp16, [1, 8]> y = mul(x = x, y = fp16(-0x1p+1))[name = string("y")];"#;
        let mut second = bind(&loaded(device, negate, "tensor<fp16, [1, 8]> x", "y"));
        let both = first.input(0).unwrap().clone();
        first.set_input(1, both.clone()).unwrap();
        second.set_input(0, first.output(0).unwrap().clone()).unwrap();
        second.set_output(0, both.clone()).unwrap();
        both.write(0, &halves([1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 0.0, 8.0])).unwrap();
        for _ in 0..2 {
            first.execute().unwrap();
            second.execute().unwrap();
        }
        // Each round multiplies by -4.
        assert_eq!(contents(&both), halves([16.0, 32.0, 48.0, 64.0, -16.0, 8.0, 0.0, 128.0]), "{device}");
    }
}

#[test]
fn bindings_of_one_executable_have_buffers_of_their_own() {
    let executable = loaded("cpu", ADD, INPUTS, "y");
    let (mut one, mut other) = (bind(&executable), bind(&executable));
    one.input(0).unwrap().write(0, &halves([3.0; 8])).unwrap();
    one.execute().unwrap();
    other.execute().unwrap();
    assert_eq!(contents(one.output(0).unwrap()), halves([3.0; 8]));
    assert_eq!(contents(other.output(0).unwrap()), halves([0.0; 8]));
}

#[test]
fn what_cannot_be_bound_is_refused_and_the_port_keeps_its_buffer() {
    let two = r#"tensor<fp16, [1, 8]> y = relu(x = x)[name = string("y")];
        tensor<fp16, [1, 8]> z = abs(x = x)[name = string("z")];"#;
    let mut bound = bind(&loaded("cpu", two, "tensor<fp16, [1, 8]> x", "y, z"));
    let shared = bound.output(0).unwrap().clone();
    let error = bound.set_output(1, shared).unwrap_err();
    assert!(matches!(&error, DeviceError::Binding { port, .. } if port == "z") && error.to_string().contains("\"y\""), "{error}");
    let error = bound.set_input(0, Buffer::host(15).unwrap()).unwrap_err();
    assert!(matches!(error, DeviceError::PortLength { bytes: 16, got: 15, .. }), "{error}");
    let error = bound.set_input(1, Buffer::host(16).unwrap()).unwrap_err();
    assert!(matches!(error, DeviceError::PortIndex { kind: "inputs", index: 1, count: 1 }), "{error}");
    assert!(bound.output(2).is_err());
    bound.set_input(0, Buffer::host(64).unwrap()).unwrap();
    bound.execute().unwrap();
}

#[test]
fn submitted_work_runs_in_order_and_a_completion_that_panics_keeps_nobody_waiting() {
    let executable = loaded("cpu", ADD, INPUTS, "y");
    let (sender, results) = std::sync::mpsc::channel();
    for round in 0..4 {
        let bound = bind(&executable);
        bound.input(0).unwrap().write(0, &halves([round as f32; 8])).unwrap();
        let sender = sender.clone();
        let completion = Box::new(move |bound: Box<dyn Bound>, result: Result<(), DeviceError>| {
            result.unwrap();
            sender.send(contents(bound.output(0).unwrap())).unwrap();
            assert!(round != 1, "a completion of the test panics");
        });
        aneforge_runtime::submit(bound, completion).unwrap();
    }
    for round in 0..4 {
        let result = results.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        assert_eq!(result, halves([round as f32; 8]));
    }
}
