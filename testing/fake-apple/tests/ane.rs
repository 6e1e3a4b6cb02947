//! Programs through the classes of AppleNeuralEngine, as a client sends them: both routes, requests by symbol, limits, failures.
//!
//! One process holds one state of the library, so the tests of this file run one after the other.
#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

mod common;

use common::models::*;
use common::{Id, NIL, error_of};
use serde_json::json;
use std::ffi::c_void;

#[test]
fn a_model_in_memory_is_compiled_loaded_evaluated_and_leaves_nothing() {
    let (_guard, fake) = alone();
    let (input, output) = fake.pooled(|| (surface(&fake, BYTES), surface(&fake, BYTES)));
    fake.pooled(|| {
        let (model, folder) = memory_model(&fake, &text());
        let identifier = fake.text(send!(fake, model, "hexStringIdentifier"; Id));
        let parts: Vec<usize> = identifier.split('_').map(str::len).collect();
        assert_eq!(parts, [64, 64, 64]);
        assert_eq!(folder.file_name().unwrap().to_str(), Some(identifier.as_str()));
        assert_eq!(step(&fake, model, "load").unwrap_err().1, 6, "not compiled yet");
        step(&fake, model, "compile").unwrap();
        step(&fake, model, "load").unwrap();
        assert_eq!(send!(fake, model, "state"; usize), 3);
        assert_eq!(fake.counters()["loaded_programs"], 1);
        let wanted = fake.pooled(|| fake.retain(request(&fake, &[(input, 0)], &[(output, 0)], 0)));
        write(&fake, input, 0x3c00);
        evaluate(&fake, model, wanted).unwrap();
        assert_eq!(read(&fake, output), 0x3c00);
        fake.release(wanted);
        assert!(folder.join("net.plist").is_file());
        step(&fake, model, "unload").unwrap();
        assert!(step(&fake, model, "unload").is_err());
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.release(input);
    fake.release(output);
    fake.assert_clean();
    let counters = fake.counters();
    assert_eq!((counters["surface_locks"].as_u64(), counters["surface_unlocks"].as_u64()), (Some(2), Some(2)));
}

#[test]
fn what_an_earlier_compile_left_loads_without_one() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let text = text();
        let (model, folder) = memory_model(&fake, &text);
        step(&fake, model, "compile").unwrap();
        let (again, _) = memory_model(&fake, &text);
        let before = fake.counters()["in_memory_compiles"].clone();
        assert!(send!(fake, again, "compiledModelExists"; bool));
        step(&fake, again, "load").unwrap();
        step(&fake, again, "unload").unwrap();
        assert_eq!(fake.counters()["in_memory_compiles"], before);
        send!(fake, again, "purgeCompiledModel"; ());
        assert!(!send!(fake, again, "compiledModelExists"; bool));
        assert!(step(&fake, again, "load").is_err());
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}

#[test]
fn a_descriptor_wants_data_and_a_dictionary() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let make = |text: Id, weights: Id| {
            let class = fake.class("_ANEInMemoryModelDescriptor");
            send!(fake, class, "modelWithMILText:weights:optionsPlist:", text => Id, weights => Id, NIL => Id; Id)
        };
        let (text, empty) = (fake.data(TEXT.as_bytes()), fake.dictionary(&[]));
        assert!(!make(text, empty).is_null());
        assert!(make(fake.string(TEXT), empty).is_null(), "a string");
        assert!(make(text, NIL).is_null(), "strict wants an empty dictionary");
        let entry = |offset: i32| fake.dictionary(&[(fake.string("offset"), fake.number(offset)), (fake.string("data"), text)]);
        for key in ["weights/w.bin", "@model_path/../w.bin", "@model_path//w.bin", "@model_path/"] {
            assert!(make(text, fake.dictionary(&[(fake.string(key), entry(0))])).is_null(), "{key}");
        }
        let right = fake.string("@model_path/weights/w.bin");
        assert!(!make(text, fake.dictionary(&[(right, entry(0))])).is_null());
        assert!(make(text, fake.dictionary(&[(right, entry(7))])).is_null());
        assert!(make(text, fake.dictionary(&[(right, text)])).is_null());
        let none = send!(fake, fake.class("_ANEInMemoryModel"), "inMemoryModelWithDescriptor:", NIL => Id; Id);
        assert!(none.is_null());
        fake.set(json!({"profile": "agreed"}));
        assert!(!make(text, NIL).is_null());
    });
    fake.assert_clean();
}

#[test]
fn a_folder_without_the_files_does_not_compile() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let (model, folder) = memory_model(&fake, &text());
        std::fs::remove_dir_all(folder).unwrap();
        let (domain, code, text) = step(&fake, model, "compile").unwrap_err();
        assert_eq!((domain.as_str(), code), ("com.apple.appleneuralengine.compiler", 1));
        assert!(text.starts_with("ANECCompile() FAILED") && text.contains("model.mil"), "{text}");
    });
    fake.assert_clean();
}

