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
    assert_eq!(err.matches("line 2").count(), 1, "the place is said once: {err}");
}

/// Reports come from strangers: a damaged one is told with the file and what is wrong, whichever command it is given to.
#[test]
fn a_damaged_report_is_told_and_never_a_device() {
    let here = tempfile::tempdir().unwrap();
    let good = here.path().join("good.json");
    expect(0, here.path(), &["doctor", "--report", good.to_str().unwrap(), "--device", "emulator:m1"]);
    let text = std::fs::read_to_string(&good).unwrap();
    let value = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        change(&mut value);
        serde_json::to_vec(&value).unwrap()
    };
    let cases: [(&str, Vec<u8>); 11] = [
        ("cut", text.as_bytes()[..text.len() / 2].to_vec()),
        ("empty", Vec::new()),
        ("zeros", vec![0; 100]),
        ("no UTF-8", [&text.as_bytes()[..100], &[0xff, 0xfe]].concat()),
        ("a list", b"[1, 2]".to_vec()),
        ("deep", [vec![b'['; 100_000], vec![b']'; 100_000]].concat()),
        ("a later layout", value(&|report| report["schema"] = 99.into())),
        ("no chip", value(&|report| report["numerics"]["chip"] = "m99".into())),
        ("short table", value(&|report| report["numerics"]["tables"][0]["results"] = "AAAA".into())),
        ("no base64", value(&|report| report["numerics"]["tables"][1]["results"] = "!".into())),
        ("no probe", value(&|report| report["numerics"]["probes"][0]["mil"] = "program(".into())),
    ];
    let file = here.path().join("bad.json");
    let device = format!("emulator:{}", file.display());
    for (what, bytes) in cases {
        std::fs::write(&file, bytes).unwrap();
        let (out, err) = expect(2, here.path(), &["conform", "--device", &device, "--filter", "tanh"]);
        assert!(out.is_empty() && err.contains("bad.json") && !err.contains("panicked"), "{what}: {out}{err}");
    }
    for place in ["emulator:/nowhere/report.json", "emulator:/", "emulator:."] {
        expect(2, here.path(), &["conform", "--device", place, "--filter", "tanh"]);
    }
}

#[cfg(unix)]
#[test]
fn a_report_is_written_whole_where_it_may_be_or_the_reason_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("report.json");
    std::fs::write(here.path().join("any"), "").unwrap();
    let report =
        |place: &std::path::Path| ["doctor", "--device", "emulator:m1", "--report", place.to_str().unwrap()].map(str::to_string);
    let run = |code: i32, place: &std::path::Path| expect(code, here.path(), &report(place).each_ref().map(String::as_str));
    run(0, &file);
    let mode = |name: &str| std::fs::metadata(here.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("report.json"), mode("any"));
    for place in [here.path().join("none/report.json"), here.path().to_path_buf(), "/proc/report.json".into(), file.join("below")] {
        let (_, err) = run(2, &place);
        assert!(err.contains("cannot write") && err.contains(place.to_str().unwrap()), "{err}");
        // Before the device was asked, for hours perhaps.
        let (out, err) = expect(2, here.path(), &["conform", "--device", "cpu", "--json", place.to_str().unwrap()]);
        assert!(out.is_empty() && err.contains("cannot write") && !err.contains("seed"), "{err}");
    }
    run(0, "/dev/null".as_ref());
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
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
