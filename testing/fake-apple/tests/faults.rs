//! Injected failures as a client of AppleNeuralEngine sees them, and that everything goes on afterwards.
//!
//! One process holds one state of the library, so the tests of this file run one after the other.
#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

mod common;

use common::models::*;
use common::{Fake, Id, NIL};
use serde_json::json;

/// A loaded model with a request.
struct Ready {
    model: Id,
    folder: std::path::PathBuf,
    input: Id,
    output: Id,
    request: Id,
}

fn ready(fake: &Fake) -> Ready {
    let (model, folder) = memory_model(fake, &text());
    step(fake, model, "compile").unwrap();
    step(fake, model, "load").unwrap();
    let (input, output) = (surface(fake, BYTES), surface(fake, BYTES));
    let request = request(fake, &[(input, 0)], &[(output, 0)], 0);
    Ready { model, folder, input, output, request }
}

impl Ready {
    fn end(self, fake: &Fake) {
        step(fake, self.model, "unload").unwrap();
        fake.release(self.input);
        fake.release(self.output);
        std::fs::remove_dir_all(self.folder).unwrap();
    }
}

#[test]
fn every_reported_text_of_a_failed_compile_arrives() {
    let (_guard, fake) = alone();
    let texts = [
        "ANECCompile() FAILED: err=()",
        "ANECCompile() FAILED: err=(InvalidMILProgram)",
        "ANECCompile() FAILED: err=(CompilationFailure)",
    ];
    let faults: Vec<_> = texts.iter().map(|text| json!({"kind": "compile", "text": text, "code": 1})).collect();
    fake.set(json!({"faults": faults}));
    fake.pooled(|| {
        let (model, folder) = memory_model(&fake, &text());
        for text in texts {
            let (domain, code, said) = step(&fake, model, "compile").unwrap_err();
            assert_eq!((domain.as_str(), code, said.as_str()), ("com.apple.appleneuralengine.compiler", 1, text));
        }
        step(&fake, model, "compile").unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}

#[test]
fn a_text_that_is_no_program_is_refused() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let (model, folder) = memory_model(&fake, &text().replace("relu(x = x)", "relu(x = nothing)"));
        let (_, code, said) = step(&fake, model, "compile").unwrap_err();
        assert_eq!((code, said.as_str()), (1, "ANECCompile() FAILED: err=(InvalidMILProgram)"));
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}

#[test]
fn a_load_fails_once_and_then_works() {
    let (_guard, fake) = alone();
    fake.set(json!({"faults": [{"kind": "load", "text": "once", "code": 6}]}));
    fake.pooled(|| {
        let (model, folder) = memory_model(&fake, &text());
        step(&fake, model, "compile").unwrap();
        assert_eq!(step(&fake, model, "load").unwrap_err().2, "once");
        step(&fake, model, "load").unwrap();
        step(&fake, model, "unload").unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}

#[test]
fn programs_run_out_and_come_back() {
    let (_guard, fake) = alone();
    fake.set(json!({"limits": {"programs": 1}}));
    fake.pooled(|| {
        let first = ready(&fake);
        let (model, folder) = memory_model(&fake, &text());
        step(&fake, model, "compile").unwrap();
        assert!(step(&fake, model, "load").unwrap_err().2.contains("must re-compile"));
        first.end(&fake);
        step(&fake, model, "load").unwrap();
        step(&fake, model, "unload").unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}

#[test]
fn a_daemon_that_restarts_or_hangs_up_forgets_its_programs() {
    let (_guard, fake) = alone();
    for kind in ["daemon-restart", "connection"] {
        fake.pooled(|| {
            let ready = ready(&fake);
            evaluate(&fake, ready.model, ready.request).unwrap();
            fake.set(json!({"faults": [{"kind": kind}]}));
            assert!(evaluate(&fake, ready.model, ready.request).is_err(), "{kind}");
            assert!(evaluate(&fake, ready.model, ready.request).is_err(), "{kind}, not loaded again");
            assert_eq!(fake.counters()["loaded_programs"], 0);
            step(&fake, ready.model, "load").unwrap();
            write(&fake, ready.input, 0x3c00);
            evaluate(&fake, ready.model, ready.request).unwrap();
            assert_eq!(read(&fake, ready.output), 0x3c00);
            ready.end(&fake);
        });
    }
    fake.assert_clean();
}

#[test]
fn an_execution_fails_with_the_status_that_is_asked_for() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let ready = ready(&fake);
        fake.set(json!({"faults": [{"kind": "evaluate", "after": 1}]}));
        evaluate(&fake, ready.model, ready.request).unwrap();
        let (_, code, said) = evaluate(&fake, ready.model, ready.request).unwrap_err();
        assert!(code == 8 && said.contains("status=0x1d : statusType=0x9: Program Inference error"), "{code} {said}");
        evaluate(&fake, ready.model, ready.request).unwrap();
        ready.end(&fake);
    });
    fake.assert_clean();
}

#[test]
fn small_surfaces_fail_where_they_are_reported_to() {
    let (_guard, fake) = alone();
    let small = text().replace("768", "64");
    fake.pooled(|| {
        let (model, folder) = memory_model(&fake, &small);
        step(&fake, model, "compile").unwrap();
        step(&fake, model, "load").unwrap();
        let (little, large) = (surface(&fake, 4096), surface(&fake, BYTES));
        let with = |input: Id, output: Id| evaluate(&fake, model, request(&fake, &[(input, 0)], &[(output, 0)], 0));
        assert!(with(little, large).unwrap_err().2.contains("status=0x1d"));
        with(large, large).unwrap();
        fake.set(json!({"profile": "agreed"}));
        with(little, large).unwrap();
        step(&fake, model, "unload").unwrap();
        fake.release(little);
        fake.release(large);
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}

#[test]
fn two_outputs_are_listed_by_name_or_as_a_test_wants() {
    let (_guard, fake) = alone();
    let two = text().replace(
        "    } -> (y);",
        "        tensor<fp16, [1, 768, 1, 32]> a = square(x = x)[name = string(\"a\")];\n    } -> (y, a);",
    );
    let faults = json!([{"kind": "output-order"}]);
    for (order, faults, wanted) in
        [("sorted", json!([]), ["a", "y"]), ("declared", json!([]), ["y", "a"]), ("sorted", faults, ["y", "a"])]
    {
        fake.set(json!({"symbol_order": order, "faults": faults}));
        fake.pooled(|| {
            let (model, folder) = memory_model(&fake, &two);
            step(&fake, model, "compile").unwrap();
            step(&fake, model, "load").unwrap();
            let attributes = send!(fake, model, "modelAttributes"; Id);
            let symbols = fake.get(fake.get(attributes, "ANEFModelDescription"), "OutputSymbols");
            let names = [0, 1].map(|at| fake.text(send!(fake, symbols, "objectAtIndex:", at => usize; Id)));
            assert_eq!(names, wanted.map(|name| format!("{name}@output")));
            let (input, first, second) = (surface(&fake, BYTES), surface(&fake, BYTES), surface(&fake, BYTES));
            write(&fake, input, 0x4200);
            evaluate(&fake, model, request(&fake, &[(input, 0)], &[(first, 0), (second, 1)], 0)).unwrap();
            let of = |name: &str| read(&fake, if wanted[0] == name { first } else { second });
            assert_eq!((of("y"), of("a")), (0x4200, 0x4880), "3 and 3 * 3");
            step(&fake, model, "unload").unwrap();
            [input, first, second].into_iter().for_each(|surface| fake.release(surface));
            std::fs::remove_dir_all(folder).unwrap();
        });
    }
    fake.assert_clean();
}

#[test]
fn a_network_says_how_its_ports_lie_and_runs_on_mapped_surfaces() {
    let (_guard, fake) = alone();
    let net = include_str!("../../../crates/native/tests/nets/sum_tanh.plist");
    let net = net.replace("_demo", &format!("_{}", std::process::id()));
    fake.pooled(|| {
        let weights = fake.dictionary(&[(fake.string("offset"), fake.number(0)), (fake.string("data"), fake.data(&[]))]);
        let descriptor = send!(fake, fake.class("_ANEInMemoryModelDescriptor"), "modelWithNetworkDescription:weights:optionsPlist:",
            fake.data(net.as_bytes()) => Id, fake.dictionary(&[(fake.string("weights.0"), weights)]) => Id, NIL => Id; Id);
        let model = send!(fake, fake.class("_ANEInMemoryModel"), "inMemoryModelWithDescriptor:", descriptor => Id; Id);
        let folder = std::path::PathBuf::from(fake.text(send!(fake, model, "localModelPath"; Id)));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("net.plist"), &net).unwrap();
        std::fs::write(folder.join("weights.0"), []).unwrap();
        let compiled = step(&fake, model, "compile");
        assert!(compiled.is_ok(), "{compiled:?} {:?}", fake.diagnostics());
        step(&fake, model, "load").unwrap();
        let status = fake.get(send!(fake, model, "modelAttributes"; Id), "NetworkStatusList");
        let network = send!(fake, status, "objectAtIndex:", 0 => usize; Id);
        let live = |list: &str, at: usize| send!(fake, fake.get(network, list), "objectAtIndex:", at => usize; Id);
        let number = |port: Id, key: &str| send!(fake, fake.get(port, key), "longLongValue"; i64);
        let a = live("LiveInputList", 0);
        assert_eq!((fake.text(fake.get(a, "Symbol")), fake.text(fake.get(a, "Type"))), ("a".to_string(), "Float16".to_string()));
        assert_eq!((number(a, "Width"), number(a, "RowStride")), (8, 64));
        assert_eq!(fake.text(fake.get(live("LiveOutputList", 0), "Symbol")), "y");
        let surfaces = [(); 3].map(|()| surface(&fake, BYTES));
        write(&fake, surfaces[0], 0x7000);
        write(&fake, surfaces[1], 0x0000);
        let wanted = request(&fake, &[(surfaces[0], 0), (surfaces[1], 1)], &[(surfaces[2], 0)], 0);
        let mut error = NIL;
        let out = &raw mut error;
        assert!(
            send!(fake, model, "mapIOSurfacesWithRequest:cacheInference:error:", wanted => Id, true => bool, out => *mut Id; bool)
        );
        evaluate(&fake, model, wanted).unwrap();
        send!(fake, model, "unmapIOSurfacesWithRequest:", wanted => Id; ());
        assert_eq!(lock(&fake, "IOSurfaceLock", surfaces[2], 1), 0);
        let base: *const u16 = fake.call("IOSurfaceGetBaseAddress", surfaces[2]);
        assert_eq!(unsafe { base.read() }, 0x3c00, "tanh of a large number is 1");
        assert_eq!(lock(&fake, "IOSurfaceUnlock", surfaces[2], 1), 0);
        let counters = fake.counters();
        assert_eq!((counters["maps"].as_u64(), counters["unmaps"].as_u64()), (Some(1), Some(1)));
        step(&fake, model, "unload").unwrap();
        surfaces.into_iter().for_each(|surface| fake.release(surface));
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}
