//! Text and weight files of other writers: the Python package aneforge 0.4 and coremltools' own storage code.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_mil::op::builtin;
use aneforge_mil::{
    BlobFile, BlobFileWriter, BlobFolder, DType, Dialect, EmitOptions, TensorType, ValueKind, emit, parse, print, resolve,
};
use serde_json::{Value, json};
use tempfile::TempDir;

#[test]
fn programs_of_the_python_package_read_print_and_emit_to_the_same_computation() {
    let Some(folder) = aneforge_testkit::fixtures("upstream") else { return };
    let mut weights = 0;
    let mut cases: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|case| case.join("model.mil").is_file());
    assert!(cases.len() >= 40, "only {} cases in {}", cases.len(), folder.display());
    for case in &cases {
        let name = case.display();
        let text = std::fs::read_to_string(case.join("model.mil")).unwrap();
        let program = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(parse(&print(&program)).unwrap(), program, "{name}");
        let old = program.to_dialect(Dialect::Old);
        assert_eq!(parse(&print(&old)).unwrap(), old, "{name}");

        let blobs = BlobFolder::new(case);
        if name.to_string().ends_with("conv_blockwise") || name.to_string().ends_with("bmm_w_blockwise") {
            // Their scale has two axes, whatever the weight's rank, which MIL does not have.
            let refused = resolve(&program, "main", builtin(), &blobs).unwrap_err().to_string();
            assert!(refused.contains("breaks rule C1"), "{name}: {refused}");
            continue;
        }
        let body = resolve(&program, "main", builtin(), &blobs).unwrap_or_else(|error| panic!("{name}: {}", error.render(&text)));
        body.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
        weights += body.values.iter().filter(|value| matches!(value.kind, ValueKind::Constant(_))).count();

        let file = BlobFile::open(case.join("weights.bin")).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(file.iter().all(|view| view.is_ok()), "{name}");

        let ours = TempDir::new().unwrap();
        let mut writer = BlobFileWriter::create(ours.path().join("weights.bin")).unwrap();
        let emitted = emit(&body, &EmitOptions::default(), writer.blobs().unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
        writer.finish().unwrap();
        let back = resolve(&parse(&print(&emitted)).unwrap(), "main", builtin(), &BlobFolder::new(ours.path())).unwrap();
        assert!(back.same_computation(&body), "{name}:\n{}", print(&emitted));
    }
    assert!(weights > cases.len(), "the cases hold hardly any constants");
}

/// Element types, elements, and their bytes as the format packs them.
fn samples() -> Vec<(DType, usize, Vec<u8>)> {
    vec![
        (DType::Fp16, 3, vec![0, 0x3c, 0xff, 0x7b, 1, 0]),
        (DType::Int8, 5, vec![1, 2, 255, 128, 127]),
        (DType::Fp32, 2, vec![0, 0, 128, 63, 0, 0, 0, 192]),
        (DType::UInt4, 5, vec![0xf0, 0x37, 0x09]),
        (DType::UInt1, 9, vec![0b1010_0101, 1]),
        (DType::Int32, 1, vec![1, 2, 3, 4]),
        (DType::UInt3, 3, vec![0b10_001_111, 1]),
    ]
}

#[test]
fn apples_reader_finds_what_our_writer_wrote() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("weights.bin");
    let mut writer = BlobFileWriter::create(&path).unwrap();
    let mut requests = Vec::new();
    for (dtype, count, bytes) in samples() {
        let offset = writer.blobs().unwrap().add_bytes(&TensorType::new(dtype, [count]), &bytes).unwrap();
        requests.push(json!({ "offset": offset, "dtype": dtype.keyword() }));
    }
    writer.finish().unwrap();
    let request = json!(requests).to_string();
    let Some(answer) = aneforge_testkit::oracle("blob_check.py", &["read", path.to_str().unwrap()], &request) else { return };
    let answers: Vec<Value> = serde_json::from_str(&answer).unwrap();
    for ((dtype, count, bytes), answer) in samples().into_iter().zip(answers) {
        assert_eq!(answer["hex"], json!(hex(&unpacked(dtype, count, &bytes))), "{dtype}: {answer}");
    }
}

#[test]
fn our_reader_finds_what_apples_writer_wrote() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("weights.bin");
    let values: Vec<_> = samples()
        .into_iter()
        .map(|(dtype, count, bytes)| json!({ "dtype": dtype.keyword(), "hex": hex(&unpacked(dtype, count, &bytes)) }))
        .collect();
    let request = json!(values).to_string();
    let Some(answer) = aneforge_testkit::oracle("blob_check.py", &["write", path.to_str().unwrap()], &request) else { return };
    let offsets: Vec<Value> = serde_json::from_str(&answer).unwrap();
    let file = BlobFile::open(&path).unwrap();
    let walked: Vec<_> = file.iter().map(|view| view.unwrap().offset).collect();
    for (((dtype, count, bytes), answer), walked) in samples().into_iter().zip(offsets).zip(walked) {
        let offset = answer["offset"].as_u64().unwrap();
        assert_eq!(walked, offset);
        let weight = file.weight(offset, &TensorType::new(dtype, [count])).unwrap();
        assert_eq!(weight.direct_bytes().unwrap(), bytes, "{dtype}");
    }
}

/// One byte per element for elements narrower than a byte, else the bytes themselves.
fn unpacked(dtype: DType, count: usize, bytes: &[u8]) -> Vec<u8> {
    if dtype.bits() >= 8 {
        return bytes.to_vec();
    }
    aneforge_mil::unpack(dtype, bytes, count).unwrap().into_iter().map(|value| value as u8).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