#[test]
fn the_budget_of_compiles_ends_and_the_client_has_none() {
    let (_guard, fake) = alone();
    fake.set(json!({"limits": {"compiles": 2}}));
    fake.pooled(|| {
        let (model, folder) = memory_model(&fake, &text());
        step(&fake, model, "compile").unwrap();
        step(&fake, model, "compile").unwrap();
        let (_, code, text) = step(&fake, model, "compile").unwrap_err();
        assert_eq!((code, text.as_str()), (1, "ANECCompile() FAILED: err=()"));
        (0..5).for_each(|_| client_step(&fake, "compileModel:options:qos:error:", client_model(&fake, &folder), true).unwrap());
        fake.set(json!({"limits": {"compiles": 100}, "faults": [{"kind": "budget"}]}));
        assert!(step(&fake, model, "compile").is_err());
        step(&fake, model, "compile").unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}

#[test]
fn the_client_needs_two_options_and_a_completion_block_runs_on_the_calling_thread() {
    #[repr(C)]
    struct Literal {
        isa: *const c_void,
        flags: i32,
        reserved: i32,
        invoke: unsafe extern "C" fn(*const Literal, bool, Id),
        descriptor: *const [usize; 2],
        calls: *mut Vec<(bool, bool, std::thread::ThreadId)>,
    }
    unsafe extern "C" fn completed(block: *const Literal, success: bool, error: Id) {
        unsafe { (*(*block).calls).push((success, error.is_null(), std::thread::current().id())) };
    }
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let (_, folder) = memory_model(&fake, &text());
        let model = client_model(&fake, &folder);
        let (_, _, text) = client_step(&fake, "compileModel:options:qos:error:", model, false).unwrap_err();
        assert!(text.contains("model.espresso.net"), "{text}");
        assert_eq!(client_step(&fake, "loadModel:options:qos:error:", model, false).unwrap_err().1, 6);
        client_step(&fake, "compileModel:options:qos:error:", model, true).unwrap();
        client_step(&fake, "loadModel:options:qos:error:", model, false).unwrap();
        let (input, output) = (surface(&fake, BYTES), surface(&fake, BYTES));
        write(&fake, input, 0x4000);
        let wanted = request(&fake, &[(input, 0)], &[(output, 0)], 0);
        let mut calls = Vec::new();
        let descriptor = [0, size_of::<Literal>()];
        let isa = fake.address("_NSConcreteStackBlock");
        let literal =
            Literal { isa, flags: 0, reserved: 0, invoke: completed, descriptor: &raw const descriptor, calls: &raw mut calls };
        send!(fake, wanted, "setCompletionHandler:", &raw const literal => *const Literal; ());
        let client = send!(fake, fake.class("_ANEClient"), "sharedConnection"; Id);
        let evaluate = || {
            let mut error = NIL;
            let out = &raw mut error;
            send!(fake, client, "evaluateWithModel:options:request:qos:error:",
                model => Id, fake.dictionary(&[]) => Id, wanted => Id, 21 => u32, out => *mut Id; bool)
        };
        assert!(evaluate());
        assert_eq!(read(&fake, output), 0x4000);
        client_step(&fake, "unloadModel:options:qos:error:", model, false).unwrap();
        assert!(!evaluate(), "not loaded");
        let here = std::thread::current().id();
        assert_eq!(calls, [(true, true, here), (false, false, here)]);
        fake.release(input);
        fake.release(output);
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}

#[test]
fn doors_that_are_reported_closed_are_closed() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let client = send!(fake, fake.class("_ANEClient"), "sharedConnection"; Id);
        assert!(!send!(fake, client, "beginRealTimeTask"; bool));
        let mut error = NIL;
        let out = &raw mut error;
        let prepared = send!(fake, client, "prepareChainingWithModel:options:chainingReq:qos:error:",
            NIL => Id, NIL => Id, NIL => Id, 21 => u32, out => *mut Id; bool);
        assert!(!prepared);
        assert_eq!(error_of(&fake, error).1, 15);
        let statistics = fake.class("_ANEPerformanceStats");
        assert!(send!(fake, statistics, "statsWithHardwareExecutionNS:", 5 => u64; Id).is_null());
        assert!(send!(fake, statistics, "new"; Id).is_null());
        let (model, folder) = memory_model(&fake, &text());
        let out = &raw mut error;
        assert!(
            !send!(fake, model, "mapIOSurfacesWithRequest:cacheInference:error:", NIL => Id, true => bool, out => *mut Id; bool)
        );
        assert_eq!(error_of(&fake, error).1, 13);
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(fake.text(send!(fake, fake.class("_ANEDeviceInfo"), "aneSubType"; Id)), "h13");
        fake.set(json!({"chip": "m4"}));
        assert_eq!(fake.text(send!(fake, fake.class("_ANEDeviceInfo"), "aneSubType"; Id)), "h16");
    });
    fake.assert_clean();
}

