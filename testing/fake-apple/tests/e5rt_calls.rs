//! The order of calls that works on a Mac works here, and computes.
#![allow(clippy::unwrap_used)]

mod through_e5rt;

use serde_json::json;
use through_e5rt::{Buffer, Handle, How, Operation, Source, Stream, assert_clean, compile, counters, set};

const ADD: &str = "tensor<fp16, [1, 4]> a, tensor<fp16, [1, 4]> b) {
    tensor<fp16, [1, 4]> sum = add(x = a, y = b)[name = string(\"sum\")];
    tensor<fp16, [1, 4]> y = relu(x = sum)[name = string(\"y\")];
} -> (y";

/// Compiles and loads `main`.
fn loaded(source: &Source) -> (Handle, Operation) {
    let library = compile(&source.path(), &source.folder.join("cache"), &How::default()).unwrap();
    let operation = Operation::new(library, "main").unwrap();
    (library, operation)
}

#[test]
fn a_program_is_compiled_loaded_bound_and_executed() {
    let source = Source::main(ADD);
    let (library, operation) = loaded(&source);
    let [a, b, y] = [(); 3].map(|()| Buffer::new(64));
    operation.bind(false, "a", &a);
    operation.bind(false, "b", &b);
    operation.bind(true, "y", &y);
    a.write(&[1.0, -2.0, 3.5, 100.0]);
    b.write(&[0.5, 1.0, -3.0, 0.25]);
    let stream = Stream::of(&[&operation]);
    for _ in 0..2 {
        assert_eq!(stream.execute(), 0);
        assert_eq!(y.read(4), [1.5, 0.0, 0.5, 100.25]);
    }
    a.write(&[-1.0; 4]);
    assert_eq!(stream.execute(), 0);
    assert_eq!(y.read(4), [0.0; 4]);
    let counted = counters();
    assert_eq!([&counted["compiles"], &counted["executions"], &counted["most_in_flight"]], [&json!(1), &json!(3), &json!(1)]);
    assert_eq!(counted["loaded_programs"], 1);
    stream.release();
    [a, b, y].into_iter().for_each(Buffer::release);
    operation.release();
    release!(e5rt_program_library_release, library);
    assert_clean();
}

#[test]
fn an_output_may_stand_where_an_input_stands() {
    let source = Source::main(
        "tensor<fp16, [1, 4]> s, tensor<fp16, [1, 4]> x) {
            tensor<fp16, [1, 4]> next = add(x = s, y = x)[name = string(\"next\")];
            tensor<fp16, [1, 4]> y = mul(x = next, y = x)[name = string(\"y\")];
        } -> (next, y",
    );
    let (library, operation) = loaded(&source);
    let [state, x, y] = [(); 3].map(|()| Buffer::new(64));
    operation.bind(false, "s", &state);
    operation.bind(true, "next", &state);
    operation.bind(false, "x", &x);
    operation.bind(true, "y", &y);
    state.write(&[0.0; 4]);
    x.write(&[2.0; 4]);
    let stream = Stream::of(&[&operation]);
    for step in 1..=4u8 {
        assert_eq!(stream.execute(), 0);
        assert_eq!((state.read(4), y.read(4)), (vec![2.0 * f32::from(step); 4], vec![4.0 * f32::from(step); 4]));
    }
    stream.release();
    [state, x, y].into_iter().for_each(Buffer::release);
    operation.release();
    release!(e5rt_program_library_release, library);
    assert_clean();
}

#[test]
fn operations_of_a_stream_run_in_order_on_shared_buffers() {
    let double = "tensor<fp16, [1, 4]> x) { tensor<fp16, [1, 4]> y = add(x = x, y = x)[name = string(\"y\")]; } -> (y";
    let source = Source::main(double);
    let library = compile(&source.path(), &source.folder.join("cache"), &How::default()).unwrap();
    let chain: Vec<Operation> = (0..3).map(|_| Operation::new(library, "main").unwrap()).collect();
    let buffers: Vec<Buffer> = (0..4).map(|_| Buffer::new(64)).collect();
    for (index, operation) in chain.iter().enumerate() {
        operation.bind(false, "x", &buffers[index]);
        operation.bind(true, "y", &buffers[index + 1]);
    }
    buffers[0].write(&[1.0, 2.0, 3.0, 4.0]);
    let stream = Stream::of(&chain.iter().collect::<Vec<_>>());
    assert_eq!(stream.execute(), 0);
    assert_eq!(buffers[3].read(4), [8.0, 16.0, 24.0, 32.0]);
    assert_eq!(counters()["loaded_programs"], 3);
    stream.release();
    buffers.into_iter().for_each(Buffer::release);
    chain.into_iter().for_each(Operation::release);
    release!(e5rt_program_library_release, library);
    assert_clean();
}

#[test]
fn functions_of_one_program_are_found_by_name() {
    let function = |name: &str, op: &str| {
        format!(
            "func {name}<ios18>(tensor<fp16, [1, 4]> x) {{
                tensor<fp16, [1, 4]> y = {op}(x = x, y = x)[name = string(\"y\")];
            }} -> (y);"
        )
    };
    let source = Source::new(&format!("program(1.3)\n{{\n{}\n{}\n}}\n", function("twice", "add"), function("squared", "mul")));
    let library = compile(&source.path(), &source.folder.join("cache"), &How::default()).unwrap();
    let mut count = 0u64;
    let place: *mut u64 = &mut count;
    assert_eq!(call!(e5rt_program_library_get_num_functions(library => Handle, place => *mut u64)), 0);
    assert_eq!(count, 2);
    for (name, expected) in [("twice", 6.0), ("squared", 9.0)] {
        let operation = Operation::new(library, name).unwrap();
        let [x, y] = [(); 2].map(|()| Buffer::new(64));
        operation.bind(false, "x", &x);
        operation.bind(true, "y", &y);
        x.write(&[3.0; 4]);
        let stream = Stream::of(&[&operation]);
        assert_eq!(stream.execute(), 0);
        assert_eq!(y.read(4), [expected; 4]);
        stream.release();
        [x, y].into_iter().for_each(Buffer::release);
        operation.release();
    }
    release!(e5rt_program_library_release, library);
    assert_clean();
}

#[test]
fn a_program_that_executes_nothing_leaves_its_outputs_alone() {
    set(json!({"noop": true}));
    let source = Source::main(ADD);
    let (library, operation) = loaded(&source);
    let [a, b, y] = [(); 3].map(|()| Buffer::new(64));
    operation.bind(false, "a", &a);
    operation.bind(false, "b", &b);
    operation.bind(true, "y", &y);
    y.write(&[7.0; 4]);
    let stream = Stream::of(&[&operation]);
    let before = counters()["own_time_ns"].as_u64().unwrap();
    assert_eq!(stream.execute(), 0);
    assert_eq!(y.read(4), [7.0; 4]);
    assert!(counters()["own_time_ns"].as_u64().unwrap() > before);
    stream.release();
    [a, b, y].into_iter().for_each(Buffer::release);
    operation.release();
    release!(e5rt_program_library_release, library);
    assert_clean();
}
