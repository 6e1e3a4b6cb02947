//! Processes beside each other on the in-memory route: the class reads a folder that is named by the program's contents, so that all
//! processes of a user that have the program at hand have the same one.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::HostArray;
use aneforge_runtime::ane::AneRoute;
use aneforge_runtime::{Device, Program};
use aneforge_testkit::fake;
use common::engine::{engine, outputs};
use common::program;
use serde_json::json;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TEST: &str = "a_process_that_is_done_with_a_program_leaves_it_to_others_that_compile_it";
const CHILD: &str = "ANEFORGE_TEST_CHILD";

fn tripled() -> Arc<Program> {
    let text = r#"tensor<fp16, [1, 32]> y = mul(x = x, y = fp16(0x1.8p1))[name = string("tripled_by_two_processes")];"#;
    program("tensor<fp16, [1, 32]> x", text, "y")
}

/// Compiles, runs and drops the program in this process.
fn comes_and_goes() {
    let engine = engine(AneRoute::InMemory, json!({}));
    let executable = engine.load(&tripled());
    let one = HostArray::fp16_from_f32([1, 32], &[1.0; 32]).unwrap();
    let three = HostArray::fp16_from_f32([1, 32], &[3.0; 32]).unwrap();
    assert_eq!(outputs(&executable, &[one])[0], three.bytes());
}

/// The same in another process, this test's own program.
fn another_process() -> ExitStatus {
    let own = std::env::current_exe().unwrap();
    Command::new(own).args(["--exact", TEST]).env(CHILD, "1").status().unwrap()
}

/// The compiler takes its time before it reads the folder; meanwhile another process fills it, uses it and is done.
#[test]
fn a_process_that_is_done_with_a_program_leaves_it_to_others_that_compile_it() {
    if std::env::var_os(CHILD).is_some() {
        return comes_and_goes();
    }
    for _ in 0..2 {
        let engine = engine(AneRoute::InMemory, json!({ "faults": [{ "kind": "slow-compile", "ms": 3000 }] }));
        std::thread::scope(|scope| {
            let loading = scope.spawn(|| engine.device.load(&tripled()).map(drop));
            let start = Instant::now();
            while fake::counters()["compiles"] == json!(0) {
                assert!(start.elapsed() < Duration::from_secs(10), "the compiler was not called");
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(another_process().success());
            assert!(!loading.is_finished(), "the other process took longer than the compiler");
            loading.join().unwrap().unwrap_or_else(|error| panic!("{error}"));
        });
    }
    comes_and_goes();
}
