//! Formats chosen by what they do to results.
#![allow(clippy::unwrap_used)]

use aneforge_compile::CompileError;
use aneforge_core::{DType, Graph, HostArray, Target, Weight, lower};
use aneforge_mil::Body;
use aneforge_runtime::{Device, open};
use aneforge_tune::{Calibration, TuneError, automatic, quality, quantise_activations};
use half::f16;

fn bell(count: usize, seed: u64, size: f32) -> Vec<f16> {
    let mut random = aneforge_testkit::Random::new(seed);
    let mut uniform = || random.below(1 << 24) as f32 / (1 << 24) as f32 - 0.5;
    (0..count).map(|_| f16::from_f32((uniform() + uniform() + uniform()) * size)).collect()
}

/// Three products with an activation between; the last weight has outliers that few levels cannot hold.
fn network() -> Body {
    let graph = Graph::new();
    let weight = |shape: [usize; 2], values: &[f16]| graph.weight(Weight::from_fp16(shape, values).unwrap());
    let x = graph.input("x", DType::Fp16, &[4, 64]);
    let mut outliers = bell(128 * 64, 3, 0.05);
    outliers.iter_mut().step_by(997).for_each(|value| *value = f16::from_f32(6.0));
    let hidden = x.matmul(&weight([64, 128], &bell(64 * 128, 1, 0.2))).relu();
    let hidden = hidden.matmul(&weight([128, 128], &bell(128 * 128, 2, 0.15))).relu();
    lower(&[("y".to_string(), hidden.matmul(&weight([128, 64], &outliers)))], Target::Generic).unwrap()
}

fn cpu() -> std::sync::Arc<dyn Device> {
    open("cpu").unwrap()
}

#[test]
fn a_higher_gate_gives_larger_weights_and_each_gate_is_kept() {
    let body = network();
    let samples = Calibration::generated(&body, 6, 1).unwrap();
    assert!(samples.is_generated());
    let device = cpu();
    let mut before = 0;
    for cosine in [0.9, 0.99, 0.999, 0.99999] {
        let chosen = automatic(&body, &Target::Generic, &samples, cosine, device.as_ref()).unwrap();
        assert!(chosen.quality.cosine >= cosine, "{cosine}: {:?}", chosen.quality);
        assert_eq!(quality(&body, &chosen.body, &samples, device.as_ref()).unwrap(), chosen.quality, "measured again");
        let bytes: usize = chosen.weights.iter().map(|weight| weight.bytes).sum();
        assert!(bytes >= before, "{cosine}");
        assert!(chosen.weights.iter().all(|weight| !weight.reason.is_empty()));
        before = bytes;
    }
    let all = automatic(&body, &Target::Generic, &samples, 1.0, device.as_ref()).unwrap();
    assert!(all.weights.iter().all(|weight| weight.format == "fp16") && all.body.same_computation(&body));
}

#[test]
fn a_target_gets_what_it_reads_compressed_alone() {
    let body = network();
    let samples = Calibration::generated(&body, 4, 2).unwrap();
    let formats = |target: &str| -> Vec<String> {
        let chosen = automatic(&body, &target.parse().unwrap(), &samples, 0.9, cpu().as_ref()).unwrap();
        chosen.weights.into_iter().map(|weight| weight.format).collect()
    };
    assert!(formats("m1").iter().all(|format| ["palette4", "sparse", "fp16"].contains(&format.as_str())), "{:?}", formats("m1"));
    assert!(formats("m2").iter().all(|format| ["palette4", "sparse", "int8", "fp16"].contains(&format.as_str())));
    let error = automatic(&body, &"m1:in-memory".parse().unwrap(), &samples, 0.9, cpu().as_ref()).unwrap_err().to_string();
    assert!(error.contains("fp16 weights alone"), "{error}");
}

