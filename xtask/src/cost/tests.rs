//! The fit on a cited sample of published measurements.
#![allow(clippy::unwrap_used)]

use super::evaluate::{LAYOUT, latency_errors};
use super::rows::{MACHINES, read};
use super::split::{FOLDS, LEFT_OUT, draw, folds, machines};
use super::workload;
use super::{evaluate, report};
use aneforge_cost::Coefficients;
use aneforge_cost::fit::{self, Measurement};
use std::path::Path;

fn sample() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data/measured_sample.csv"))
}

#[test]
fn the_sample_has_every_machine_and_counts_what_it_leaves_out() {
    let table = read(sample()).unwrap();
    assert_eq!((table.all, table.failed, table.bridged, table.rows.len()), (44, 1, 1, 42));
    for (at, machine) in MACHINES.iter().enumerate() {
        assert!(table.rows.iter().any(|row| row.measurement.machine == at), "{}", machine.name);
    }
}

#[test]
fn committed_coefficients_predict_the_sample_as_well_as_their_errors_say() {
    let table = read(sample()).unwrap();
    let committed = Coefficients::committed().unwrap();
    let errors = latency_errors(&committed.latency().unwrap(), table.rows.iter().map(|row| &row.measurement));
    let inside = errors.0.iter().filter(|(_, error)| error.abs() <= committed.errors.latency_known[1]).count();
    assert!(errors.pooled() <= 0.12, "{}", errors.pooled());
    assert!(inside * 10 >= errors.0.len() * 8, "{inside} of {} within the error of nine in ten", errors.0.len());
}

#[test]
fn coefficients_survive_their_file() {
    let committed = Coefficients::committed().unwrap();
    assert!(committed.rows >= 410, "{} rows", committed.rows);
    assert_eq!(committed.layout().machines, MACHINES.len());
    let text = serde_json::to_string(&committed).unwrap();
    assert_eq!(Coefficients::parse(&text).unwrap(), committed);
    assert_eq!(committed.latency().unwrap().len(), LAYOUT.length());
}

#[test]
fn a_fit_gives_the_same_bits_twice_and_beats_its_priors() {
    let table = read(sample()).unwrap();
    let rows: Vec<&Measurement> = table.rows.iter().map(|row| &row.measurement).collect();
    let first = fit::latency(&rows, LAYOUT, None, 30);
    assert_eq!(first, fit::latency(&rows, LAYOUT, None, 30));
    let error = |theta: &[f64]| latency_errors(theta, rows.iter().copied()).pooled();
    let prior = LAYOUT.prior().0;
    assert!(error(&first) < 0.08 && error(&first) * 3.0 < error(&prior), "{} {}", error(&first), error(&prior));
}

#[test]
fn coefficients_of_other_data_disagree_and_the_hash_says_so() {
    let (text, agrees) = report::fit(sample(), false, true).unwrap();
    assert!(!agrees);
    assert!(text.contains("/data_sha256") && text.contains("disagree"), "{text}");
}

#[test]
fn a_changed_number_is_a_difference_and_its_last_digit_is_not() {
    let table = read(sample()).unwrap();
    let (latency, energies) = evaluate::fit_all(&table.rows);
    let fitted = report::file(&table, &latency, &energies, Coefficients::committed().unwrap().errors);
    assert_eq!(report::differences(&fitted, &fitted).unwrap(), Vec::<String>::new());
    let mut changed = fitted.clone();
    changed.machines[3].factors.entry("floor".to_string()).and_modify(|factor| *factor *= 1.01);
    let lines = report::differences(&changed, &fitted).unwrap();
    assert!(lines.len() == 1 && lines[0].starts_with("/machines/3/factors/floor"), "{lines:?}");
    changed.machines[3].factors.entry("floor".to_string()).and_modify(|factor| *factor /= 1.009_99);
    assert_eq!(report::differences(&changed, &fitted).unwrap(), Vec::<String>::new());
}

