//! The direction of imports: a crate sees only crates that come before it in the order of ARCHITECTURE.md.
#![allow(clippy::expect_used)]

use std::process::Command;

/// Crates in the order in which data flows, with those that each may import.
const ORDER: &[&str] = &[
    "aneforge-map",
    "aneforge-staging",
    "aneforge-kernel",
    "aneforge-mil",
    "aneforge-native",
    "aneforge-sys",
    "aneforge-mlpackage",
    "aneforge-core",
    "aneforge-cost",
    "aneforge-compile",
    "aneforge-runtime",
    "aneforge-tune",
    "aneforge-nn",
    "aneforge-io",
    "aneforge-train",
    "aneforge-conform",
    "aneforge",
    "aneforge-cli",
    "aneforge-capi",
    "aneforge-py",
];

/// Examples: they import the facade, as people's own crates do.
const EXAMPLES: &[&str] = &["aneforge-own-operator"];

/// Helpers of the tests, which nothing but tests may import.
const HELPERS: &[&str] =
    &["aneforge-testkit", "aneforge-fake-apple", "aneforge-fake-client", "aneforge-darwin-abi", "aneforge-xtask"];

fn metadata() -> serde_json::Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

#[test]
fn crates_import_only_what_comes_before_them() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    for package in packages {
        let name = package["name"].as_str().expect("name");
        let position = ORDER.iter().position(|other| *other == name);
        let known = position.is_some() || HELPERS.contains(&name) || EXAMPLES.contains(&name);
        assert!(known, "{name} is missing in the order of crates");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let (imported, kind) = (dependency["name"].as_str().expect("name"), dependency["kind"].as_str());
            if HELPERS.contains(&imported) {
                assert!(kind == Some("dev") || HELPERS.contains(&name), "{name} imports {imported} outside its tests");
                continue;
            }
            assert!(!EXAMPLES.contains(&imported), "{name} imports the example {imported}");
            let Some(at) = ORDER.iter().position(|other| *other == imported) else { continue };
            assert!(!EXAMPLES.contains(&name) || imported == "aneforge", "the example {name} imports {imported} past the facade");
            if kind.is_none() {
                assert!(position.is_none_or(|position| at < position), "{name} imports {imported}, which comes after it");
            }
        }
    }
}

#[test]
fn unsafe_code_stands_only_where_the_architecture_says() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates"));
    let mut waiting = vec![root.to_path_buf()];
    let mut offenders = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).expect("folder") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let inside = path.strip_prefix(root).expect("below crates").to_string_lossy().replace('\\', "/");
            let allowed = inside.starts_with("map/")
                || inside.starts_with("kernel/")
                || inside.starts_with("sys/")
                || inside.starts_with("capi/")
                || inside.contains("/tests/")
                || inside.contains("/benches/");
            if path.extension().is_some_and(|extension| extension == "rs") && !allowed {
                let text = std::fs::read_to_string(&path).expect("source");
                if text.lines().any(|line| line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("unsafe impl"))
                {
                    offenders.push(inside);
                }
            }
        }
    }
    assert!(offenders.is_empty(), "unsafe code outside map, kernel, sys and capi: {offenders:?}");
}
