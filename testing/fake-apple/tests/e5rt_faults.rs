//! Every failure that can be injected behind e5rt: it is reported once, and what follows works.
#![allow(clippy::unwrap_used)]

mod through_e5rt;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use through_e5rt::{DOUBLE, Handle, How, Operation, Ready, Source, assert_clean, compile, control, counters, diagnostics, set};

fn fault(fields: Value) {
    set(json!({"faults": [fields]}));
}

/// Compiles the usual program.
fn attempt(source: &Source, how: &How<'_>) -> Result<(), i64> {
    compile(&source.path(), &source.folder.join("cache"), how).map(|library| release!(e5rt_program_library_release, library))
}

#[test]
fn a_compile_fails_with_every_text_that_is_known_and_then_works() {
    let source = Source::main(DOUBLE);
    for text in [
        "ANECCompile() FAILED: err=()",
        "ANECCompile() FAILED: err=(InvalidMILProgram)",
        "ANECCompile() FAILED: err=(CompilationFailure)",
        "Some ops are not supported on any of the specified backends",
    ] {
        fault(json!({"kind": "compile", "text": text, "code": 11}));
        assert_eq!(attempt(&source, &How::default()), Err(11), "{text}");
        assert_eq!(attempt(&source, &How::default()), Ok(()), "{text}");
    }
    assert_clean();
}

