//! Rewritten programs on devices, and what tuning makes of them.
#![allow(clippy::unwrap_used)]

use aneforge_compile::{CompileOptions, Rewrite, Rewrites, compile_body};
use aneforge_core::{DType, Graph, HostArray, Target, Tensor, Weight, attention, lower};
use aneforge_mil::Body;
use aneforge_runtime::{Device, Program, open};
use aneforge_tune::{
    AttentionShape, Bench, Calibration, Quality, Store, TuneOptions, Wanted, lowerings, quality, tune, tune_attention,
    tune_precision,
};
use half::f16;
use std::sync::Arc;

fn lowered(outputs: &[(&str, &Tensor)], target: Target) -> Body {
    let named: Vec<(String, Tensor)> = outputs.iter().map(|(name, tensor)| ((*name).to_string(), (*tensor).clone())).collect();
    lower(&named, target).unwrap()
}

fn bell(graph: &Graph, shape: &[usize], seed: u64, size: f32) -> Tensor {
    let mut random = aneforge_testkit::Random::new(seed);
    let mut uniform = || random.below(1 << 24) as f32 / (1 << 24) as f32 - 0.5;
    let count = shape.iter().product();
    let values: Vec<f16> = (0..count).map(|_| f16::from_f32((uniform() + uniform() + uniform()) * size)).collect();
    graph.weight(Weight::from_fp16(shape, &values).unwrap())
}

/// Causal attention of grouped heads between dense layers with a spelled-out norm: something for every rewrite.
fn decoder_block(target: Target) -> Body {
    let (rows, heads, groups, width) = (48, 4, 2, 16);
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, rows, 64]);
    let centred = x.sub(&x.reduce_mean([-1], true));
    let scaled = centred.mul(&centred.square().reduce_mean([-1], true).rsqrt(1e-3));
    let split = |y: &Tensor, heads: i64| y.reshape(&[1, rows as i64, heads, width]).transpose(&[0, 2, 1, 3]);
    let q = split(&scaled.linear(&bell(&graph, &[64, 64], 1, 0.3), None), heads);
    let share = |y: Tensor| {
        let one = split(&y, groups).reshape(&[1, groups, 1, rows as i64, width]);
        one.tile(&[1, 1, heads / groups, 1, 1]).reshape(&[1, heads, rows as i64, width])
    };
    let k = share(scaled.linear(&bell(&graph, &[32, 64], 2, 0.3), None));
    let v = share(scaled.linear(&bell(&graph, &[32, 64], 3, 0.3), None));
    let mask: Vec<f32> = (0..rows * rows).map(|at| if at % rows > at / rows { -30000.0 } else { 0.0 }).collect();
    let mask = graph.constant(&HostArray::from_f32([rows, rows], &mask).unwrap()).cast(DType::Fp16);
    let mixed = attention(&q, &k, &v, Some(&mask), None).transpose(&[0, 2, 1, 3]).reshape(&[1, rows as i64, 64]);
    let y = mixed.linear(&bell(&graph, &[64, 64], 4, 0.3), None).mul(&bell(&graph, &[64], 5, 2.0)).add(&x).rms_norm(-1, None, 1e-3);
    lowered(&[("y", &y)], target)
}

fn run(body: &Body, device: &dyn Device, sample: &[HostArray]) -> Vec<f32> {
    let executable = device.load(&Arc::new(Program::from_body("p", body.clone()))).unwrap();
    executable.run(&sample.iter().collect::<Vec<_>>()).unwrap()[0].to_f32()
}

#[test]
fn each_rewrite_keeps_results_on_reference_cpu_and_emulator() {
    let target: Target = "m1".parse().unwrap();
    let body = decoder_block(target);
    let samples = Calibration::generated(&body, 2, 5).unwrap();
    let compiled =
        |rewrites| compile_body(body.clone(), &CompileOptions { target, rewrites, ..CompileOptions::default() }).unwrap();
    let plain = compiled(Rewrites::none());
    for device in ["reference", "cpu", "emulator:m1"] {
        let device = open(device).unwrap();
        for &rewrite in Rewrite::ALL {
            let changed = compiled(Rewrites::none().with(rewrite, true).with_tiles(3));
            let quality = quality(&plain.body, &changed.body, &samples, device.as_ref()).unwrap();
            // Weights are rounded once more by folding; the emulator rounds every step of what is spelled out.
            let allowed = match (device.name(), rewrite) {
                ("reference", Rewrite::QueryTiles | Rewrite::GroupedHeads) => 0.0,
                ("reference" | "cpu", _) => 2e-3,
                _ => 1e-2,
            };
            assert!(quality.relative_error <= allowed, "{} on {}: {quality:?}", rewrite.name(), device.name());
        }
    }
    let every = compiled(Rewrite::ALL.iter().fold(Rewrites::none(), |all, &rewrite| all.with(rewrite, true)).with_tiles(3));
    let changed: Vec<_> = [Rewrite::GroupedHeads, Rewrite::QueryTiles, Rewrite::NativeNorms, Rewrite::LengthNorms]
        .iter()
        .filter(|rewrite| !every.notes.all().iter().any(|note| note.applied && note.pass == rewrite.name()))
        .collect();
    assert!(changed.is_empty(), "nothing to do for {changed:?}");
}

