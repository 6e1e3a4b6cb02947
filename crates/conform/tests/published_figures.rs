//! The published figures, recomputed with a plainly written twin of the engine's exact rules.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod twin;

use std::sync::Arc;

use aneforge_conform::case::{HalfTensor, Program};
use aneforge_conform::fingerprint::{Engine, EngineError, Filter, run_with};
use aneforge_conform::published::{PUBLISHED, Status};
use half::f16;
use twin::Form;

struct Twin(Form);

impl Engine for Twin {
    fn run(&mut self, program: &Arc<Program>, inputs: &[HalfTensor]) -> Result<Vec<f16>, EngineError> {
        Ok(twin::run(program, inputs, self.0))
    }
}

/// Runs the twin on the workloads whose name starts as given and checks every row's claim.
fn check(prefixes: &[&str]) {
    for prefix in prefixes {
        let filter = Filter { workload: Some((*prefix).to_string()), chip: None };
        let mut open = |chip: &'static aneforge_core::Chip| {
            let form = if chip.winograd { Form::Winograd } else { Form::Direct };
            Ok(Box::new(Twin(form)) as Box<dyn Engine>)
        };
        let rows = run_with(&filter, &mut open, &mut |_| ()).unwrap();
        assert!(!rows.is_empty(), "no workload is called {prefix}");
        for row in rows {
            println!("{:<46} {:<6} {:.17} {:+.1e}", row.workload, row.chips, row.ours, row.difference);
            assert!(row.holds(), "{row:?}");
            if row.status == Status::Close {
                assert!(row.difference.abs() < 1e-9, "{row:?}");
            }
        }
    }
}

#[test]
fn small_products_and_the_fourier_transform_match_all_digits() {
    check(&["gemm/N=512", "square_sweep/N=512", "square_sweep/N=1024", "GEMM floor", "DFT"]);
}

#[test]
fn convolutions_match_in_the_direct_and_in_the_winograd_form() {
    check(&["conv/C=64", "conv single", "stencil"]);
}

#[test]
fn the_jacobi_solver_matches_where_the_hosts_summation_order_is_known() {
    check(&["Jacobi"]);
}

#[test]
fn relu_matches_all_digits() {
    check(&["relu, short sweep [256", "relu, long sweep [1024"]);
}

#[test]
#[ignore = "minutes without an optimised engine; the emulator runs all of it"]
fn every_exact_figure_matches() {
    check(&["gemm", "square_sweep", "conv", "relu", "stencil", "dft", "jacobi"]);
}

#[test]
fn every_published_figure_has_a_workload_and_every_workload_a_figure() {
    use aneforge_conform::workload::{WORKLOADS, Workload};
    for published in PUBLISHED {
        assert!(Workload::find(published.workload).is_some(), "{}", published.workload);
        for chip in published.chips {
            assert!(aneforge_core::Chip::find(chip).is_some(), "{chip}");
        }
    }
    for workload in WORKLOADS {
        assert!(PUBLISHED.iter().any(|published| published.workload == workload.name), "{}", workload.name);
    }
}
