//! Weights stream: compiling takes far less memory than the weights, watched from outside through the kernel's accounts.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helper functions of tests

mod common;

use common::{command, text};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Anonymous memory that a process holds now, in bytes; mapped files do not count.
fn anonymous(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kibibytes: u64 = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Largest amount seen while `aneforge compile` runs.
fn peak(model: &Path) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("bundle");
    let mut child = command(folder.path(), &["compile", text(model), "-o", text(&output)]).stdout(Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    loop {
        peak = peak.max(anonymous(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return peak;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn compiling_holds_at_most_three_tenths_of_the_weights_and_a_hundred_megabytes() {
    let Some(fixtures) = std::env::var_os("ANEFORGE_FIXTURES").map(PathBuf::from) else {
        println!("not run: ANEFORGE_FIXTURES is not set (make test sets it)");
        return;
    };
    for name in ["resnet18.safetensors", "vit_b_16.safetensors"] {
        let model = fixtures.join("torchvision").join(name);
        let bytes = std::fs::metadata(&model).unwrap().len();
        let peak = peak(&model);
        println!("{name}: {:.1} MB of weights, {:.1} MB anonymous at most", bytes as f64 / 1e6, peak as f64 / 1e6);
        assert!(peak > 0 && peak as f64 <= 0.3 * bytes as f64 + 100e6, "{name}: {peak} for {bytes}");
    }
}