#[test]
fn fused_attention_is_within_two_units_of_the_unfused_and_no_less_exact() {
    // A scale of 1/8 is exact. That of 32 features is rounded, in one form before and in the other after a product: a unit more or less.
    for (width, exact_scale) in [(64, true), (32, false)] {
        let graph = Graph::new();
        let (heads, rows) = (4, 96);
        let input = |name: &str| graph.input(name, DType::Fp16, &[1, heads, rows, width]);
        let y = attention(&input("q"), &input("k"), &input("v"), None, None);
        let target: Target = "m1".parse().unwrap();
        let body = lowered(&[("y", &y)], target);
        let samples = Calibration::generated(&body, 3, 7).unwrap();
        let compiled =
            |rewrites| compile_body(body.clone(), &CompileOptions { target, rewrites, ..CompileOptions::default() }).unwrap().body;
        let (cpu, reference) = (open("cpu").unwrap(), open("reference").unwrap());
        let plain = compiled(Rewrites::none());
        let fused = [
            compiled(Rewrites::none().with(Rewrite::QueryTiles, true).with_tiles(4)),
            compiled(Rewrites::none().with(Rewrite::AttentionOperator, true)),
        ];
        for sample in samples.samples() {
            let (unfused, exact) = (run(&plain, cpu.as_ref(), sample), run(&plain, reference.as_ref(), sample));
            let error = |values: &[f32]| values.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            for body in &fused {
                let own = run(body, cpu.as_ref(), sample);
                for (ours, theirs) in own.chunks(width).zip(unfused.chunks(width)) {
                    let largest = theirs.iter().fold(0.0f32, |most, value| most.max(value.abs()));
                    let unit = (largest.log2().floor() - 10.0).exp2();
                    assert!(ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() <= 2.0 * unit), "{ours:?}\n{theirs:?}");
                }
                assert!(!exact_scale || error(&own) <= error(&unfused), "{} against {}", error(&own), error(&unfused));
            }
        }
    }
}

#[test]
fn the_cost_model_ranks_and_the_gate_refuses() {
    let target: Target = "m4".parse().unwrap();
    let body = decoder_block(target);
    let options = CompileOptions { target, ..CompileOptions::default() };
    let samples = Calibration::generated(&body, 2, 5).unwrap();
    let cpu = open("cpu").unwrap();
    let bench = Bench { judge: cpu.as_ref(), timer: None };
    let limits = TuneOptions { budget: 20, prune: 100.0, ..TuneOptions::default() };
    let tuned = tune(&body, &options, &limits, &samples, bench, None).unwrap();
    assert!(tuned.trials[0].outcome.starts_with("chosen") && tuned.trials[0].name == tuned.variant.name);
    let of = |name: &str| {
        tuned.trials.iter().find(|trial| trial.name == name).unwrap_or_else(|| panic!("{name} in {:#?}", tuned.trials))
    };
    // Repeating keys and values, spelled-out norms and scales of their own take time.
    assert!(of("no rewrite").estimated_ms > of("as usual").estimated_ms);
    assert!(of("without grouped-heads").estimated_ms > of("as usual").estimated_ms);
    assert!(tuned.trials.iter().all(|trial| !trial.outcome.is_empty() && trial.dispatches == 1));
    let best = tuned.trials.iter().filter_map(|trial| trial.estimated_ms).fold(f64::INFINITY, f64::min);
    assert!(tuned.trials[0].estimated_ms.unwrap() < best * 1.1 + 1e-9, "{:#?}", tuned.trials);
    // Nothing that differs passes a gate of zero.
    let strict = tune(&body, &options, &TuneOptions { gate: 0.0, ..limits }, &samples, bench, None).unwrap();
    let refused = strict.trials.iter().filter(|trial| trial.outcome.contains("more than 0.00e0 is allowed"));
    assert!(refused.clone().count() > 0 && refused.into_iter().all(|trial| trial.relative_error > Some(0.0)));
    assert!(quality(&tuned.compiled.body, &strict.compiled.body, &samples, cpu.as_ref()).unwrap().relative_error < limits.gate);
    // A budget of one runs the usual program alone.
    let one = tune(&body, &options, &TuneOptions { budget: 1, ..limits }, &samples, bench, None).unwrap();
    assert_eq!(one.variant.name, "as usual");
    assert!(one.trials[1..].iter().all(|trial| trial.relative_error.is_none() && trial.outcome.contains("budget")));
}

