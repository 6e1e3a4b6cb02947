//! Damaged bundles and wrong calls: a typed error that says what and where, or the right answer; never a panic, never a guess.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use aneforge::mil::{BlobFile, NoBlobs, op::builtin, parse, resolve};
use aneforge::runtime::Program;
use aneforge::{DType, DeviceError, Executable, Graph, HostArray, Window, compile, open};
use aneforge_testkit::Random;
use common::graphs::Maker;
use common::{Bundle, Inputs, options, run, written};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A program with weights of several kinds, and its inputs.
fn sample() -> (Bundle, Inputs) {
    let mut make = Maker::new(11);
    let x = make.input("x", &[3, 24], -1.0, 1.0);
    let (up, bias) = (make.dense(40, 24), make.weight(&[40], -0.2, 0.2));
    let (gamma, beta) = (make.weight(&[40], 0.5, 1.5), make.weight(&[40], -0.3, 0.3));
    let y = x.linear(&up, Some(&bias)).gelu("EXACT").layer_norm(-1, Some(&gamma), Some(&beta), 1e-5);
    let compiled = compile(&[("y", &y)], &options("generic")).unwrap();
    let inputs = make.sample("sample", 0.0, &[]).inputs;
    (written(&compiled), inputs)
}

/// Loads and runs a bundle; the program may be refused at any step.
fn attempt(folder: &Path, inputs: &Inputs) -> Result<Vec<f64>, DeviceError> {
    let program = Arc::new(Program::open(folder)?);
    let loaded = open("reference")?.load(&program)?;
    let arrays: Vec<HostArray> = inputs.iter().map(|(_, array)| HostArray::from_array(array).unwrap()).collect();
    Ok(loaded.run(&arrays.iter().collect::<Vec<_>>())?[0].to_array().data)
}

#[test]
fn a_weight_file_cut_anywhere_is_refused_with_the_place() {
    let (bundle, inputs) = sample();
    let path = bundle.folder.path().join("weights.bin");
    let whole = std::fs::read(&path).unwrap();
    let right = attempt(bundle.folder.path(), &inputs).unwrap();
    let mut refused = 0;
    for end in (0..whole.len()).step_by(64).chain([1, 63, 65, whole.len() - 1]) {
        std::fs::write(&path, &whole[..end]).unwrap();
        match attempt(bundle.folder.path(), &inputs) {
            Ok(got) => assert_eq!(got, right, "cut at {end}"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("weights.bin") && text.contains("byte"), "cut at {end}: {text}");
                assert!(matches!(error, DeviceError::Program { .. }), "cut at {end}: {text}");
                refused += 1;
            }
        }
    }
    // Only what lies behind the last blob's data may be missing.
    assert!(refused >= whole.len() / 64, "{refused} of {} cuts refused", whole.len() / 64);
}