#[test]
fn text_that_is_no_program_or_names_a_missing_file_is_refused_with_code_11() {
    let missing = "tensor<fp16, [1, 4]> x) {
        tensor<fp16, [1, 4]> w = const()[name = string(\"w\"), val = tensor<fp16, [1, 4]>(BLOBFILE(path = string(\"@model_path/w.bin\"), offset = uint64(64)))];
        tensor<fp16, [1, 4]> y = add(x = x, y = w)[name = string(\"y\")];
    } -> (y";
    let dead = "tensor<fp16, [1, 4]> x) { tensor<fp16, [1, 4]> y = relu(x = x)[name = string(\"y\")]; } -> (z";
    let symbolic = "tensor<fp16, [1, ?]> x) { tensor<fp16, [1, ?]> y = relu(x = x)[name = string(\"y\")]; } -> (y";
    for body in [missing, dead, symbolic] {
        assert_eq!(attempt(&Source::main(body), &How::default()), Err(11));
        assert!(diagnostics().contains("InvalidMILProgram"));
    }
    let source = Source::main(DOUBLE);
    std::fs::remove_file(source.path()).unwrap();
    assert_eq!(attempt(&source, &How::default()), Err(11));
    assert_clean();
}

#[test]
fn a_load_fails_once_and_then_works() {
    let source = Source::main(DOUBLE);
    let library = compile(&source.path(), &source.folder.join("cache"), &How::default()).unwrap();
    fault(json!({"kind": "load"}));
    assert_eq!(Operation::new(library, "main").err(), Some(9101));
    Operation::new(library, "main").unwrap().release();
    release!(e5rt_program_library_release, library);
    assert_clean();
}

#[test]
fn a_process_holds_so_many_programs_and_no_more() {
    set(json!({"limits": {"programs": 5}}));
    let source = Source::main(DOUBLE);
    let library = compile(&source.path(), &source.folder.join("cache"), &How::default()).unwrap();
    let mut loaded: Vec<Operation> = (0..5).map(|_| Operation::new(library, "main").unwrap()).collect();
    assert_eq!(Operation::new(library, "main").err(), Some(9101));
    assert!(diagnostics().contains("GetANEFModel: must re-compile"));
    loaded.pop().unwrap().release();
    loaded.push(Operation::new(library, "main").unwrap());
    assert_eq!(counters()["loaded_programs"], 5);
    loaded.into_iter().for_each(Operation::release);
    release!(e5rt_program_library_release, library);
    fault(json!({"kind": "out-of-programs"}));
    let library = compile(&source.path(), &source.folder.join("cache"), &How::default()).unwrap();
    assert_eq!(Operation::new(library, "main").err(), Some(9101));
    release!(e5rt_program_library_release, library);
    assert_clean();
}

#[test]
fn what_was_loaded_goes_with_the_daemon_or_its_connection() {
    for kind in ["daemon-restart", "connection"] {
        let ready = Ready::double();
        assert!(ready.computes());
        fault(json!({"kind": kind, "after": 1}));
        assert!(ready.computes(), "{kind}");
        // From here on the program is gone, until it is loaded again.
        assert_eq!((ready.stream.execute(), ready.stream.execute()), (9102, 9102), "{kind}");
        assert_eq!(counters()["loaded_programs"], 0);
        let again = Ready::double();
        assert!(again.computes(), "{kind}");
        assert_eq!(counters()["loaded_programs"], 1);
        ready.release();
        assert!(again.computes(), "{kind}");
        assert_eq!(counters()["loaded_programs"], 1);
        again.release();
        assert_clean();
    }
}

#[test]
fn an_execution_fails_once_and_leaves_the_outputs_alone() {
    let ready = Ready::double();
    fault(json!({"kind": "evaluate"}));
    assert_eq!(ready.stream.execute(), 9102);
    assert!(diagnostics().contains("status=0x1d"));
    assert_eq!(ready.outputs[0].read(4), [0.0; 4]);
    assert!(ready.computes());
    ready.release();
    assert_clean();
}

#[test]
fn slow_compiles_and_executions_take_their_time() {
    let source = Source::main(DOUBLE);
    fault(json!({"kind": "slow-compile", "ms": 60}));
    let started = Instant::now();
    assert_eq!(attempt(&source, &How::default()), Ok(()));
    assert!(started.elapsed() >= Duration::from_millis(60));
    let ready = Ready::double();
    set(json!({"delay_ms": 30}));
    let started = Instant::now();
    assert!(ready.computes());
    assert!(started.elapsed() >= Duration::from_millis(30));
    ready.release();
    assert_clean();
}

#[test]
fn compiles_after_a_failed_one_are_unreliable_where_that_is_asked_for() {
    let source = Source::main(DOUBLE);
    set(json!({"unreliable_ms": 200, "faults": [{"kind": "compile"}]}));
    assert_eq!(attempt(&source, &How::default()), Err(11));
    assert_eq!(attempt(&source, &How::default()), Err(11));
    assert!(diagnostics().contains("CompilationFailure"));
    std::thread::sleep(Duration::from_millis(220));
    assert_eq!(attempt(&source, &How::default()), Ok(()));
    assert_clean();
}

#[test]
fn a_bundle_is_found_again_until_something_changes() {
    let source = Source::main(DOUBLE);
    let cached = How { cached: true, custom: None };
    let counted = |how: &How<'_>| {
        control(&json!({"reset": true}));
        assert_eq!(attempt(&source, how), Ok(()));
        let counted = counters();
        (counted["compiles"].as_u64().unwrap(), counted["cache_hits"].as_u64().unwrap())
    };
    assert_eq!(counted(&cached), (1, 0));
    assert_eq!(counted(&cached), (0, 1));
    assert_eq!(counted(&How::default()), (1, 0), "forced");
    std::fs::write(source.path(), std::fs::read_to_string(source.path()).unwrap().replace("add(", "mul(")).unwrap();
    assert_eq!(counted(&cached), (1, 0), "another text");
    assert_eq!(counted(&cached), (0, 1));
    set(json!({"os_build": "26A1"}));
    assert_eq!(attempt(&source, &cached), Ok(()));
    assert_eq!(counters()["compiles"], 1, "another build of the system");
    assert_clean();
}

#[test]
fn a_bundle_opens_in_the_process_that_compiled_it() {
    let source = Source::main(DOUBLE);
    assert_eq!(attempt(&source, &How::default()), Ok(()));
    let bundles = source.folder.join("cache/com.apple.e5rt.e5bundlecache");
    let build = std::fs::read_dir(bundles).unwrap().next().unwrap().unwrap().path();
    let bundle = std::fs::read_dir(build).unwrap().next().unwrap().unwrap().path();
    let path = through_e5rt::c(&bundle);
    let library = create!(e5rt_program_library_create(path.as_ptr() => *const i8)).unwrap();
    Operation::new(library, "main").unwrap().release();
    release!(e5rt_program_library_release, library);
    // A bundle of another process: the same files in another place.
    let other = source.folder.join("other");
    std::fs::create_dir_all(&other).unwrap();
    for file in std::fs::read_dir(&bundle).unwrap() {
        let file = file.unwrap().path();
        std::fs::copy(&file, other.join(file.file_name().unwrap())).unwrap();
    }
    let path = through_e5rt::c(&other);
    let library = create!(e5rt_program_library_create(path.as_ptr() => *const i8)).unwrap();
    assert_eq!(Operation::new(library, "main").err(), Some(9101));
    assert!(diagnostics().contains("Must re-compile the E5 bundle"));
    release!(e5rt_program_library_release, library);
    let nothing = through_e5rt::c(source.folder.join("nothing"));
    assert!(create!(e5rt_program_library_create(nothing.as_ptr() => *const i8)).is_err());
    assert!(diagnostics().contains("Invalid E5 path specified. @ GetE5PathFromCompositeBundle"));
    assert_clean();
}

#[test]
fn a_program_for_another_architecture_compiles_and_does_not_load() {
    set(json!({"chip": "m1"}));
    let source = Source::main(DOUBLE);
    let load = |custom: &str| {
        let how = How { cached: false, custom: Some(custom) };
        let library = compile(&source.path(), &source.folder.join("cache"), &how).unwrap();
        let loaded = Operation::new(library, "main").map(Operation::release);
        release!(e5rt_program_library_release, library);
        loaded.is_ok()
    };
    assert!(!load("TargetArchitecture=h16"));
    assert!(load("TargetArchitecture=h13"));
    // A name that the compiler does not know counts as none.
    assert!(load("TargetArchitecture=h99"));
    // It is the other chip's limits that count.
    let wide =
        Source::main("tensor<fp16, [1, 20000]> x) { tensor<fp16, [1, 20000]> y = relu(x = x)[name = string(\"y\")]; } -> (y");
    assert_eq!(attempt(&wide, &How { cached: false, custom: Some("TargetArchitecture=h16") }), Ok(()));
    assert_eq!(attempt(&wide, &How::default()), Err(11));
    assert_clean();
}

#[test]
fn commands_of_several_threads_are_counted_and_run_one_after_the_other() {
    set(json!({"delay_ms": 50}));
    let ready: Vec<Ready> = (0..3).map(|_| Ready::double()).collect();
    let streams: Vec<usize> = ready.iter().map(|one| one.stream.0 as usize).collect();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for stream in streams {
            scope.spawn(move || assert_eq!(call!(e5rt_execution_stream_execute_sync(stream as Handle => Handle)), 0));
        }
    });
    assert!(started.elapsed() >= Duration::from_millis(150));
    assert!(counters()["most_in_flight"].as_u64().unwrap() >= 2);
    ready.into_iter().for_each(Ready::release);
    assert_clean();
}
