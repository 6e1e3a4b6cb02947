//! The fake's own interface.

use aneforge_fake_client::{control, library, set, without_symbols};
use serde_json::json;

#[test]
fn settings_are_changed_one_by_one_and_refused_whole() {
    let library = library().unwrap();
    control(&library, &set(json!({"chip": "m5pro", "limits": {"programs": 3}}))).unwrap();
    let settings = control(&library, &json!({"get": "settings"})).unwrap();
    assert_eq!(settings["chip"], "m5pro");
    assert_eq!(settings["limits"], json!({"programs": 3, "compiles": 119, "surface": 49152}));
    for wrong in [json!({"chip": "m99"}), json!({"speed": 1}), json!({"limits": {"threads": 1}})] {
        assert!(control(&library, &set(wrong.clone())).is_err(), "{wrong}");
    }
    assert_eq!(control(&library, &json!({"get": "settings"})).unwrap(), settings);
    control(&library, &json!({"reset": true})).unwrap();
    assert_eq!(control(&library, &json!({"get": "settings"})).unwrap()["chip"], "m1");
    assert!(control(&library, &json!({"get": "weather"})).is_err());
}

#[test]
fn a_copy_of_the_library_can_lack_a_symbol() {
    let folder = std::env::temp_dir().join(format!("fake-apple-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = without_symbols(&library().unwrap(), &folder, &["fake_apple_free"]).unwrap();
    let error = control(&copy, &json!({"get": "counters"})).unwrap_err();
    assert!(error.contains("fake_apple_free"), "{error}");
    assert!(without_symbols(&library().unwrap(), &folder, &["no_such_symbol"]).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_environment_sets_the_fake_when_it_is_loaded() {
    let settings = || control(&library().unwrap(), &json!({"get": "settings"})).unwrap();
    match std::env::var("FAKE_APPLE").as_deref() {
        Ok("nonsense") => {
            assert_eq!(settings()["chip"], "m1");
            let counters = control(&library().unwrap(), &json!({"get": "counters"})).unwrap();
            assert!(counters["violations"][0].as_str().unwrap().starts_with("FAKE_APPLE: "), "{counters}");
        }
        Ok(_) => assert_eq!((&settings()["chip"], &settings()["profile"]), (&json!("m4"), &json!("agreed"))),
        // The variable is read once in a process: each value needs one of its own.
        Err(_) => {
            for value in [r#"{"chip": "m4", "profile": "agreed"}"#, "nonsense"] {
                let mut child = std::process::Command::new(std::env::current_exe().unwrap());
                child.args(["--exact", "the_environment_sets_the_fake_when_it_is_loaded"]).env("FAKE_APPLE", value);
                assert!(child.status().unwrap().success(), "{value}");
            }
        }
    }
}