#[test]
fn requests_bind_by_symbol_and_wrong_symbols_have_a_status() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let (model, folder) = memory_model(&fake, &text());
        step(&fake, model, "compile").unwrap();
        step(&fake, model, "load").unwrap();
        let (input, output) = (surface(&fake, BYTES), surface(&fake, BYTES));
        let attributes = send!(fake, model, "modelAttributes"; Id);
        let description = fake.get(attributes, "ANEFModelDescription");
        let symbol = |list: &str| fake.text(send!(fake, fake.get(description, list), "objectAtIndex:", 0 => usize; Id));
        assert_eq!((symbol("InputSymbols"), symbol("OutputSymbols")), ("x".to_string(), "y@output".to_string()));
        assert!(fake.get(attributes, "NetworkStatusList").is_null());
        let wrong = [
            request(&fake, &[(input, 1)], &[(output, 0)], 0),
            request(&fake, &[(input, 0)], &[(output, 0)], 1),
            request(&fake, &[(input, 0), (input, 0)], &[(output, 0)], 0),
            request(&fake, &[(input, 0)], &[], 0),
        ];
        for wrong in wrong {
            let (_, code, text) = evaluate(&fake, model, wrong).unwrap_err();
            assert!(code == 8 && text.contains("status=0x2 "), "{code} {text}");
        }
        evaluate(&fake, model, request(&fake, &[(input, 0)], &[(output, 0)], 0)).unwrap();
        step(&fake, model, "unload").unwrap();
        fake.release(input);
        fake.release(output);
        std::fs::remove_dir_all(folder).unwrap();
    });
    fake.assert_clean();
}

#[test]
fn what_is_left_open_is_recorded() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let (model, folder) = memory_model(&fake, &text());
        step(&fake, model, "compile").unwrap();
        step(&fake, model, "load").unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let locked = surface(&fake, BYTES);
        assert_ne!(lock(&fake, "IOSurfaceUnlock", locked, 0), 0);
        assert_eq!(lock(&fake, "IOSurfaceLock", locked, 1), 0);
        fake.release(locked);
    });
    let violations = fake.violations();
    for wanted in ["not locked so", "freed while it was locked", "freed while it was loaded"] {
        assert!(violations.iter().any(|text| text.contains(wanted)), "{wanted}: {violations:?}");
    }
    assert_eq!(fake.counters()["loaded_programs"], 0);
}

#[test]
fn surfaces_hold_to_their_properties() {
    let (_guard, fake) = alone();
    fake.pooled(|| {
        let create = |entries: &[(&str, i32)]| {
            let entries: Vec<(Id, Id)> =
                entries.iter().map(|(key, value)| (fake.string(&format!("IOSurface{key}")), fake.number(*value))).collect();
            fake.call::<Id>("IOSurfaceCreate", fake.dictionary(&entries))
        };
        assert!(create(&[("Width", 64)]).is_null());
        assert!(create(&[("Width", 0), ("Height", 1)]).is_null());
        assert!(create(&[("Width", 64), ("Height", 2), ("AllocSize", 127)]).is_null());
        assert!(create(&[("Width", 64), ("Height", 2), ("BytesPerRow", 63)]).is_null());
        let made = create(&[("Width", 64), ("Height", 2), ("BytesPerElement", 2), ("BytesPerRow", 256)]);
        assert_eq!(fake.call::<usize>("IOSurfaceGetAllocSize", made), 512);
        fake.call::<()>("CFRelease", fake.call::<Id>("CFRetain", made));
        fake.call::<()>("CFRelease", made);
    });
    fake.assert_clean();
}

#[test]
fn encodings_are_those_that_were_printed_on_macs() {
    let (_guard, fake) = alone();
    // christopherkarani/Espresso, macOS 15, and dev-erik/ANE, macOS 26.
    let cases = [
        ("_ANEClient", "evaluateWithModel:options:request:qos:error:", false, "B52@0:8@16@24@32I40^@44"),
        ("_ANEClient", "loadModel:options:qos:error:", false, "B44@0:8@16@24I32^@36"),
        ("_ANEClient", "doMapIOSurfacesWithModel:request:cacheInference:error:", false, "B44@0:8@16@24B32^@36"),
        ("_ANEClient", "prepareChainingWithModel:options:chainingReq:qos:error:", false, "B52@0:8@16@24@32I40^@44"),
        ("_ANERequest", "setCompletionHandler:", false, "v24@0:8@?16"),
        (
            "_ANEChainingRequest",
            "chainingRequestWithInputs:outputSets:lbInputSymbolId:lbOutputSymbolId:procedureIndex:signalEvents:transactionHandle:fwEnqueueDelay:memoryPoolId:",
            true,
            "@88@0:8@16@24@32@40@48@56@64@72@80",
        ),
    ];
    for (class, selector, of_class, wanted) in cases {
        assert_eq!(fake.encoding(class, selector, of_class).as_deref(), Some(wanted), "{class} {selector}");
    }
}
