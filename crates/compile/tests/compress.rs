//! Compressed weights: what each format keeps, loses and costs.
#![allow(clippy::unwrap_used)]

use aneforge_compile::compress::{Encoded, Format, Slot, Tables, apply, compress, encode, read, slots};
use aneforge_compile::{CompileError, Notes};
use aneforge_core::{Array, DType, Graph, Target, Tensor, Weight, evaluate, lower};
use aneforge_mil::Body;
use half::f16;
use std::collections::HashMap;

/// Numbers of a bell curve: sums of four uniform ones.
fn bell(count: usize, seed: u64) -> Vec<f16> {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..count).map(|_| f16::from_f32((uniform() + uniform() + uniform() + uniform()) * 0.2)).collect()
}

/// `x W` with a weight of `[inputs, outputs]`.
fn product(inputs: usize, outputs: usize, values: &[f16]) -> Body {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, inputs]);
    let weight = graph.weight(Weight::from_fp16([inputs, outputs], values).unwrap());
    lower(&[("y".to_string(), x.matmul(&weight))], Target::Generic).unwrap()
}

fn encoded(body: &Body, format: &str) -> (Slot, Vec<f16>, Encoded) {
    let slot = slots(body, 1).remove(0);
    let values = read(body, &slot).unwrap();
    let encoded = encode(body, &slot, &values, format.parse().unwrap(), None).unwrap();
    (slot, values, encoded)
}

#[test]
fn every_format_has_a_name_that_reads_back() {
    let examples = Format::examples();
    assert_eq!(examples.len(), 19, "a name among the examples is no format");
    for format in examples {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
    assert_eq!("int4".parse::<Format>().unwrap(), Format::Palette { bits: 4, tables: Tables::Tensor });
    for wrong in [
        "",
        "int5-channel",
        "palette5",
        "palette4-group0",
        "sparse0",
        "sparse100",
        "int8-block",
        "sparse50-",
        "int8-block-1",
        "palette4-",
    ] {
        let error = wrong.parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("palette4"), "{wrong:?}: {error}");
    }
}

#[test]
fn what_a_weight_expands_to_is_what_its_operators_mean() {
    for (inputs, outputs) in [(64, 32), (96, 48)] {
        for format in Format::examples().into_iter().filter(|format| *format != Format::Sparse { sparsity: None }) {
            let body = product(inputs, outputs, &bell(inputs * outputs, 7));
            let (slot, _, weight) = encoded(&body, &format.to_string());
            let packed = apply(&body, &HashMap::from([(slot.value, weight.clone())])).unwrap();
            packed.verify().unwrap();
            // Row i of the unit matrix reads row i of the weight.
            for row in 0..inputs {
                let mut unit = vec![0.0; inputs];
                unit[row] = 1.0;
                let read = evaluate(&packed, &[Array::new(DType::Fp16, [1, inputs], unit)]).unwrap();
                let rounded: Vec<f16> = read[0].data.iter().map(|&value| aneforge_mil::round_to_fp16(value)).collect();
                assert_eq!(rounded, weight.dense[row * outputs..(row + 1) * outputs], "{format} row {row}");
            }
        }
    }
}

