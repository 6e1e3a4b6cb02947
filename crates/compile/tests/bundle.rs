//! Bundles: written whole or not at all, read back as the same computation, with weights streamed.
#![allow(clippy::expect_used)] // a failed step is a failed test

mod common;

use aneforge_compile::bundle::{MANIFEST, TEXT, WEIGHTS};
use aneforge_compile::{CompileError, CompileOptions, Manifest, compile};
use aneforge_core::{DType, Graph, Target, TensorType, Weight};
use aneforge_map::Mapping;
use aneforge_mil::Dialect;
use common::resolved;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn layer() -> (Graph, aneforge_core::Tensor) {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 32]);
    let numbers: Vec<f64> = (0..32 * 32).map(|i| f64::from(i % 17) / 16.0 - 0.5).collect();
    let weight = graph.values(DType::Fp16, &[32, 32], &numbers);
    let y = x.matmul(&weight).relu() * 0.5;
    (graph, y)
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("folder")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_bundle_holds_text_weights_and_a_manifest_that_match() {
    let parent = tempfile::tempdir().expect("folder");
    let (_graph, y) = layer();
    for (target, dialect) in [(Target::Generic, Dialect::Modern), ("m1".parse().expect("chip"), Dialect::Old)] {
        let options = CompileOptions { target, dialect, ..CompileOptions::default() };
        let compiled = compile(&[("y", &y)], &options).expect("compiles");
        let folder = parent.path().join(format!("{target}.ane"));
        let written = compiled.write(&folder).expect("written");
        assert_eq!(files(&folder), [MANIFEST, TEXT, WEIGHTS]);
        let text = std::fs::read_to_string(folder.join(TEXT)).expect("text");
        assert!(compiled.body.same_computation(&resolved(&text, &folder)), "{text}");
        let read: Manifest = serde_json::from_slice(&std::fs::read(folder.join(MANIFEST)).expect("manifest")).expect("JSON");
        assert_eq!(read, written);
        assert_eq!(read.target, target.to_string());
        assert_eq!((read.inputs[0].name.as_str(), read.outputs[0].name.as_str()), ("x", "y"));
        for file in &read.files {
            let bytes = std::fs::read(folder.join(&file.name)).expect("file");
            assert_eq!(file.bytes, bytes.len() as u64);
            assert_eq!(file.xxh3, format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes)));
        }
    }
    assert_eq!(files(parent.path()), ["generic.ane", "m1.ane"], "nothing temporary is left");
}

#[test]
fn an_older_bundle_is_replaced_and_anything_else_is_left_alone() {
    let parent = tempfile::tempdir().expect("folder");
    let (_graph, y) = layer();
    let compiled = compile(&[("y", &y)], &CompileOptions::default()).expect("compiles");
    let folder = parent.path().join("model.ane");
    compiled.write(&folder).expect("written");
    compiled.write(&folder).expect("replaced");
    let mine = parent.path().join("documents");
    std::fs::create_dir(&mine).expect("folder");
    std::fs::write(mine.join("letter.txt"), "dear").expect("file");
    assert!(matches!(compiled.write(&mine), Err(CompileError::Write { .. })));
    let file = parent.path().join("file");
    std::fs::write(&file, "x").expect("file");
    assert!(matches!(compiled.write(&file), Err(CompileError::Write { .. })));
    assert_eq!(files(parent.path()), ["documents", "file", "model.ane"]);
    assert_eq!(files(&mine), ["letter.txt"]);
}

