//! Every failure that the fake can inject: the right error, nothing left behind, the device usable afterwards.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::HostArray;
use aneforge_runtime::ane::{Ane, AneError, AneOptions, AneRoute, KNOWN_FAILURES, Refusal, Source, Step};
use aneforge_runtime::{Device, DeviceError, Executable, Program};
use aneforge_testkit::fake;
use common::engine::{Engine, ROUTES, assert_clean, engine, engine_with, outputs};
use common::program;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn doubled() -> Arc<Program> {
    program("tensor<fp16, [1, 32]> x", r#"tensor<fp16, [1, 32]> y = mul(x = x, y = fp16(0x1p1))[name = string("y")];"#, "y")
}

fn array(value: f32) -> HostArray {
    HostArray::fp16_from_f32([1, 32], &[value; 32]).unwrap()
}

fn works(executable: &Arc<dyn Executable>) {
    assert_eq!(outputs(executable, &[array(3.0)])[0], array(6.0).bytes());
}

fn faults(list: Value) {
    fake::set(json!({ "faults": list }));
}

fn refusal(error: DeviceError) -> Refusal {
    match error {
        DeviceError::Ane(AneError::Refused(refusal)) => *refusal,
        other => panic!("{other}"),
    }
}

/// The device does all that it did before.
fn usable(engine: &Engine) {
    faults(json!([]));
    works(&engine.load(&doubled()));
    assert_clean();
}

#[test]
fn a_failed_compilation_says_what_the_framework_said_and_what_it_usually_means() {
    for route in ROUTES {
        let engine = engine(route, json!({}));
        for text in ["ANECCompile() FAILED: err=()", "InvalidMILProgram", "err=(CompilationFailure)"] {
            faults(json!([{ "kind": "compile", "text": text, "code": 1 }]));
            let refusal = refusal(engine.device.load(&doubled()).err().unwrap());
            assert_eq!((refusal.step, refusal.ops.as_slice()), (Step::Compile, ["mul"].as_slice()));
            if route == AneRoute::E5rt {
                // e5rt gives a number alone; its reasons go to the system's log.
                assert!(refusal.text.contains("e5rt_e5_compiler_compile") && refusal.code.is_some(), "{refusal}");
            } else {
                assert!(refusal.text.contains(text) && refusal.code == Some(1), "{refusal}");
                assert!(refusal.cause.is_some_and(|known| text.contains(known.text)), "{refusal}");
            }
            assert_clean();
        }
        usable(&engine);
    }
}

/// Every failure of the table of known ones, where it is said to happen.
#[test]
fn every_known_failure_is_told_with_its_cause() {
    let mut number = 1;
    for route in [AneRoute::InMemory, AneRoute::Client] {
        let engine = engine(route, json!({}));
        for known in KNOWN_FAILURES {
            let steps = match known.step {
                // The stand-in has no failure of binding to inject.
                "bind" => &[][..],
                "" => &["compile", "load", "execute"],
                step => &[step],
            };
            for &step in steps {
                // A program of its own: what is compiled is not compiled again.
                number += 1;
                let text = format!(r#"tensor<fp16, [1, 32]> y = mul(x = x, y = fp16({number}))[name = string("y")];"#);
                let program = program("tensor<fp16, [1, 32]> x", &text, "y");
                let kind = if step == "execute" { "evaluate" } else { step };
                let words = if known.text.is_empty() { "words of no meaning" } else { known.text };
                let fault = json!([{ "kind": kind, "text": words, "code": known.code.unwrap_or(1), "times": 10 }]);
                let error = if step == "execute" {
                    let (executable, three) = (engine.load(&program), array(3.0));
                    faults(fault);
                    executable.run(&[&three]).unwrap_err()
                } else {
                    faults(fault);
                    engine.device.load(&program).err().unwrap()
                };
                faults(json!([]));
                let refusal = refusal(error);
                assert_eq!(refusal.cause, Some(known), "{refusal}");
                assert!(refusal.to_string().contains(known.remedy) && refusal.text.contains(words), "{refusal}");
                assert_clean();
            }
        }
        usable(&engine);
    }
}

#[test]
fn only_the_program_that_failed_to_compile_waits() {
    for route in ROUTES {
        let options = AneOptions { route, back_off: Duration::from_millis(300), ..AneOptions::default() };
        let engine = engine_with(json!({}), options);
        let other = program("tensor<fp16, [1, 32]> x", r#"tensor<fp16, [1, 32]> y = relu(x = x)[name = string("y")];"#, "y");
        faults(json!([{ "kind": "compile", "text": "InvalidMILProgram" }]));
        assert!(engine.device.load(&doubled()).is_err());
        let start = Instant::now();
        let error = engine.device.load(&doubled()).err().unwrap();
        assert!(matches!(&error, DeviceError::Ane(AneError::BackOff { reason, .. }) if !reason.is_empty()), "{error}");
        engine.load(&other);
        std::thread::sleep(Duration::from_millis(300).saturating_sub(start.elapsed()));
        usable(&engine);
    }
}

#[test]
fn a_load_that_fails_once_succeeds_at_the_second_try() {
    for route in ROUTES {
        let engine = engine(route, json!({ "faults": [{ "kind": "load" }] }));
        let executable = engine.load(&doubled());
        works(&executable);
        assert_eq!(executable.report().engine.unwrap().stats.retried_loads, 1);
        drop(executable);
        usable(&engine);
    }
}

#[test]
fn a_load_that_keeps_failing_is_an_error() {
    for route in ROUTES {
        let engine = engine(route, json!({ "faults": [{ "kind": "load", "times": 10, "text": "must re-compile" }] }));
        let refusal = refusal(engine.device.load(&doubled()).err().unwrap());
        assert_eq!(refusal.step, Step::Load);
        assert_clean();
        usable(&engine);
    }
}

#[test]
fn more_programs_than_the_engine_takes_are_an_error_and_no_hang() {
    for route in ROUTES {
        let engine = engine(route, json!({ "faults": [{ "kind": "out-of-programs", "times": 10 }] }));
        assert_eq!(refusal(engine.device.load(&doubled()).err().unwrap()).step, Step::Load);
        usable(&engine);
    }
}

#[test]
fn the_budget_of_compilations_ends_with_an_error_that_says_so_and_other_routes_go_on() {
    // Earlier tests of this process may have used some.
    let before = engine(AneRoute::InMemory, json!({})).device.usage().compilations;
    let limit = before + 3;
    let options = AneOptions { route: AneRoute::InMemory, back_off: Duration::ZERO, compilations: limit, ..AneOptions::default() };
    let engine = engine_with(json!({}), options);
    let scaled = |factor: usize| {
        let text = format!(r#"tensor<fp16, [1, 32]> y = mul(x = x, y = fp16({factor}))[name = string("y")];"#);
        program("tensor<fp16, [1, 32]> x", &text, "y")
    };
    let loaded: Vec<_> = (2..10).map_while(|factor| engine.device.load(&scaled(factor)).ok()).collect();
    assert_eq!(loaded.len(), 3);
    let error = engine.device.load(&scaled(30)).err().unwrap();
    assert!(matches!(error, DeviceError::Ane(AneError::CompilationsSpent { limit: spent }) if spent == limit), "{error}");
    // What the cache holds needs none.
    drop(loaded);
    engine.load(&scaled(2));
    assert_clean();
    // The framework's own end of it, met in spite of our count.
    drop(engine);
    let engine = engine_with(
        json!({ "faults": [{ "kind": "budget" }] }),
        AneOptions { route: AneRoute::InMemory, back_off: Duration::ZERO, ..AneOptions::default() },
    );
    let refusal = refusal(engine.device.load(&scaled(31)).err().unwrap());
    assert!(refusal.cause.is_some_and(|known| known.cause.contains("119")), "{refusal}");
}

#[test]
fn a_lost_program_is_loaded_again_once_and_that_is_told() {
    for route in ROUTES {
        for kind in ["daemon-restart", "connection"] {
            let engine = engine(route, json!({}));
            let executable = engine.load(&doubled());
            works(&executable);
            faults(json!([{ "kind": kind }]));
            works(&executable);
            assert_eq!(executable.report().engine.unwrap().stats.reloads, 1, "{route:?} {kind}");
            works(&executable);
            drop(executable);
            usable(&engine);
        }
    }
}

#[test]
fn a_lost_program_with_states_is_an_error_and_works_at_the_next_call() {
    let text = "tensor<fp16, [1, 32]> before = read_state(input = sum);
     tensor<fp16, [1, 32]> after = add(x = before, y = x);
     write_state(input = sum, data = after);
     tensor<fp16, [1, 32]> y = mul(x = after, y = fp16(0x1p1));";
    for route in ROUTES {
        let engine = engine(route, json!({}));
        let executable = engine.load(&program("tensor<fp16, [1, 32]> x, state<tensor<fp16, [1, 32]>> sum", text, "y"));
        assert_eq!(outputs(&executable, &[array(1.0)])[0], array(2.0).bytes());
        faults(json!([{ "kind": "daemon-restart" }]));
        let one = array(1.0);
        assert_eq!(refusal(executable.run(&[&one]).unwrap_err()).step, Step::Execute);
        assert_eq!(outputs(&executable, &[array(1.0)])[0], array(4.0).bytes(), "the state stayed as it was");
        drop(executable);
        usable(&engine);
    }
}

#[test]
fn a_failed_execution_is_an_error_and_the_next_call_works() {
    let text = "ANEProgramProcessRequestDirect() Failed with status=0x1d : statusType=0x9: Program Inference error";
    for route in ROUTES {
        let engine = engine(route, json!({}));
        let executable = engine.load(&doubled());
        // e5rt gives a number that nobody knows the meaning of: its first failure is taken for a lost program.
        let times = if route == AneRoute::E5rt { 2 } else { 1 };
        faults(json!([{ "kind": "evaluate", "text": text, "code": 8, "times": times }]));
        let three = array(3.0);
        let refusal = refusal(executable.run(&[&three]).unwrap_err());
        assert_eq!((refusal.step, refusal.code), (Step::Execute, Some(8)));
        if route != AneRoute::E5rt {
            assert!(refusal.cause.is_some_and(|known| known.text == "status=0x1d"), "{refusal}");
        }
        works(&executable);
        drop(executable);
        usable(&engine);
    }
}

#[test]
fn outputs_that_are_listed_backwards_are_bound_by_name() {
    let two = r#"tensor<fp16, [1, 32]> y = mul(x = x, y = fp16(0x1p1))[name = string("y")];
        tensor<fp16, [1, 32]> z = mul(x = x, y = fp16(0x1p2))[name = string("z")];"#;
    for route in ROUTES {
        let engine = engine(route, json!({ "faults": [{ "kind": "output-order", "times": 100 }] }));
        let executable = engine.load(&program("tensor<fp16, [1, 32]> x", two, "y, z"));
        assert_eq!(outputs(&executable, &[array(1.0)]), [array(2.0).bytes(), array(4.0).bytes()]);
        drop(executable);
        usable(&engine);
    }
}

#[test]
fn a_slow_compilation_is_waited_for_and_others_run_meanwhile() {
    let engine = engine(AneRoute::E5rt, json!({}));
    let executable = engine.load(&doubled());
    faults(json!([{ "kind": "slow-compile", "ms": 400 }]));
    let slow = program("tensor<fp16, [1, 32]> x", r#"tensor<fp16, [1, 32]> y = relu(x = x)[name = string("y")];"#, "y");
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| engine.load(&slow));
        std::thread::sleep(Duration::from_millis(100));
        let start = Instant::now();
        works(&executable);
        assert!(start.elapsed() < Duration::from_millis(250), "a command waited for a compilation");
        loading.join().unwrap();
    });
}

/// Programs are checked for the chips of other machines with the compiler of this one; nothing of it is loaded or kept.
#[test]
fn a_text_is_compiled_for_another_architecture_and_not_loaded() {
    let engine = engine(AneRoute::E5rt, json!({}));
    let text = |statement: &str| {
        let text = format!(
            "program(1.3)\n{{\n    func main<ios18>(tensor<fp16, [1, 32]> x) {{\n        {statement}\n    }} -> (y);\n}}\n"
        );
        let path = engine.cache.path().join("model.mil");
        std::fs::write(&path, text).unwrap();
        path
    };
    let relu = text(r#"tensor<fp16, [1, 32]> y = relu(x = x)[name = string("y")];"#);
    for architecture in ["h13", "h16"] {
        engine.device.compile_for(&relu, architecture).unwrap_or_else(|error| panic!("{error}"));
    }
    let error = engine.device.compile_for(&text("tensor<fp16, [1, 32]> y = no_operator(x = x);"), "h16").unwrap_err();
    assert_eq!(refusal(error).step, Step::Compile);
    assert!(engine.device.compile_for(&engine.cache.path().join("none.mil"), "h16").is_err());
    assert_eq!(fake::counters()["loads"], 0);
    let left = std::fs::read_dir(engine.cache.path()).unwrap().count();
    assert_eq!(left, 1, "the text alone is left");
    usable(&engine);
}

#[test]
fn missing_symbols_and_classes_are_listed_with_the_build_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["e5rt_execution_stream_create", "e5rt_io_port_bind_buffer_object"];
    let library = fake::without_symbols(folder.path(), &names);
    let error = Ane::open(AneOptions { source: Source::Library(library), ..AneOptions::default() }).unwrap_err();
    let text = error.to_string();
    assert!(error.is_not_here() && names.iter().all(|name| text.contains(name)) && text.contains("25D125"), "{text}");
    let _turn = engine(AneRoute::E5rt, json!({}));
    // Classes are looked up once for a library: a copy of its own.
    let other = tempfile::tempdir().unwrap();
    let library = fake::without_symbols(other.path(), &["e5rt_async_event_create"]);
    let faults = json!({ "faults": [{ "kind": "missing-class", "name": "_ANEClient", "times": 100 }] });
    fake::control_of(&library, &json!({ "set": faults }));
    let error =
        Ane::open(AneOptions { source: Source::Library(library.clone()), route: AneRoute::Client, ..AneOptions::default() });
    let error = error.unwrap_err();
    assert!(error.is_not_here() && error.to_string().contains("_ANEClient"), "{error}");
    Ane::open(AneOptions { source: Source::Library(library), route: AneRoute::InMemory, ..AneOptions::default() }).unwrap();
    let nowhere = Source::Library(folder.path().join("none.so"));
    assert!(Ane::open(AneOptions { source: nowhere, ..AneOptions::default() }).unwrap_err().is_not_here());
}

#[test]
fn another_build_of_the_system_compiles_anew() {
    for route in ROUTES {
        let first = engine(route, json!({}));
        drop(first.load(&doubled()));
        fake::set(json!({ "os_build": "26A1" }));
        let place = aneforge_runtime::ane::CachePlace::Folder(first.cache.path().to_path_buf());
        let options = AneOptions { source: Source::Library(fake::library()), route, cache: place, ..AneOptions::default() };
        let later = Ane::open(options).unwrap();
        let executable = later.load(&doubled()).unwrap();
        let report = executable.report().engine.unwrap();
        assert!(!report.cached && report.os_build == "26A1");
        works(&executable);
    }
}

/// What a framework does for long is given up after the time that the caller allows; the device goes on, and what the call gives in the
/// end is dropped.
#[test]
fn a_call_that_does_not_return_is_given_up_and_the_device_goes_on() {
    for route in ROUTES {
        for (kind, step) in [("slow-compile", Step::Compile), ("slow-load", Step::Load)] {
            let patience = Duration::from_millis(300);
            let engine = engine_with(json!({}), AneOptions { route, patience, back_off: Duration::ZERO, ..AneOptions::default() });
            faults(json!([{ "kind": kind, "ms": 1500 }]));
            let start = Instant::now();
            let error = engine.device.load(&doubled()).err().unwrap();
            assert!(start.elapsed() < Duration::from_millis(1400), "{error}");
            assert!(error.to_string().contains("has not returned for 0.3 s"), "{error}");
            assert!(matches!(error, DeviceError::Ane(AneError::Silent { step: told, .. }) if told == step), "{step}");
            faults(json!([]));
            works(&engine.load(&doubled()));
            // The call that was given up ends at last.
            while start.elapsed() < Duration::from_secs(10) && fake::counters()["loaded_programs"] != json!(0)
                || start.elapsed() < Duration::from_millis(1800)
            {
                std::thread::sleep(Duration::from_millis(50));
            }
            usable(&engine);
        }
    }
}
