//! The report on the emulators: every exact figure, through graph, bundle and device.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::time::Instant;

use aneforge_conform::fingerprint::{Filter, Row, run};

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
