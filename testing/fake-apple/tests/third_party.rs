//! Text that another program wrote, of which its author says that it runs on an engine, is not refused.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod through_e5rt;

use serde_json::json;
use std::path::PathBuf;
use through_e5rt::{How, assert_clean, compile, diagnostics, set};

/// Programs of the PyPI package aneforge 0.4.0; none where the fixtures were not made.
fn programs() -> Vec<PathBuf> {
    let Some(fixtures) = std::env::var_os("ANEFORGE_FIXTURES") else {
        eprintln!("not run: ANEFORGE_FIXTURES is not set (make test sets it)");
        return Vec::new();
    };
    let folder = PathBuf::from(fixtures).join("upstream");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("model.mil"))
        .filter(|file| file.is_file())
        .collect();
    found.sort();
    assert!(found.len() > 100, "only {} programs", found.len());
    found
}

/// Programs that break a rule of their own operator: the scale of a weight in blocks has fewer axes than the weight, which the package
/// writes for more than two axes and says of no such program that it ran.
const BROKEN: [&str; 2] = ["bmm_w_blockwise", "conv_blockwise"];
/// Programs of operators that an M1 does not have (ANE guide, arXiv 2606.22283, appendix A).
const NOT_ON_M1: [&str; 3] = ["affine", "cos", "sin"];

#[test]
fn what_the_python_package_writes_passes_through_e5rt() {
    let cache = std::env::temp_dir().join(format!("fake-apple-third-party-{}", std::process::id()));
    for (chip, profile) in [("m5pro", "agreed"), ("m5pro", "strict"), ("m1max", "agreed"), ("m1max", "strict")] {
        set(json!({"chip": chip, "profile": profile}));
        for file in programs() {
            let name = file.parent().unwrap().file_name().unwrap().to_str().unwrap();
            let expected = !BROKEN.contains(&name) && (chip == "m5pro" || !NOT_ON_M1.contains(&name));
            match compile(&file, &cache, &How::default()) {
                Ok(library) => {
                    release!(e5rt_program_library_release, library);
                    assert!(expected, "{name} passes for {chip}, {profile}");
                }
                Err(_) => assert!(!expected, "{name} for {chip}, {profile}: {}", diagnostics()),
            }
        }
    }
    let _ = std::fs::remove_dir_all(cache);
    assert_clean();
}