#[test]
fn sizes_are_those_of_the_formats() {
    let (inputs, outputs) = (384, 256);
    let count = inputs * outputs;
    let body = product(inputs, outputs, &bell(count, 3));
    let formula = |format: &str| match format {
        "int8" => count + 2 * outputs,
        "int8-affine" => count + 3 * outputs,
        "palette4" => count / 2 + 32,
        "palette4-channel" => count / 2 + 32 * outputs,
        "palette4-group16" => count / 2 + 32 * outputs / 16,
        "palette8" => count + 512,
        "palette3" => count * 3 / 8 + 16,
        "int4-channel" => count / 2 + 2 * outputs,
        "int4-block32" => count / 2 + 2 * count / 32,
        "int4-block32-offset" => count / 2 + 2 * count / 32 + count / 64,
        "int8-block32" => count + 2 * count / 32,
        "sparse50" => count / 8 + count,
        "sparse50-palette4" => count / 8 + count / 4 + 32,
        other => panic!("no formula for {other}"),
    };
    let formats = [
        "int8",
        "int8-affine",
        "palette4",
        "palette4-channel",
        "palette4-group16",
        "palette8",
        "palette3",
        "int4-channel",
        "int4-block32",
        "int4-block32-offset",
        "int8-block32",
        "sparse50",
        "sparse50-palette4",
    ];
    for format in formats {
        assert_eq!(encoded(&body, format).2.bytes(), formula(format), "{format}");
    }
    let share = |format: &str| encoded(&body, format).2.bytes() as f64 / (2 * count) as f64;
    assert!(share("palette4") <= 0.26 && share("int4-channel") <= 0.26);
    assert!(share("int4-block32") <= 0.285 && share("int4-block32-offset") <= 0.295);
}

#[test]
fn a_table_is_the_best_there_is() {
    // All ways to cut few sorted values into intervals, tried one by one.
    for seed in 0..20 {
        let values = bell(12, seed);
        let mut sorted: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
        sorted.sort_by(f64::total_cmp);
        let error = |part: &[f64]| {
            let mean = part.iter().sum::<f64>() / part.len() as f64;
            part.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>()
        };
        let mut least = f64::INFINITY;
        for a in 1..10 {
            for b in a + 1..11 {
                for c in b + 1..12 {
                    least = least.min(error(&sorted[..a]) + error(&sorted[a..b]) + error(&sorted[b..c]) + error(&sorted[c..]));
                }
            }
        }
        let (_, _, weight) = encoded(&product(12, 1, &values), "palette2");
        let ours: f64 = weight.dense.iter().zip(&values).map(|(new, old)| (new.to_f64() - old.to_f64()).powi(2)).sum();
        // Entries are rounded to fp16, by at most 2^-12 of their size.
        assert!(ours <= least + 12.0 * 1e-7, "seed {seed}: {ours:e} instead of {least:e}");
    }
}

#[test]
fn errors_are_those_of_the_literature_for_a_normal_weight() {
    let values = bell(512 * 512, 11);
    let body = product(512, 512, &values);
    let error = |format: &str| {
        let (_, values, weight) = encoded(&body, format);
        weight.relative_error(&values)
    };
    // 16 levels, best for a Gaussian: 0.0975 (Max, "Quantizing for Minimum Distortion", IRE Transactions 6, 1960: 0.009497 of the
    // variance); sums of four uniform numbers have shorter tails.
    let table = error("palette4");
    assert!((0.07..0.0975).contains(&table), "{table}");
    assert!(error("palette4-group16") < table && error("palette4-channel") < error("palette4-group16"));
    assert!(error("int8") < 0.01 && error("int8-block32") < error("int8"));
    assert!(error("int4-block32") < error("int4-channel"));
    assert!(error("palette8") < 0.007 && error("palette6") < error("palette4"));
}

#[test]
fn important_channels_are_kept_better() {
    let values = bell(64 * 64, 5);
    let body = product(64, 64, &values);
    let slot = slots(&body, 1).remove(0);
    let importance: Vec<f32> = (0..64).map(|channel| if channel < 8 { 100.0 } else { 1.0 }).collect();
    for format in ["palette4", "int4-channel", "palette4-group16"] {
        let lost = |importance: Option<&[f32]>| -> f64 {
            let weight = encode(&body, &slot, &values, format.parse().unwrap(), importance).unwrap();
            let first = weight.dense.iter().zip(&values).take(8 * 64);
            first.map(|(new, old)| (new.to_f64() - old.to_f64()).powi(2)).sum()
        };
        assert!(lost(Some(&importance)) < lost(None), "{format}");
    }
    assert!(encode(&body, &slot, &values, "palette4".parse().unwrap(), Some(&[1.0; 3])).is_err());
}