#[test]
fn a_device_that_times_decides_and_the_choice_is_kept_per_program_target_and_version() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("choices"));
    let cpu = open("cpu").unwrap();
    let tuned = |target: &str, timer: bool| {
        let target: Target = target.parse().unwrap();
        let body = decoder_block(target);
        let samples = Calibration::generated(&body, 1, 5).unwrap();
        let limits = TuneOptions { budget: 3, calls: 2, ..TuneOptions::default() };
        let bench = Bench { judge: cpu.as_ref(), timer: timer.then_some(cpu.as_ref()) };
        let options = CompileOptions { target, ..CompileOptions::default() };
        tune(&body, &options, &limits, &samples, bench, Some(&store)).unwrap()
    };
    let first = tuned("m1", true);
    assert!(!first.from_store);
    assert_eq!(first.trials.iter().filter(|trial| trial.measured_ms.is_some()).count(), 3);
    let again = tuned("m1", true);
    assert!(again.from_store && again.variant == first.variant);
    let told = |trials: &[aneforge_tune::Trial]| trials.iter().map(|t| (t.name.clone(), t.outcome.clone())).collect::<Vec<_>>();
    assert_eq!(told(&again.trials), told(&first.trials));
    assert!(again.compiled.body.same_computation(&first.compiled.body));
    for (target, timer) in [("m1", false), ("m5", true)] {
        assert!(!tuned(target, timer).from_store, "{target}");
    }
    assert_eq!(std::fs::read_dir(folder.path().join("choices")).unwrap().count(), 3, "three whole files and nothing else");
    // A file that says nothing useful is as good as none.
    for entry in std::fs::read_dir(folder.path().join("choices")).unwrap() {
        std::fs::write(entry.unwrap().path(), "{").unwrap();
    }
    assert!(!tuned("m1", true).from_store);
}

#[test]
fn precision_is_traded_as_wished() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4, 512]);
    let y = x.linear(&bell(&graph, &[512, 512], 1, 0.2), None).reduce_sum([-1], true);
    let target: Target = "m1".parse().unwrap();
    let body = lowered(&[("y", &y)], target);
    let options = CompileOptions { target, ..CompileOptions::default() };
    let samples = Calibration::generated(&body, 3, 5).unwrap();
    let (judge, exact) = (open("emulator:m1").unwrap(), open("reference").unwrap());
    let bench = Bench { judge: judge.as_ref(), timer: None };
    let wished =
        |wanted| tune_precision(&body, &options, wanted, &TuneOptions::default(), &samples, bench, exact.as_ref()).unwrap();
    let best = wished(Wanted::Exact);
    let error = |trial: &aneforge_tune::Trial| trial.relative_error.unwrap();
    assert!(best.trials.iter().all(|trial| error(trial) >= error(&best.trials[0])), "{:#?}", best.trials);
    assert!(best.trials.iter().any(|trial| trial.name == "with sum-by-product"), "{:#?}", best.trials);
    let loose = wished(Wanted::Error(0.5));
    assert!(loose.trials.iter().all(|trial| trial.estimated_ms >= loose.trials[0].estimated_ms), "{:#?}", loose.trials);
    let never = wished(Wanted::Milliseconds(1e-9));
    assert!(never.trials[0].outcome.contains("nothing meets the wish"));
    assert!(never.trials.iter().all(|trial| trial.estimated_ms >= never.trials[0].estimated_ms));
}

#[test]
fn tiles_of_attention_are_chosen_and_each_number_is_told() {
    let cpu = open("cpu").unwrap();
    let options = CompileOptions { target: "m1".parse().unwrap(), ..CompileOptions::default() };
    let shape = AttentionShape { heads: 2, queries: 4, keys: 6, width: 8 };
    let bench = Bench { judge: cpu.as_ref(), timer: None };
    let chosen = tune_attention(shape, &options, &TuneOptions::default(), bench).unwrap();
    let mut names: Vec<_> = chosen.trials.iter().map(|trial| trial.name.as_str()).collect();
    names.sort_unstable();
    // Three tiles of four queries are two rows each again, as two tiles are.
    assert_eq!(names, ["1 tile", "2 tiles", "4 tiles"]);
    assert_eq!(chosen.tiles, 1, "more tiles are more operations of the same work");
    let timed = Bench { timer: Some(cpu.as_ref()), ..bench };
    assert!(
        tune_attention(shape, &options, &TuneOptions::default(), timed).unwrap().trials.iter().all(|t| t.measured_ms.is_some())
    );
}

#[test]
fn every_way_is_looked_at_once() {
    let options = CompileOptions { target: "m1".parse().unwrap(), ..CompileOptions::default() };
    let ways = lowerings(&options);
    assert_eq!(ways.len(), Rewrite::ALL.len() + 3);
    assert_eq!(Quality::SAME.relative_error, 0.0);
    let names: std::collections::HashSet<_> = ways.iter().map(|way| way.name.clone()).collect();
    assert_eq!(names.len(), ways.len());
    assert!(names.contains("without query-tiles") && names.contains("with sum-by-product"));
}
