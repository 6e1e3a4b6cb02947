//! The weights of compiled bundles through the storage classes of coremltools, Apple's own code.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use aneforge::compile;
use aneforge::mil::BlobFile;
use aneforge_testkit::oracle;
use common::{graphs::networks, options, written};
use serde_json::{Value, json};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn coremltools_reads_every_weight_of_a_compiled_bundle() {
    let sample = networks().into_iter().find(|sample| sample.name == "residual network").unwrap();
    let bundle = written(&compile(&sample.named_outputs(), &options("m1")).unwrap());
    let path = bundle.folder.path().join("weights.bin");
    let file = BlobFile::open(&path).unwrap();
    let views: Vec<_> = file.iter().map(Result::unwrap).collect();
    assert!(views.len() >= 8, "{} blobs", views.len());
    let requests: Vec<Value> = views.iter().map(|view| json!({"offset": view.offset, "dtype": view.dtype.keyword()})).collect();
    let Some(answer) = oracle("blob_check.py", &["read", path.to_str().unwrap()], &json!(requests).to_string()) else { return };
    let answers: Vec<Value> = serde_json::from_str(&answer).unwrap();
    assert_eq!(answers.len(), views.len());
    for (view, answer) in views.iter().zip(&answers) {
        assert_eq!(answer["hex"].as_str(), Some(hex(view.bytes).as_str()), "byte {}", view.offset);
    }
}
