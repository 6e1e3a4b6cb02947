//! The report on the emulators: every exact figure, through graph, bundle and device.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::time::Instant;

use aneforge_conform::fingerprint::{Filter, Row, run};
use aneforge_conform::published::PUBLISHED;

/// Recomputes the workloads whose name holds the text, and prints how long each took.
fn report(workload: &str) -> Vec<Row> {
    let filter = Filter { workload: Some(workload.to_string()), chip: None };
    let start = Instant::now();
    let rows = run(&filter, &mut |progress| println!("{:7.2} s {}", start.elapsed().as_secs_f64(), progress.workload)).unwrap();
    assert!(!rows.is_empty(), "no workload is called {workload}");
    for row in &rows {
        println!("{:<46} {:<6} {:.17} {:+.1e} {:?}", row.workload, row.chips, row.ours, row.difference, row.status);
    }
    rows
}

fn all_hold(workload: &str) {
    for row in report(workload) {
        assert!(row.holds(), "{row:?}");
    }
}

#[test]
fn products_match_every_figure() {
    all_hold("gemm");
    all_hold("_sweep/");
    all_hold("dft");
}

#[test]
fn convolutions_match_every_figure_in_both_forms() {
    all_hold("conv");
}

#[test]
fn the_stencil_and_the_solver_match_every_figure() {
    all_hold("stencil");
    all_hold("jacobi");
}

#[test]
fn relu_matches_every_figure() {
    all_hold("relu");
}

#[test]
fn modelled_operators_come_out_at_the_published_size() {
    for workload in ["reduce_sum", "softmax", "gelu", "layer_norm", "rms_norm", "attention"] {
        for row in report(workload) {
            let ratio = row.ours / row.published;
            assert!((0.3..3.0).contains(&ratio), "{row:?}");
        }
    }
}

#[test]
fn every_chip_is_right_on_its_own_emulator_too() {
    // A run over all chips computes shared rules once; here each chip's own emulator answers.
    let mut chips: Vec<&str> = PUBLISHED.iter().flat_map(|published| published.chips).copied().collect();
    chips.sort_unstable();
    chips.dedup();
    for chip in chips {
        for workload in ["gemm/n=512", "gemm/n=1024", "conv single", "conv/c=64", "stencil", "jacobi", "sweep [256,4096]"] {
            let filter = Filter { workload: Some(workload.to_string()), chip: Some(chip.to_string()) };
            for row in run(&filter, &mut |_| ()).unwrap() {
                assert_eq!(row.chips, chip);
                assert!(row.holds(), "{row:?}");
            }
        }
    }
}

#[test]
fn a_row_has_exactly_the_published_keys() {
    let filter = Filter { workload: Some("GEMM floor".to_string()), chip: Some("M1".to_string()) };
    let rows = serde_json::to_value(run(&filter, &mut |_| ()).unwrap()).unwrap();
    let keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    let mut expected = ["workload", "chips", "published", "ours", "difference", "status"];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!((rows[0]["chips"].as_str(), rows[0]["status"].as_str()), (Some("m1"), Some("exact")));
    assert!(run(&Filter { workload: Some("no such".to_string()), chip: None }, &mut |_| ()).unwrap().is_empty());
}