#[test]
fn every_damaged_byte_of_a_header_or_descriptor_is_refused_or_harmless() {
    let (bundle, inputs) = sample();
    let path = bundle.folder.path().join("weights.bin");
    let whole = std::fs::read(&path).unwrap();
    let right = attempt(bundle.folder.path(), &inputs).unwrap();
    let file = BlobFile::open(&path).unwrap();
    let records: Vec<usize> = std::iter::once(0).chain(file.iter().map(|blob| blob.unwrap().offset as usize)).collect();
    assert!(records.len() >= 4);
    drop(file);
    let mut wrong = Vec::new();
    for &record in &records {
        for at in record..record + 64 {
            for flip in [0x01, 0x40, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip;
                std::fs::write(&path, &damaged).unwrap();
                match attempt(bundle.folder.path(), &inputs) {
                    Ok(got) if got == right => {}
                    Ok(_) => wrong.push(format!("byte {at} (record at {record}) ^ {flip:#04x} gives another answer")),
                    Err(error) => assert!(error.to_string().contains("weights.bin"), "byte {at} ^ {flip:#04x}: {error}"),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} silent faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_missing_file_is_named() {
    let (bundle, inputs) = sample();
    let folder = bundle.folder.path();
    std::fs::remove_file(folder.join("weights.bin")).unwrap();
    let error = attempt(folder, &inputs).unwrap_err();
    assert!(error.to_string().contains("weights.bin") && error.to_string().contains("line "), "{error}");
    std::fs::remove_file(folder.join("model.mil")).unwrap();
    let error = attempt(folder, &inputs).unwrap_err();
    assert!(error.to_string().contains("model.mil"), "{error}");
    let error = Program::open(folder.join("nowhere")).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn the_program_runs_whatever_the_manifest_says() {
    // The manifest is for people and tools; what runs is the text and the weights.
    let (bundle, inputs) = sample();
    let path = bundle.folder.path().join("manifest.json");
    let right = attempt(bundle.folder.path(), &inputs).unwrap();
    for garbage in [&b""[..], b"{", b"\xff\xfe\x00", b"[1, 2, 3]", b"{\"schema\": 99}"] {
        std::fs::write(&path, garbage).unwrap();
        assert_eq!(attempt(bundle.folder.path(), &inputs).unwrap(), right);
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(attempt(bundle.folder.path(), &inputs).unwrap(), right);
}

#[test]
fn a_text_cut_at_any_byte_is_refused_with_line_and_column() {
    let (bundle, _) = sample();
    let end = bundle.text.trim_end().len();
    for cut in 0..end {
        let error = Program::from_text("cut.mil", &bundle.text[..cut], &NoBlobs).expect_err("half a program");
        let text = error.to_string();
        assert!(text.contains("cut.mil") && text.contains("line ") && text.contains("column "), "cut at {cut}: {text}");
    }
}

#[test]
fn damaged_texts_are_refused_or_read_and_never_take_the_process_with_them() {
    let (bundle, _) = sample();
    let blobs = aneforge::mil::BlobFolder::new(bundle.folder.path());
    let (mut random, mut refused, mut read) = (Random::new(2000), 0, 0);
    for round in 0..2000 {
        let mut bytes = bundle.text.clone().into_bytes();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = b"()[]{}<>=,;\"0123456789-+xpe. \n"[random.below(30)],
                2 => {
                    bytes.remove(at);
                }
                _ => {
                    let (from, length) = (random.below(bytes.len()), random.below(40));
                    let piece: Vec<u8> = bytes[from..(from + length).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let begin = Instant::now();
        let Ok(program) = parse(&text) else {
            refused += 1;
            continue;
        };
        match program.functions.first().map(|function| resolve(&program, &function.name, builtin(), &blobs)) {
            Some(Ok(body)) => {
                body.verify().unwrap_or_else(|error| panic!("round {round}: resolved to an illegal body: {error}\n{text}"));
                let program = Arc::new(Program::from_body("damaged", body));
                for device in ["null", "reference", "cpu"] {
                    let _ = open(device).unwrap().load(&program);
                }
                read += 1;
            }
            Some(Err(error)) => assert!(error.render(&text).len() < 4000, "round {round}"),
            None => refused += 1,
        }
        assert!(begin.elapsed() < Duration::from_secs(5), "round {round} took {:?}:\n{text}", begin.elapsed());
    }
    assert!(refused > 200 && read > 20, "{refused} refused, {read} read: the damage is too small or too large");
}

#[test]
fn wrong_calls_are_refused_and_name_the_port() {
    let graph = Graph::new();
    let (a, b) = (graph.input("a", DType::Fp16, &[2, 3]), graph.input("b", DType::Fp16, &[3]));
    let bundle = written(&compile(&[("y", &(&a + &b))], &options("generic")).unwrap());
    let good = HostArray::zeros(DType::Fp16, [2, 3]);
    let row = HostArray::zeros(DType::Fp16, [3]);
    let (flat, wide) = (HostArray::zeros(DType::Fp16, [6]), HostArray::zeros(DType::Fp32, [2, 3]));
    for device in ["null", "reference", "cpu", "emulator:m1"] {
        let loaded = open(device).unwrap().load(&bundle.program).unwrap();
        let refuse = |inputs: &[(&str, &HostArray)], words: &[&str]| {
            let text = loaded.run_named(inputs).unwrap_err().to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{device}: {text}");
        };
        refuse(&[("a", &flat), ("b", &row)], &["\"a\"", "[2, 3]", "[6]"]);
        refuse(&[("a", &wide), ("b", &row)], &["\"a\"", "fp16", "fp32"]);
        refuse(&[("a", &good)], &["\"b\"", "a, b"]);
        refuse(&[("a", &good), ("c", &row)], &["\"c\"", "a, b"]);
        refuse(&[("a", &good), ("a", &good), ("b", &row)], &["\"a\"", "twice"]);
        let text = loaded.run(&[&good]).unwrap_err().to_string();
        assert!(text.contains('2') && text.contains('1') && text.contains("a, b"), "{device}: {text}");
        raw_buffers(&*loaded, device);
        // A refused call leaves the program as it was.
        assert!(loaded.run(&[&good, &row]).is_ok(), "{device}");
    }
}

fn raw_buffers(loaded: &dyn Executable, device: &str) {
    let (a, b, mut y) = ([0u8; 12], [0u8; 6], [0u8; 12]);
    assert!(loaded.execute(&[&a, &b], &mut [&mut y]).is_ok());
    let short = loaded.execute(&[&a[..11], &b], &mut [&mut y]).unwrap_err().to_string();
    assert!(short.contains("\"a\"") && short.contains("12") && short.contains("11"), "{device}: {short}");
    let long = loaded.execute(&[&a, &b], &mut [&mut [0u8; 14]]).unwrap_err().to_string();
    assert!(long.contains("\"y\"") && long.contains("14"), "{device}: {long}");
    assert!(loaded.execute(&[&a, &b], &mut []).is_err() && loaded.execute(&[], &mut [&mut y]).is_err(), "{device}");
}

/// Kilobytes that this process holds in anonymous memory; `None` where the system doesn't say.
fn anonymous_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// A program of one input and a few statements; the last one makes `y`.
fn program(input: &str, statements: &[String]) -> String {
    format!("program(1.3)\n{{\nfunc main<ios18>({input} x) {{\n{};\n}} -> (y);\n}}\n", statements.join(";\n"))
}

fn huge_programs(extent: &str) -> Vec<String> {
    let row = format!("tensor<fp16, [{extent}]>");
    let square = format!("tensor<fp16, [{extent}, {extent}]>");
    let picture = format!("tensor<fp16, [1, 1, {extent}, 2]>");
    let most = i32::MAX;
    let relu = |ty: &str| vec![format!("{ty} y = relu(x = x)[name = string(\"y\")]")];
    let tile = format!("{row} y = tile(x = x, reps = tensor<int32, [1]>([{most}]))[name = string(\"y\")]");
    let constant = format!("{row} c = const()[name = string(\"c\"), val = {row}([1.0])]");
    let sum = format!("{row} y = add(x = c, y = c)[name = string(\"y\")]");
    let border = format!("pad = tensor<int32, [8]>([0, 0, 0, 0, {most}, {most}, 0, 0])");
    let constants = "mode = string(\"constant\"), constant_val = fp16(0.0)";
    let pad = format!("{picture} y = pad(x = x, {border}, {constants})[name = string(\"y\")]");
    vec![
        program(&row, &relu(&row)),
        program(&square, &relu(&square)),
        program("tensor<fp16, [2]>", &[tile]),
        program("tensor<fp16, [2]>", &[constant, sum]),
        program("tensor<fp16, [1, 1, 2, 2]>", &[pad]),
    ]
}

#[test]
fn huge_declared_shapes_are_refused_before_anything_is_allocated() {
    let before = anonymous_memory();
    for extent in ["4611686018427387904", "1099511627776", "18446744073709551615", "99999999999999999999999"] {
        for text in huge_programs(extent) {
            let Ok(program) = Program::from_text("huge.mil", &text, &NoBlobs) else { continue };
            let program = Arc::new(program);
            for device in ["null", "reference", "cpu", "emulator:m1"] {
                if let Ok(loaded) = open(device).unwrap().load(&program) {
                    assert!(loaded.run(&[&HostArray::zeros(DType::Fp16, [3])]).is_err(), "{device} ran {text}");
                }
            }
        }
    }
    if let (Some(before), Some(after)) = (before, anonymous_memory()) {
        assert!(after < before + 200_000, "{} MB were taken", (after - before) / 1000);
    }
}

#[test]
fn graphs_of_huge_tensors_are_errors_that_name_the_shape() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[usize::MAX / 2, 4]);
    let text = x.relu().check().unwrap_err().to_string();
    assert!(text.contains("input") && text.contains(&(usize::MAX / 2).to_string()), "{text}");
    let small = graph.input("small", DType::Fp16, &[2, 2]);
    let tiled = small.tile(&[i64::from(i32::MAX), i64::from(i32::MAX)]).tile(&[i64::from(i32::MAX), i64::from(i32::MAX)]);
    assert!(tiled.check().is_err());
    let empty = graph.input("empty", DType::Fp16, &[2, 0]);
    assert!(empty.check().is_err());
    let image = graph.input("image", DType::Fp16, &[1, 1, 4, 4]);
    assert!(image.max_pool(&Window::square(3).stride(0)).check().is_err());
    assert!(image.max_pool(&Window::square(i64::MAX)).check().is_err());
    assert!(image.avg_pool(&Window::square(2).padding(i64::MAX / 2)).check().is_err());
}

#[test]
fn a_failed_compilation_leaves_what_stood_there() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("kept");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("thesis.txt"), "years of work").unwrap();
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4]);
    let compiled = compile(&[("y", &x.relu())], &options("generic")).unwrap();
    let error = compiled.write(&target).unwrap_err().to_string();
    assert!(error.contains("kept"), "{error}");
    assert_eq!(std::fs::read_to_string(target.join("thesis.txt")).unwrap(), "years of work");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was left beside it");
    // A bundle is replaced.
    let place = folder.path().join("bundle");
    compiled.write(&place).unwrap();
    let other = compile(&[("y", &x.tanh())], &options("generic")).unwrap();
    other.write(&place).unwrap();
    assert!(std::fs::read_to_string(place.join("model.mil")).unwrap().contains("tanh"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    let ones: Inputs = vec![("x".to_string(), aneforge::Array::new(DType::Fp16, [4], vec![0.0; 4]))];
    assert_eq!(run("cpu", &Arc::new(Program::open(&place).unwrap()), &ones)[0].data, [0.0; 4]);
}
