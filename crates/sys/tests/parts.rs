//! Opening the parts: what is found, what is missing, and what that takes away.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_sys::{Frameworks, Missing, Source, SysError};
use aneforge_testkit::fake;
use serde_json::json;

fn missing(error: SysError) -> Vec<Missing> {
    match error {
        SysError::Lacking { missing, .. } => missing,
        other => panic!("{other}"),
    }
}

#[test]
fn the_kernel_names_chip_and_system() {
    fake::set(json!({ "chip": "m5pro", "os_build": "25E246" }));
    let frameworks = common::frameworks();
    assert_eq!(frameworks.chip_name(), Ok("Apple M5 Pro".to_string()));
    assert_eq!(frameworks.os_build(), Ok("25E246".to_string()));
    assert_eq!(frameworks.engine_subtype(), Ok(Some("h17s".to_string())));
    drop(frameworks);
    fake::assert_clean();
}

#[test]
fn everything_is_found_and_every_type_encoding_is_the_known_one() {
    let inventory = common::frameworks().inventory();
    assert_eq!(inventory.len(), 5);
    for (part, lookups) in inventory {
        assert!(lookups.len() > 5, "{part}");
        for lookup in lookups {
            assert!(lookup.found || !lookup.required, "{part}: {:?}", lookup.item);
            assert_eq!(lookup.types, None, "{part}: {:?}", lookup.item);
        }
    }
    fake::assert_clean();
}

#[test]
fn all_missing_symbols_are_listed_and_other_parts_still_open() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["e5rt_io_port_bind_buffer_object", "e5rt_execution_stream_create", "e5rt_async_event_create"];
    let library = fake::without_symbols(folder.path(), &names);
    let frameworks = Frameworks::open(&Source::Library(library)).unwrap();
    let error = frameworks.e5rt().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("25D125") && text.contains("e5rt_execution_stream_create"), "{text}");
    // Events are optional: a system without them still dispatches.
    let expected = ["e5rt_execution_stream_create", "e5rt_io_port_bind_buffer_object"];
    assert_eq!(missing(error), expected.map(|name| Missing::Symbol(name.to_string())));
    assert!(frameworks.in_memory().is_ok());
    assert!(frameworks.energy().is_ok());
}

#[test]
fn a_missing_optional_symbol_fails_where_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let library = fake::without_symbols(folder.path(), &["e5rt_async_event_create"]);
    let runtime = Frameworks::open(&Source::Library(library)).unwrap().e5rt().unwrap();
    let error = aneforge_sys::e5rt::Event::new(&runtime, "done", 0).err().unwrap();
    assert_eq!(missing(error), [Missing::Symbol("e5rt_async_event_create".to_string())]);
}

#[test]
fn without_a_message_sender_only_objective_c_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let library = fake::without_symbols(folder.path(), &["objc_msgSend"]);
    let frameworks = Frameworks::open(&Source::Library(library)).unwrap();
    assert_eq!(missing(frameworks.objective_c().unwrap_err()), [Missing::Symbol("objc_msgSend".to_string())]);
    assert_eq!(frameworks.in_memory().unwrap_err(), frameworks.objective_c().unwrap_err());
    assert!(frameworks.e5rt().is_ok());
}

#[test]
fn missing_classes_are_listed_once_each_and_not_with_their_methods() {
    let faults = ["_ANERequest", "_ANEInMemoryModel", "_ANEClient"].map(|name| json!({ "kind": "missing-class", "name": name }));
    fake::set(json!({ "faults": faults }));
    let frameworks = common::frameworks();
    let expected = ["_ANEInMemoryModel", "_ANERequest"].map(|name| Missing::Class(name.to_string()));
    assert_eq!(missing(frameworks.in_memory().unwrap_err()), expected);
    assert!(frameworks.surfaces().is_ok());
    let (_, lookups) = frameworks.inventory().into_iter().find(|(part, _)| *part == "AppleNeuralEngine").unwrap();
    let client = lookups.iter().find(|lookup| lookup.item == Missing::Class("_ANEClient".to_string())).unwrap();
    assert!(!client.found && !client.required);
}

#[test]
fn a_system_without_the_client_still_has_the_in_memory_route() {
    fake::set(json!({ "faults": [{ "kind": "missing-class", "name": "_ANEClient" }] }));
    let engine = common::frameworks().in_memory().unwrap();
    assert!(matches!(aneforge_sys::ane::Client::shared(&engine), Err(SysError::Lacking { .. })));
}

#[test]
fn no_library_and_no_mac_are_errors_that_say_so() {
    let error = Frameworks::open(&Source::Library("/nonexistent/library.so".into())).unwrap_err();
    assert!(matches!(&error, SysError::Open { path, .. } if path == "/nonexistent/library.so"), "{error}");
    if !cfg!(target_os = "macos") {
        let error = Frameworks::open(&Source::System).unwrap_err();
        assert!(matches!(error, SysError::NotHere { .. }), "{error}");
    }
}
