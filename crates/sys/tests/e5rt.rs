//! The whole sequence of the Espresso runtime, against the fake.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Arc;

use aneforge_sys::SysError;
use aneforge_sys::e5rt::{
    Buffer, BufferKind, Compiler, Config, Event, Library, Operation, OperationOptions, Options, Runtime, Stream,
};
use aneforge_testkit::fake;
use serde_json::json;

use common::{BYTES, RELU, alternating, bytes, rectified, write_program};

fn compile(runtime: &Arc<Runtime>, folder: &Path, text: &str) -> Result<Library, SysError> {
    let program = write_program(folder, text);
    let mut compiler = Compiler::new(&Config::new(runtime, &folder.join("cache"))?)?;
    let mut options = Options::new(runtime)?;
    options.set_devices(Options::ENGINE)?;
    options.set_force_recompilation(true)?;
    options.set_segmenter("graph")?;
    compiler.compile(&program, &options)
}

fn operation(library: &Library) -> Result<Operation, SysError> {
    let mut options = OperationOptions::new(library.function("main")?)?;
    options.set_name("main")?;
    options.set_allocate_intermediate_buffers(true)?;
    Operation::new(options)
}

fn bound(runtime: &Arc<Runtime>, operation: &Operation) -> (Buffer, Buffer) {
    let (input, output) = (allocate(runtime), allocate(runtime));
    operation.input_port("x").unwrap().bind(&input).unwrap();
    operation.output_port("y").unwrap().bind(&output).unwrap();
    (input, output)
}

fn allocate(runtime: &Arc<Runtime>) -> Buffer {
    Buffer::allocate(runtime, BYTES, BufferKind::Host).unwrap()
}

#[test]
fn a_program_compiles_runs_and_gives_everything_back() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = common::frameworks().e5rt().unwrap();
    let library = compile(&runtime, folder.path(), RELU).unwrap();
    assert_eq!(library.function_names(), Ok(vec!["main".to_string()]));
    let mut operation = operation(&library).unwrap();
    drop(library);
    let (input, output) = bound(&runtime, &operation);
    assert_eq!(input.memory().as_ptr() as usize % 64, 0);
    assert_eq!(output.reported_size(), Ok(BYTES as u64));
    assert!(bytes(output.memory()).iter().all(|byte| *byte == 0));
    let mut stream = Stream::new(&runtime).unwrap();
    stream.set_quality_of_service(21).unwrap();
    stream.set_priority(5).unwrap();
    stream.encode(&mut operation).unwrap();
    // The stream keeps what it runs.
    drop(operation);
    for _ in 0..3 {
        input.memory().write(0, &alternating()).unwrap();
        output.memory().clear().unwrap();
        stream.execute().unwrap();
        assert_eq!(bytes(output.memory()), rectified());
    }
    drop((stream, input));
    // A view of the memory keeps the buffer.
    let memory = output.memory().clone();
    drop(output);
    assert_eq!(bytes(&memory), rectified());
    drop(memory);
    fake::assert_clean();
}

#[test]
fn objects_may_be_dropped_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = common::frameworks().e5rt().unwrap();
    let library = compile(&runtime, folder.path(), RELU).unwrap();
    let mut operation = operation(&library).unwrap();
    let port = operation.input_port("x").unwrap();
    let (input, output) = bound(&runtime, &operation);
    let mut stream = Stream::new(&runtime).unwrap();
    stream.encode(&mut operation).unwrap();
    drop((library, input));
    stream.execute().unwrap();
    drop((operation, stream, output));
    assert!(port.buffer().is_some());
    drop(port);
    fake::assert_clean();
}

#[test]
fn one_buffer_on_output_and_input_keeps_state_between_steps() {
    // Each step adds one to every element.
    let text = RELU.replace("relu(x = x)", "add(x = x, y = fp16(0x1p+0))");
    let folder = tempfile::tempdir().unwrap();
    let runtime = common::frameworks().e5rt().unwrap();
    let mut operation = operation(&compile(&runtime, folder.path(), &text).unwrap()).unwrap();
    let state = allocate(&runtime);
    operation.input_port("x").unwrap().bind(&state).unwrap();
    operation.output_port("y").unwrap().bind(&state).unwrap();
    let mut stream = Stream::new(&runtime).unwrap();
    stream.encode(&mut operation).unwrap();
    // fp16 of 1, 2 and 3.
    for expected in [0x3c00u16, 0x4000, 0x4200] {
        stream.execute().unwrap();
        assert!(bytes(state.memory()).chunks(2).all(|element| element == expected.to_le_bytes()));
    }
    drop((stream, operation, state));
    fake::assert_clean();
}