/// The sources print the operations of some workloads; ours are counted from the workloads' definitions.
#[test]
fn operations_counted_are_those_that_the_sources_print() {
    let published = [
        ("GEMM square (linear)", "x[2048,2048] W[2048,2048]", 17.179869184),
        ("GEMV M=1 (linear)", "x[1,4096] W[11008,4096]", 0.090177536),
        ("conv 3x3 s1 p1", "x[16,128,64,64] W[128,128,3,3]", 19.327352832),
        ("costmodel matmul_rect: 512x1024@1024x4096", "x[512,1024] W[1024,4096]", 4.294967296),
        ("costmodel conv: C=64 5x5 s1 [32x32]", "x[1,64,32,32] k=5 s=1 groups=1", 0.2097152),
        ("conv resnet-ish (C=256,32x32,k=3,depth=16)", "C=256,32x32,k=3,depth=16", 18.421),
        ("conv single (C=64,32x32,k=3,depth=1)", "C=64,32x32,k=3,depth=1", 0.019),
        ("attention vit (S=197,D=768,H=12)", "S=197,D=768,H=12", 1.049),
        ("attention longseq (S=512,D=768,H=12)", "S=512,D=768,H=12", 3.221),
        ("LLM decode step d=2048 L=8 H=16 dff=8192 V=32000 s_kv=256", "B=4", 4.88636416),
        ("gap:attention", "{S: 512, D: 64, H: 12, flops: 821035008.0}", 0.805306368),
    ];
    for (name, shape, gflop) in published {
        let ours = workload::work(name, shape, "fp16").unwrap().flops() * 1e-9;
        assert!((ours / gflop - 1.0).abs() < 0.01, "{name} {shape}: {ours} and not {gflop}");
    }
}

#[test]
fn what_is_not_known_is_not_guessed() {
    assert!(workload::work("a workload of tomorrow", "x[1,2]", "fp16").is_none());
    assert!(workload::work("GEMM square (linear)", "x[512]", "fp16").is_none());
    assert!(workload::work("gap:gemv", "", "fp4").is_none());
}

#[test]
fn a_workload_of_one_shape_is_held_out_on_all_machines_at_once() {
    let table = read(sample()).unwrap();
    let folds = folds(&table.rows);
    assert!((0..FOLDS).all(|fold| folds.contains(&fold)));
    for (a, fold_a) in table.rows.iter().zip(&folds) {
        for (b, fold_b) in table.rows.iter().zip(&folds) {
            let is_same = (&a.workload, &a.shape) == (&b.workload, &b.shape);
            assert!(!is_same || fold_a == fold_b, "{} {}", a.workload, a.shape);
        }
    }
}

#[test]
fn a_machine_of_uncertain_chip_leaves_with_each_chip_that_it_may_be() {
    let chips: Vec<_> = LEFT_OUT.iter().filter(|(_, names)| names.contains(&"M1 (Max?)")).map(|(chip, _)| *chip).collect();
    assert_eq!(chips, ["M1", "M1 Max"]);
    for (chip, names) in LEFT_OUT {
        assert_eq!(machines(names).len(), names.len(), "{chip}");
        let with = |at: usize| names.contains(&MACHINES[at].name);
        let of_chip =
            |at: usize| format!("Apple {chip}").to_lowercase().replace("apple ", "").replace(' ', "") == MACHINES[at].chip;
        assert!((0..MACHINES.len()).all(|at| !of_chip(at) || with(at)), "{chip} keeps a machine");
    }
}

#[test]
fn a_draw_takes_each_row_once_and_the_same_rows_every_time() {
    let mut places = draw(10, 14, 3, 5);
    assert_eq!(places, draw(10, 14, 3, 5));
    assert_ne!(places, draw(10, 14, 4, 5));
    places.sort_unstable();
    places.dedup();
    assert!(places.len() == 10 && places.iter().all(|place| *place < 14));
    assert_eq!(draw(10, 4, 0, 0).len(), 4);
}
