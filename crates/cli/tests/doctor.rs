//! `aneforge doctor`: the report and what is made of it.

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
    assert!(err.contains("engine") && !file.exists(), "{err}");
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