#[test]
fn bindings_change_only_after_reset_and_before_the_next_encoding() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = common::frameworks().e5rt().unwrap();
    let mut operation = operation(&compile(&runtime, folder.path(), RELU).unwrap()).unwrap();
    let (input, _output) = bound(&runtime, &operation);
    let (mut stream, mut second) = (Stream::new(&runtime).unwrap(), Stream::new(&runtime).unwrap());
    stream.encode(&mut operation).unwrap();
    input.memory().write(0, &alternating()).unwrap();
    stream.execute().unwrap();
    let output = allocate(&runtime);
    let port = operation.output_port("y").unwrap();
    let order = |result: Result<(), SysError>| assert!(matches!(result, Err(SysError::Order { .. })), "{result:?}");
    order(port.bind(&output));
    order(operation.prepare());
    order(second.encode(&mut operation));
    stream.reset().unwrap();
    operation.prepare().unwrap();
    port.bind(&output).unwrap();
    stream.encode(&mut operation).unwrap();
    stream.execute().unwrap();
    assert_eq!(bytes(output.memory()), rectified());
    // A dropped stream lets its operations go too.
    drop(stream);
    operation.prepare().unwrap();
    second.encode(&mut operation).unwrap();
    second.execute().unwrap();
    drop((operation, port, second, input, _output, output));
    fake::assert_clean();
}

#[test]
fn a_submission_ends_with_its_event_and_keeps_copies_out_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    fake::set(json!({ "delay_ms": 100 }));
    let runtime = common::frameworks().e5rt().unwrap();
    let mut operation = operation(&compile(&runtime, folder.path(), RELU).unwrap()).unwrap();
    let (input, output) = bound(&runtime, &operation);
    let mut stream = Stream::new(&runtime).unwrap();
    let event = Event::new(&runtime, "op0_complete", 0).unwrap();
    operation.bind_completion_event(&event).unwrap();
    assert!(matches!(operation.bind_completion_event(&event), Err(SysError::Order { .. })));
    assert!(matches!(event.signal(), Err(SysError::Order { .. })));
    stream.encode(&mut operation).unwrap();
    input.memory().write(0, &alternating()).unwrap();
    for _ in 0..2 {
        output.memory().clear().unwrap();
        stream.submit().unwrap();
        assert!(matches!(stream.execute(), Err(SysError::Order { .. })));
        let memory = output.memory().clone();
        let reader = std::thread::spawn(move || bytes(&memory));
        stream.wait().unwrap();
        assert_eq!(reader.join().unwrap(), rectified());
    }
    stream.submit().unwrap();
    let started = std::time::Instant::now();
    while !stream.poll().unwrap() {
        assert!(started.elapsed().as_secs() < 10);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(event.last_signaled(), Ok(3));
    // The fake's own thread lets go of the program a moment after it has signalled.
    std::thread::sleep(std::time::Duration::from_millis(50));
    drop((stream, operation, input, output, event));
    fake::assert_clean();
}

#[test]
fn a_submission_without_an_event_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = common::frameworks().e5rt().unwrap();
    let mut operation = operation(&compile(&runtime, folder.path(), RELU).unwrap()).unwrap();
    let buffers = bound(&runtime, &operation);
    let mut stream = Stream::new(&runtime).unwrap();
    stream.encode(&mut operation).unwrap();
    assert!(matches!(stream.submit(), Err(SysError::Order { .. })));
    assert_eq!(stream.poll(), Ok(true));
    stream.execute().unwrap();
    drop((stream, operation, buffers));
    fake::assert_clean();
}

#[test]
fn refusals_name_the_function_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = common::frameworks().e5rt().unwrap();
    let broken = compile(&runtime, folder.path(), "program(1.3) { nonsense").err().unwrap();
    assert!(matches!(broken, SysError::Code { function: "e5rt_e5_compiler_compile", code } if code != 0), "{broken}");
    let library = compile(&runtime, folder.path(), RELU).unwrap();
    let faults = json!([{ "kind": "load" }, { "kind": "evaluate" }]);
    fake::set(json!({ "faults": faults }));
    let refused = operation(&library).err().unwrap();
    assert!(matches!(refused, SysError::Code { .. }), "{refused}");
    // The next try loads, and its first execution fails.
    let mut operation = operation(&library).unwrap();
    let (input, output) = bound(&runtime, &operation);
    let mut stream = Stream::new(&runtime).unwrap();
    stream.encode(&mut operation).unwrap();
    let failed = stream.execute().unwrap_err();
    assert!(matches!(failed, SysError::Code { function: "e5rt_execution_stream_execute_sync", .. }), "{failed}");
    // Buffers are not locked for ever, and the stream runs again.
    input.memory().write(0, &alternating()).unwrap();
    stream.execute().unwrap();
    assert_eq!(bytes(output.memory()), rectified());
    drop((stream, operation, input, output, library));
    fake::assert_clean();
}

#[test]
fn programs_that_share_a_buffer_never_run_into_each_others_copies() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = common::frameworks().e5rt().unwrap();
    let library = compile(&runtime, folder.path(), RELU).unwrap();
    let shared = allocate(&runtime);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (library, shared, runtime) = (&library, &shared, &runtime);
            scope.spawn(move || {
                let mut operation = operation(library).unwrap();
                operation.input_port("x").unwrap().bind(shared).unwrap();
                let output = allocate(runtime);
                operation.output_port("y").unwrap().bind(&output).unwrap();
                let mut stream = Stream::new(runtime).unwrap();
                stream.encode(&mut operation).unwrap();
                for _ in 0..10 {
                    shared.memory().write(0, &alternating()).unwrap();
                    stream.execute().unwrap();
                    assert_eq!(bytes(output.memory()), rectified());
                }
            });
        }
    });
    drop((library, shared));
    fake::assert_clean();
}
