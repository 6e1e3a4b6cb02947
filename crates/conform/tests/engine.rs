//! What `aneforge doctor` finds, on the library that stands in for Apple's frameworks.
#![allow(clippy::unwrap_used)] // helpers of tests

use aneforge_conform::engine::{examine, experiment};
use aneforge_conform::numerics::{Scope, differences, dump};
use aneforge_runtime::ane::{Ane, AneOptions, CachePlace, Source};
use aneforge_runtime::emulator::{Emulator, EmulatorOptions};
use aneforge_runtime::power::{counter, measure};
use aneforge_runtime::{Device, open};
use aneforge_testkit::fake;
use serde_json::json;
use std::time::Duration;

fn source() -> Source {
    Source::Library(fake::library())
}

#[test]
fn an_engine_is_examined_once_for_a_system() {
    fake::set(json!({ "chip": "m4", "os_build": "25E246" }));
    let cache = tempfile::tempdir().unwrap();
    let found = examine(&source(), cache.path(), false).unwrap();
    assert_eq!((found.chip.as_str(), found.os_build.as_str()), ("Apple M4", "25E246"));
    assert!(found.parts.len() >= 5 && found.parts.iter().all(|part| part.missing.is_empty()), "{:?}", found.parts);
    assert!(found.routes.iter().all(|route| route.is_right()), "{:?}", found.routes);
    assert!(found.dialects[0].is_right(), "{:?}", found.dialects);
    assert!(found.choice.starts_with("e5rt"), "{}", found.choice);
    // The union of all refusals is what this chip is asked under: small and unequal surfaces are refused with the code that sources saw.
    assert!(found.surfaces[0].is_right(), "{:?}", found.surfaces);
    assert!(found.surfaces[1..].iter().all(|surface| surface.outcome.contains("0x1d")), "{:?}", found.surfaces);
    assert!(found.asked.len() == 1 && found.asked[0].is_right(), "{:?}", found.asked);
    // What is kept is shown, until the system is another one.
    let asked = fake::counters()["compiles"].clone();
    assert_eq!(examine(&source(), cache.path(), false).unwrap(), found);
    assert_eq!(fake::counters()["compiles"], asked);
    fake::set(json!({ "os_build": "26A1" }));
    assert_eq!(examine(&source(), cache.path(), false).unwrap().os_build, "26A1");
    assert_ne!(fake::counters()["compiles"], asked);
    // The device keeps its frameworks, and an empty dictionary of options with them, for as long as the process lives.
    let left = fake::counters();
    assert_eq!((&left["violations"], &left["loaded_programs"]), (&json!([]), &json!(0)));
    assert!(left["live"].as_object().unwrap().keys().all(|class| class == "NSDictionary"), "{left}");
}

#[test]
fn what_is_missing_is_listed_and_takes_its_route_away() {
    let folder = tempfile::tempdir().unwrap();
    let lacking = fake::without_symbols(folder.path(), &["e5rt_execution_stream_create"]);
    let found = examine(&Source::Library(lacking), folder.path(), false).unwrap();
    let missing: Vec<&String> = found.parts.iter().flat_map(|part| &part.missing).collect();
    assert!(missing.iter().any(|name| name.contains("e5rt_execution_stream_create")), "{missing:?}");
    assert!(!found.routes[0].is_right() && !found.choice.starts_with("e5rt"), "{}", found.choice);
}

#[test]
fn limits_are_found_by_asking() {
    fake::set(json!({ "profile": "agreed", "limits": { "programs": 40 } }));
    let cache = tempfile::tempdir().unwrap();
    let found = examine(&source(), cache.path(), true).unwrap();
    assert!(found.surfaces.iter().all(|surface| surface.is_right()), "{:?}", found.surfaces);
    assert!(found.asked[0].outcome.starts_with("40 were, then: "), "{:?}", found.asked);
    assert_eq!(fake::counters()["loaded_programs"], 0);
}

#[test]
fn without_frameworks_there_is_no_engine() {
    if cfg!(not(target_os = "macos")) {
        assert!(examine(&Source::System, std::path::Path::new("/nonexistent"), false).is_err());
    }
}

#[test]
fn a_dump_of_the_engine_is_loaded_again_bit_for_bit() {
    fake::set(json!({ "chip": "m1", "profile": "agreed" }));
    let cache = tempfile::tempdir().unwrap();
    let options = AneOptions { source: source(), cache: CachePlace::Folder(cache.path().to_path_buf()), ..AneOptions::default() };
    let device = Ane::open(options).unwrap();
    let scope = Scope { filter: Some("gelu".to_string()) };
    let asked = dump(&device, Device::os_build(&device).unwrap(), &scope, &mut |_| ()).unwrap();
    assert!(!asked.tables.is_empty(), "{:?}", asked.refused);
    let loaded = Emulator::from_dump("file", &asked, EmulatorOptions::default()).unwrap();
    assert_eq!(differences(&asked, &dump(&loaded, "", &scope, &mut |_| ()).unwrap()), []);
    let emulated = dump(&*open("emulator:m1").unwrap(), "", &scope, &mut |_| ()).unwrap();
    assert_eq!(differences(&asked, &emulated), []);
}

#[test]
fn energy_of_a_run_is_counted_through_io_report() {
    let mut counter = counter(&source());
    let done = measure::<()>(&mut *counter, Duration::from_millis(50), 3, || Ok(())).unwrap();
    assert_eq!(done.source, "IOReport");
    assert!(done.run.ane.value().is_some() && done.run.cpu.value().is_some(), "{done:?}");
    assert!(done.net.ane.value().unwrap() <= done.run.ane.value().unwrap());
    drop(counter);
    fake::assert_clean();
}

#[test]
fn experiments_give_data_and_leave_nothing_behind() {
    fake::set(json!({ "chip": "m4", "profile": "agreed" }));
    for one in &experiment::EXPERIMENTS {
        let found = experiment::run(one.number, &source());
        match one.not_run {
            Some(reason) => assert!(found.unwrap_err().contains(reason)),
            None => assert!(!found.unwrap_or_else(|problem| panic!("{}: {problem}", one.number)).is_null()),
        }
    }
    // What the stand-in does is what sources report.
    let replaced = experiment::run(3, &source()).unwrap();
    assert_eq!(replaced["compiled_with_1"], json!({ "adds": 1.0 }), "{replaced}");
    assert_eq!(replaced["written_over_in_place_with_2"], json!({ "adds": 2.0 }), "{replaced}");
    assert_eq!(replaced["replaced_by_a_file_with_3"], json!({ "adds": 2.0 }), "{replaced}");
    let procedures = experiment::run(7, &source()).unwrap();
    assert_eq!(procedures["procedures"], json!([{ "adds": 1.0 }, { "adds": 2.0 }]), "{procedures}");
    let codes = experiment::run(8, &source()).unwrap();
    assert_eq!(codes[0]["answer"], json!({ "adds": 1.0 }), "{codes}");
    assert!(codes.as_array().unwrap()[1..].iter().all(|code| code["answer"]["problem"].is_string()), "{codes}");
    fake::assert_clean();
}