#[test]
fn activations_are_quantised_as_the_formula_says() {
    let graph = Graph::new();
    let values = bell(64 * 64, 4, 0.3);
    let x = graph.input("x", DType::Fp16, &[2, 64]);
    let y = x.matmul(&graph.weight(Weight::from_fp16([64, 64], &values).unwrap()));
    let body = lower(&[("y".to_string(), y)], Target::Generic).unwrap();
    let given: Vec<f32> = bell(128, 5, 2.0).iter().map(|value| value.to_f32()).collect();
    let sample = HostArray::fp16_from_f32([2, 64], &given).unwrap();
    let samples = Calibration::given(&body, vec![vec![sample.clone()]]).unwrap();
    let made = quantise_activations(&body, &samples, cpu().as_ref()).unwrap();
    assert_eq!(made.scales.len(), 1);
    // By hand, in f64: each channel divided by a power of two near the root of its range over its weights', x to eight bits, the
    // weight to eight bits per column, the product of both.
    let widest = |numbers: &mut dyn Iterator<Item = f32>| numbers.fold(0f32, |largest, value| largest.max(value.abs()));
    let factors: Vec<f32> = (0..64)
        .map(|at| {
            let range = widest(&mut (0..2).map(|row| given[row * 64 + at]));
            let weight = widest(&mut (0..64).map(|column| values[at * 64 + column].to_f32()));
            (range / weight).sqrt().log2().round().exp2()
        })
        .collect();
    let largest = widest(&mut (0..128).map(|place| given[place] / factors[place % 64]));
    let scale = f64::from(f16::from_f32(largest / 127.0));
    assert_eq!(made.scales[0].1, scale);
    let eight = |value: f64, scale: f64| (value / scale).round_ties_even().clamp(-127.0, 127.0) * scale;
    let mut wanted = vec![0.0; 128];
    for column in 0..64 {
        let numbers: Vec<f64> = (0..64).map(|row| values[row * 64 + column].to_f64() * f64::from(factors[row])).collect();
        let width = numbers.iter().fold(0f64, |largest, value| largest.max(value.abs())) / 127.0;
        let near = f16::from_f64(width);
        let step = if near.to_f64() < width { f16::from_bits(near.to_bits() + 1) } else { near }.to_f64();
        for row in 0..2 {
            let smooth = |at: usize| f64::from(given[row * 64 + at] / factors[at]);
            wanted[row * 64 + column] = (0..64).map(|at| eight(smooth(at), scale) * eight(numbers[at], step)).sum();
        }
    }
    let program = std::sync::Arc::new(aneforge_runtime::Program::from_body("w8a8", made.body));
    for device in ["reference", "cpu", "emulator:m4"] {
        let got = open(device).unwrap().load(&program).unwrap().run(&[&sample]).unwrap()[0].to_f32();
        let worst = got.iter().zip(&wanted).map(|(got, want)| (f64::from(*got) - want).abs()).fold(0.0, f64::max);
        assert!(worst < 4e-3, "{device}: {worst}");
    }
    assert!(made.quality.cosine > 0.999, "{:?}", made.quality);
}

#[test]
fn eight_bits_everywhere_keep_a_network_with_outliers() {
    let body = network();
    let samples = Calibration::generated(&body, 4, 7).unwrap();
    let device = cpu();
    let both = quantise_activations(&body, &samples, device.as_ref()).unwrap();
    assert!(both.quality.cosine > 0.999 && both.quality.relative_error > 1e-3, "{:?}", both.quality);
    assert_eq!(both.scales.len(), 3);
}

#[test]
fn weights_and_activations_with_several_readers_keep_their_meaning() {
    let graph = Graph::new();
    let weight = |seed| graph.weight(Weight::from_fp16([64, 64], &bell(64 * 64, seed, 0.3)).unwrap());
    let (x, shared, own) = (graph.input("x", DType::Fp16, &[4, 64]), weight(1), weight(2));
    // x is read by a shared weight, by one of its own and by no weight at all.
    let first = x.matmul(&shared);
    let second = first.relu().matmul(&shared);
    let body = lower(&[("y".to_string(), second + x.matmul(&own) + &x)], Target::Generic).unwrap();
    // One channel of x is far larger, so that factors are not 1.
    let values: Vec<f32> =
        bell(256, 3, 1.0).iter().enumerate().map(|(at, v)| v.to_f32() * if at % 64 == 5 { 30.0 } else { 1.0 }).collect();
    let samples = Calibration::given(&body, vec![vec![HostArray::fp16_from_f32([4, 64], &values).unwrap()]]).unwrap();
    let made = quantise_activations(&body, &samples, cpu().as_ref()).unwrap();
    assert!(made.scales.len() == 1 && made.quality.cosine > 0.999, "{} {:?}", made.scales.len(), made.quality);
}

#[test]
fn samples_that_do_not_fit_are_refused() {
    let body = network();
    let array = |shape: [usize; 2], value: f32| HostArray::fp16_from_f32(shape, &vec![value; shape[0] * shape[1]]).unwrap();
    let problem = |samples| match Calibration::given(&body, samples) {
        Err(TuneError::Calibration { problem }) => problem,
        other => panic!("{other:?}"),
    };
    assert!(problem(vec![]).contains("at least one"));
    assert!(problem(vec![vec![]]).contains("the program takes 1"));
    assert!(problem(vec![vec![array([4, 32], 1.0)]]).contains("\"x\""));
    assert!(problem(vec![vec![array([4, 64], f32::NAN)]]).contains("no number"));
    let overflowing = Calibration::given(&body, vec![vec![array([4, 64], 60000.0)]]).unwrap();
    let result = automatic(&body, &Target::Generic, &overflowing, 0.99, cpu().as_ref());
    assert!(matches!(result, Err(TuneError::NotFinite { .. })));
    let graph = Graph::new();
    let ids = graph.input("ids", DType::Int32, &[4]);
    let table = graph.weight(Weight::from_fp16([64, 64], &bell(64 * 64, 1, 1.0)).unwrap());
    let body = lower(&[("y".to_string(), table.gather(&ids, 0))], Target::Generic).unwrap();
    let error = Calibration::generated(&body, 1, 1).unwrap_err().to_string();
    assert!(error.contains("\"ids\""), "{error}");
    let error =
        automatic(&network(), &Target::Generic, &Calibration::generated(&network(), 1, 1).unwrap(), f64::NAN, cpu().as_ref());
    assert!(matches!(error, Err(TuneError::Calibration { .. })));
    assert!(!matches!(error, Err(TuneError::Compile(CompileError::Internal(_)))));
}
