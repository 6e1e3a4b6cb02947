//! MIL text and weight files of an independent writer, the Python package aneforge 0.4.0: they parse, run on every device, and mean
//! what our own lowering of the same graph means. `testing/python/upstream_mil.py` makes them, with expected values by numpy.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod build;
mod case;
#[path = "../common/mod.rs"]
mod common;

use aneforge::compile;
use aneforge::runtime::Program;
use aneforge_testkit::{difference, fixtures};
use build::build;
use case::cases;
use common::{Inputs, keywords, options, resolved, run, written};
use std::collections::BTreeSet;

/// Inputs under the names that the package's program has for them: same order, other names.
fn renamed(program: &Program, inputs: &Inputs) -> Inputs {
    let body = program.body();
    assert_eq!(body.inputs.len(), inputs.len());
    body.inputs.iter().zip(inputs).map(|(&id, (_, array))| (body.value(id).name.clone(), array.clone())).collect()
}

#[test]
fn programs_of_the_package_give_what_numpy_gives_on_every_device() {
    let Some(cases) = cases() else { return };
    let mut faults = Vec::new();
    for case in cases.iter().filter(|case| case.lawful()) {
        let program = case.program();
        let inputs = renamed(&program, &case.inputs());
        for device in ["reference", "cpu", "emulator:m1", "emulator:m5"] {
            let got = &run(device, &program, &inputs)[0];
            let found = difference(&got.data, &case.expected);
            // f64 throughout: what is left is the rounding of constants in the file and of the result.
            let allowed = match device {
                "reference" => REFERENCE_TOLERANCE,
                "cpu" => case.tolerance(),
                _ => case.tolerance().max(engine_tables(&program)),
            };
            println!("{:24} {device:12} {:.2e} of {allowed:.2e}", case.name, found.worst);
            if found.worst > allowed {
                faults.push(format!("{} on {device}: {:.3e} > {allowed:.1e} at {}", case.name, found.worst, found.at));
            }
        }
        let zeros = &run("null", &program, &inputs)[0];
        assert_eq!(zeros.data.len(), case.expected.len());
        assert!(zeros.data.iter().all(|&value| value == 0.0));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// What the engine's tables of straight pieces, as the emulator models them, are off by: more where more was published.
fn engine_tables(program: &Program) -> f64 {
    let published = program.body().operations.iter().filter_map(|operation| operation.op.published_error);
    published.fold(1e-2, f64::max)
}

/// fp16 rounding of a result (2^-11) and of an operator's constants.
const REFERENCE_TOLERANCE: f64 = 1.5e-3;

#[test]
fn our_lowering_of_the_same_graph_means_the_same() {
    let Some(cases) = cases() else { return };
    let (mut faults, mut refused, mut same) = (Vec::new(), Vec::new(), 0);
    for case in cases.iter().filter(|case| case.lawful()) {
        let theirs = case.program();
        let (inputs, output) = (case.inputs(), build(case));
        let their_inputs = renamed(&theirs, &inputs);
        for target in ["generic", "m1"] {
            let compiled = match compile(&[("result", &output)], &options(target)) {
                Ok(compiled) => compiled,
                Err(error) if target == "m1" => {
                    refused.push((case.name.as_str(), error.to_string()));
                    continue;
                }
                Err(error) => panic!("{}: {error}", case.name),
            };
            let ours = written(&compiled).program;
            let equal_sequences = keywords(ours.body()) == keywords(theirs.body());
            same += usize::from(equal_sequences);
            for device in ["reference", "cpu"] {
                let (mine, other) = (&run(device, &ours, &inputs)[0], &run(device, &theirs, &their_inputs)[0]);
                assert_eq!(mine.ty, other.ty, "{}", case.name);
                let found = difference(&mine.data, &other.data);
                let allowed = match device {
                    "reference" if equal_sequences => 0.0,
                    "reference" => REFERENCE_TOLERANCE,
                    _ => case.tolerance(),
                };
                println!("{:24} {target:8} {device:10} {:.2e} of {allowed:.2e} {equal_sequences}", case.name, found.worst);
                if found.worst > allowed {
                    faults.push(format!(
                        "{} for {target} on {device}: {:.3e} > {allowed:.1e}; ours {:?}, theirs {:?}",
                        case.name,
                        found.worst,
                        keywords(ours.body()),
                        keywords(theirs.body())
                    ));
                }
            }
        }
    }
    println!("{same} of {} lowerings have the package's own sequence of operators", 2 * cases.len());
    let (names, reasons): (Vec<&str>, Vec<String>) = refused.into_iter().unzip();
    assert_eq!(names, ["affine"], "{reasons:?}");
    assert!(reasons[0].contains("native from A14"), "{reasons:?}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn weight_files_of_the_package_list_every_blob_though_nothing_is_padded() {
    let Some(cases) = cases() else { return };
    let mut unaligned = 0;
    for case in &cases {
        let file = aneforge::mil::BlobFile::open(case.folder.join("weights.bin")).unwrap();
        let views: Vec<_> = file.iter().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(views.len(), file.count() as usize, "{}", case.name);
        unaligned += views.iter().filter(|view| !view.offset.is_multiple_of(64)).count();
        if case.lawful() {
            let text = std::fs::read_to_string(case.folder.join("model.mil")).unwrap();
            assert!(resolved(&text, &case.folder).verify().is_ok(), "{}", case.name);
        }
    }
    assert!(unaligned > 0, "the package pads after all: this test shows nothing");
}

#[test]
fn every_operator_and_every_compression_of_the_package_is_in_a_graph() {
    let (Some(folder), Some(cases)) = (fixtures("upstream"), cases()) else { return };
    let all: BTreeSet<String> = serde_json::from_slice(&std::fs::read(folder.join("fused.json")).unwrap()).unwrap();
    assert_eq!(all.len(), 100, "operators that the package can lower");
    let used: BTreeSet<String> = cases.iter().flat_map(|case| case.operators()).collect();
    assert_eq!(all.difference(&used).collect::<Vec<_>>(), Vec::<&String>::new());
    for (mode, keyword, operators) in COMPRESSIONS {
        for operator in *operators {
            let found = cases.iter().any(|case| {
                case.compression() == Some(mode)
                    && case.operators().contains(*operator)
                    && std::fs::read_to_string(case.folder.join("model.mil")).unwrap().contains(keyword)
            });
            assert!(found, "no graph with {operator} and a weight in {mode}");
        }
    }
}

/// Ways to compress, what stands in the text for each, and the operators whose weights the package compresses so.
const COMPRESSIONS: &[(&str, &str, &[&str])] = &[
    ("int8", "constexpr_affine_dequantize", &["matmul", "conv", "bmm_w"]),
    ("int4", "constexpr_lut_to_dense", &["matmul", "conv", "bmm_w"]),
    ("sparse", "constexpr_sparse_to_dense", &["matmul", "conv"]),
    ("blockwise", "constexpr_blockwise_shift_scale", &["matmul", "conv", "bmm_w"]),
];

#[test]
fn programs_of_the_package_that_break_a_rule_of_mil_are_refused_by_that_rule() {
    let Some(cases) = cases() else { return };
    for case in cases.iter().filter(|case| !case.lawful()) {
        let error = Program::open(&case.folder).err().unwrap_or_else(|| panic!("{} was taken", case.name)).to_string();
        assert!(error.contains("data and scale have the same number of axes"), "{}: {error}", case.name);
    }
}