#[test]
fn a_folder_is_replaced_only_if_nothing_but_a_bundle_would_be_lost() {
    let parent = tempfile::tempdir().expect("folder");
    let (_graph, y) = layer();
    let compiled = compile(&[("y", &y)], &CompileOptions::default()).expect("compiles");
    // Web applications have a manifest.json of their own.
    let application = parent.path().join("application");
    std::fs::create_dir(&application).expect("folder");
    std::fs::write(application.join(MANIFEST), "{\"name\": \"shop\"}").expect("file");
    std::fs::write(application.join("shop.js"), "work of years").expect("file");
    let error = compiled.write(&application).expect_err("another tool's folder");
    assert!(error.to_string().contains("not a bundle"), "{error}");
    assert_eq!(files(&application), [MANIFEST, "shop.js"]);
    let bundle = parent.path().join("model.ane");
    compiled.write(&bundle).expect("written");
    std::fs::write(bundle.join("notes.txt"), "mine").expect("file");
    let error = compiled.write(&bundle).expect_err("a file would be lost");
    assert!(error.to_string().contains("other files"), "{error}");
    assert_eq!(std::fs::read(bundle.join("notes.txt")).expect("kept"), b"mine");
    let error = compiled.write(Path::new(".")).expect_err("the current folder");
    assert!(error.to_string().contains("current folder"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_bundle_stays_a_link() {
    let (here, there) = (tempfile::tempdir().expect("folder"), tempfile::tempdir().expect("folder"));
    let (_graph, y) = layer();
    let compiled = compile(&[("y", &y)], &CompileOptions::default()).expect("compiles");
    let (link, real) = (here.path().join("link"), there.path().join("real"));
    std::fs::create_dir(&real).expect("folder");
    std::os::unix::fs::symlink(&real, &link).expect("link");
    compiled.write(&link).expect("written");
    assert!(std::fs::symlink_metadata(&link).expect("there").is_symlink());
    assert_eq!(files(&real), [MANIFEST, TEXT, WEIGHTS]);
}

#[test]
fn a_weight_that_cannot_be_read_leaves_nothing_behind() {
    let parent = tempfile::tempdir().expect("folder");
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 64]);
    let fails = Weight::computed([64, 64], Arc::new(|_| Err(aneforge_core::WeightError::Other("the disk went away".to_string()))));
    let y = x.matmul(&graph.weight(fails));
    let compiled = compile(&[("y", &y)], &CompileOptions::default()).expect("compiles");
    let error = compiled.write(&parent.path().join("model.ane")).expect_err("cannot be written");
    let message = error.to_string();
    assert!(message.contains("constant \"") && message.contains("the disk went away"), "{message}");
    assert!(files(parent.path()).is_empty());
}

#[test]
fn port_names_are_given_once() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2]);
    let error = compile(&[("y", &x.relu()), ("y", &x.exp())], &CompileOptions::default());
    assert!(error.is_err_and(|error| error.to_string().contains("\"y\"")));
    let error = compile(&[("x", &x.relu())], &CompileOptions::default());
    assert!(error.is_err_and(|error| error.to_string().contains("\"x\"")));
}

/// Anonymous resident memory of this process in bytes.
#[cfg(target_os = "linux")]
fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("RssAnon")).expect("RssAnon");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("a number") * 1024
}

#[test]
#[cfg(target_os = "linux")]
fn weights_stream_through_little_memory() {
    let parent = tempfile::tempdir().expect("folder");
    let source = parent.path().join("weights.f32");
    let (layers, width) = (6, 3072);
    let bytes = (layers * width * width * 4) as u64;
    // A hole in the file reads as zeros: large, yet quick to make.
    File::create(&source).and_then(|file| file.set_len(bytes)).expect("file");
    let mapping = Arc::new(Mapping::open(&source).expect("mapped"));
    let graph = Graph::new();
    let mut x = graph.input("x", DType::Fp16, &[1, width]);
    for layer in 0..layers {
        let ty = TensorType::new(DType::Fp16, [width, width]);
        let weight = Weight::from_mapping(ty, DType::Fp32, mapping.clone(), layer * width * width * 4).expect("a weight");
        x = x.matmul(&graph.weight(weight));
    }
    let (peak, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let sampler = std::thread::spawn({
        let (peak, done) = (peak.clone(), done.clone());
        move || {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous(), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    });
    compile(&[("y", &x)], &CompileOptions::default()).expect("compiles").write(&parent.path().join("model.ane")).expect("written");
    done.store(true, Ordering::Relaxed);
    sampler.join().expect("sampler");
    let (peak, limit) = (peak.load(Ordering::Relaxed), bytes * 3 / 10 + 100_000_000);
    assert!(peak > 0 && peak <= limit, "{peak} bytes of anonymous memory for {bytes} bytes of weights");
}

#[test]
fn states_stand_in_the_manifest_and_survive_every_pass() {
    let folder = common::folder();
    let body = common::body(
        "func main<ios18>(tensor<fp16, [2]> x, state<tensor<fp16, [2]>> sum) {
            tensor<fp16, [2]> before = read_state(input = sum);
            tensor<fp16, [2]> same = identity(x = before);
            tensor<fp16, [2]> after = add(x = same, y = x);
            write_state(input = sum, data = after);
            tensor<fp16, [2]> y = relu(x = x);
        } -> (y);",
        &folder,
    );
    for target in [Target::Generic, "m1".parse().expect("chip")] {
        let options = CompileOptions { target, dialect: Dialect::Modern, ..CompileOptions::default() };
        let compiled = aneforge_compile::compile_body(body.clone(), &options).expect("compiles");
        let parent = tempfile::tempdir().expect("folder");
        let place = parent.path().join("bundle");
        let manifest = compiled.write(&place).expect("written");
        let entry = &manifest.state[0];
        assert_eq!((entry.name.as_str(), entry.dtype.as_str(), entry.shape.as_slice()), ("sum", "fp16", [2].as_slice()));
        assert_eq!((manifest.inputs.len(), manifest.state.len()), (1, 1));
        let again = resolved(&std::fs::read_to_string(place.join(TEXT)).expect("text"), &place);
        let kept = again.producer(again.states[0].result).expect("an operation");
        assert_eq!(kept.op.name, "add");
        assert_eq!(kept.arguments[0].values(), [again.states[0].input], "{target}: the identity is gone");
    }
}
