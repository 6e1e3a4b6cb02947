//! `aneforge doctor`: the report and what is made of it.
#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use common::{expect, write_bundle};

#[test]
fn a_report_of_a_chip_is_a_device() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("report.json");
    let file = file.to_str().unwrap();
    let (out, err) = expect(0, here.path(), &["doctor", "--report", file, "--device", "emulator:m1"]);
    assert!(out.contains("threads") && err.contains("tables"), "{out}{err}");
    let bundle = here.path().join("net.ane");
    write_bundle(&bundle);
    let x = here.path().join("x.npy");
    common::write_ones(&x, &[2, 8]);
    let input = format!("x={}", x.display());
    let device = format!("emulator:{file}");
    let (out, err) =
        expect(0, here.path(), &["run", bundle.to_str().unwrap(), "--input", &input, "--device", &device, "--profile"]);
    assert!(!out.is_empty() && err.contains("exact"), "{out}{err}");
    let conformed = ["conform", "--device", &device, "--filter", "tanh"];
    expect(0, here.path(), &conformed);
}

#[test]
fn without_an_engine_nothing_is_written_and_the_exit_code_says_so() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("report.json");
    if cfg!(target_os = "macos") {
        return;
    }
    let (_, err) = expect(3, here.path(), &["doctor", "--report", file.to_str().unwrap()]);
    assert!(err.contains("Neural Engine") && !file.exists(), "{err}");
    let (_, err) = expect(2, here.path(), &["doctor", "--report", file.to_str().unwrap(), "--device", "cpu"]);
    assert!(err.contains("no chip") && !file.exists(), "{err}");
}

#[test]
fn a_file_that_is_no_report_is_bad_input_with_the_place() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("other.json");
    std::fs::write(&file, "{\"kind\":\n 3").unwrap();
    let (_, err) = expect(2, here.path(), &["conform", "--device", &format!("emulator:{}", file.display())]);
    assert!(err.contains("line 2"), "{err}");
}

/// The command on the library that stands in for Apple's frameworks.
fn on_fake(here: &std::path::Path, settings: &str, arguments: &[&str]) -> std::process::Output {
    let mut command = common::command(here, arguments);
    command.env("ANEFORGE_FAKE_APPLE", aneforge_testkit::fake::library()).env("FAKE_APPLE", settings);
    command.output().unwrap()
}

#[test]
fn a_library_that_stands_in_for_nothing_is_named_with_the_reason() {
    let here = tempfile::tempdir().unwrap();
    let conform = ["conform", "--device", "fake:e5rt", "--filter", "relu6"];
    let rubbish = here.path().join("rubbish.so");
    std::fs::write(&rubbish, "no library").unwrap();
    for (library, words) in
        [(rubbish.as_path(), "rubbish.so"), (here.path(), "cannot open"), ("/nowhere.so".as_ref(), "No such file")]
    {
        let done = common::command(here.path(), &conform).env("ANEFORGE_FAKE_APPLE", library).output().unwrap();
        let err = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(3) && err.contains(words) && !err.contains("dlopen failed"), "{err}");
    }
    // Settings that it does not understand are no reason to be another chip.
    for settings in [r#"{"chip": "m99"}"#, r#"{"chip":"#, r#"{"frobnicate": 1}"#] {
        let done = on_fake(here.path(), settings, &conform);
        let err = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(3) && err.contains("FAKE_APPLE"), "{settings}: {err}");
    }
}

#[test]
fn an_engine_is_told_and_reported() {
    let here = tempfile::tempdir().unwrap();
    let told = on_fake(here.path(), r#"{"chip": "m2"}"#, &["doctor", "--json"]);
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(text.contains("Apple M2") && text.contains("right answer"), "{text}");
}

#[test]
fn an_experiment_wants_a_yes_and_is_ended_at_its_limit() {
    let here = tempfile::tempdir().unwrap();
    let (out, _) = expect(0, here.path(), &["doctor", "--experiment", "0"]);
    assert_eq!(out.lines().count(), 9, "{out}");
    expect(2, here.path(), &["doctor", "--experiment", "17"]);
    expect(3, here.path(), &["doctor", "--experiment", "9", "--yes"]);
    let (_, err) = expect(2, here.path(), &["doctor", "--experiment", "4"]);
    assert!(err.contains("known risks") && err.contains("--yes"), "{err}");
    let done = on_fake(here.path(), "{}", &["doctor", "--experiment", "2", "--yes"]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success() && text.contains("input_symbols"), "{text}");
    let start = std::time::Instant::now();
    let hangs = on_fake(here.path(), r#"{"delay_ms": 60000}"#, &["doctor", "--experiment", "4", "--yes", "--limit", "2"]);
    assert!(start.elapsed().as_secs() < 30, "ended at its limit");
    assert_eq!(hangs.status.code(), Some(1));
    assert!(String::from_utf8(hangs.stdout).unwrap().contains("ended at the time limit"));
}