#[test]
fn a_pruned_weight_keeps_its_largest_magnitudes() {
    let values = bell(64 * 64, 9);
    let (_, values, weight) = encoded(&product(64, 64, &values), "sparse50");
    let zeros = weight.dense.iter().filter(|value| value.to_f32() == 0.0).count();
    assert_eq!(zeros, 64 * 32);
    let largest_gone = values.iter().zip(&weight.dense).filter(|(_, new)| new.to_f32() == 0.0).map(|(old, _)| old.to_f32().abs());
    let least_kept = weight.dense.iter().filter(|value| value.to_f32() != 0.0).map(|value| value.to_f32().abs());
    assert!(largest_gone.fold(0.0, f32::max) <= least_kept.fold(f32::INFINITY, f32::min));
}

#[test]
fn what_a_format_cannot_hold_stays_and_the_reason_is_given() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 50]);
    let weight = graph.weight(Weight::from_fp16([50, 48], &bell(50 * 48, 1)).unwrap());
    let body = lower(&[("y".to_string(), x.matmul(&weight))], Target::Generic).unwrap();
    let mut notes = Notes::default();
    for (format, reason) in
        [("int8-block32", "no multiple of 32"), ("palette4-group36", "no multiple of 36"), ("sparse", "engine wants half")]
    {
        let (same, report) = compress(&body, format.parse().unwrap(), 1, &mut notes).unwrap();
        assert!(same.same_computation(&body), "{format}");
        assert_eq!(report[0].format, "fp16");
        assert!(report[0].reason.contains(reason), "{format}: {}", report[0].reason);
    }
    let infinite = graph.weight(Weight::from_fp16([50, 48], &vec![f16::INFINITY; 50 * 48]).unwrap());
    let body = lower(&[("y".to_string(), x.matmul(&infinite))], Target::Generic).unwrap();
    let error = compress(&body, "int8".parse().unwrap(), 1, &mut notes).unwrap_err();
    assert!(matches!(error, CompileError::Compress(_)) && error.to_string().contains("mend the model"), "{error}");
}

#[test]
fn the_channels_of_each_operator_are_found() {
    let graph = Graph::new();
    let values = |shape: &[usize]| graph.weight(Weight::from_fp16(shape, &bell(shape.iter().product(), 2)).unwrap());
    let picture = graph.input("p", DType::Fp16, &[1, 8, 9, 9]);
    let x = graph.input("x", DType::Fp16, &[4, 32]);
    let ids = graph.input("i", DType::Int32, &[4]);
    let window = aneforge_core::Window::default();
    let outputs: Vec<(&str, Tensor)> = vec![
        ("conv", picture.conv(&values(&[16, 8, 3, 3]), None, &window)),
        ("transposed", picture.conv_transpose(&values(&[8, 16, 3, 3]), None, &window)),
        ("linear", x.linear(&values(&[64, 32]), None)),
        ("matmul", x.matmul(&values(&[32, 64]))),
        ("gather", values(&[100, 32]).gather(&ids, 0)),
    ];
    let named: Vec<_> = outputs.into_iter().map(|(name, tensor)| (name.to_string(), tensor)).collect();
    let body = lower(&named, Target::Generic).unwrap();
    let found: Vec<_> = slots(&body, 1).into_iter().map(|slot| (slot.op, slot.channel_axis, slot.input_axis)).collect();
    for wanted in [("conv", 0, 1), ("conv_transpose", 1, 0), ("matmul", 0, 1), ("matmul", 1, 0), ("gather", 0, 1)] {
        assert!(found.contains(&wanted), "{wanted:?} in {found:?}");
    }
    let shared = values(&[32, 32]);
    let body = lower(&[("y".to_string(), x.matmul(&shared).matmul(&shared))], Target::Generic).unwrap();
    assert_eq!(slots(&body, 1).len(), 1);
    let (packed, _) = compress(&body, "int8".parse().unwrap(), 1, &mut Notes::default()).unwrap();
    assert_eq!(packed.operations.iter().filter(|operation| operation.op.name.starts_with("constexpr_")).count(), 1);
}
