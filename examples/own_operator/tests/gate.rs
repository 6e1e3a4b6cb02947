//! The operator passes what ANEForge's own operators pass.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use aneforge::conform::generate::{Campaign, Tally, generate};
use aneforge::conform::suite::{Options, Suite};
use aneforge::core::op::{Vjp, builtin};
use aneforge::core::{GraphOp, evaluate, lower};
use aneforge::{Array, CompileOptions, DType, Graph, GraphError, HostArray, IntoProgram, Target, backward, chips, compile, open};
use aneforge_own_operator::{SOFT_SHRINK, SoftShrink};

const X: [f64; 8] = [-3.0, -0.75, -0.5, -0.125, 0.0, 0.5, 0.625, 65504.0];

fn closed_form(x: f64, lambd: f64) -> f64 {
    x.signum() * (x.abs() - lambd).max(0.0)
}

#[test]
fn every_device_gives_the_closed_form() {
    let graph = Graph::new();
    let y = graph.input("x", DType::Fp16, &[8]).soft_shrink(0.5);
    let x = HostArray::from_f64(DType::Fp16, [8], &X).unwrap();
    for target in [Target::Generic].into_iter().chain(chips().iter().map(Target::e5rt)) {
        let program =
            compile(&[("y", &y)], &CompileOptions { target, ..CompileOptions::default() }).unwrap().into_program().unwrap();
        let emulator = format!("emulator:{}", target.chip().map_or("m1", |chip| chip.name));
        for device in ["reference", "cpu", &emulator] {
            let results = open(device).unwrap().load(&program).unwrap().run(&[&x]).unwrap();
            for (got, &x) in results[0].to_array().data.iter().zip(&X) {
                let wanted = closed_form(x, 0.5);
                assert!((got - wanted).abs() <= 1e-3 * wanted.abs(), "{device} for {target}: {x} gives {got}, not {wanted}");
            }
        }
    }
}

#[test]
#[allow(non_snake_case)]
fn soft_shrink_C1() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 3]);
    for lambd in [-1.0, f64::NAN, 1e6] {
        match x.soft_shrink(lambd).check() {
            Err(error @ GraphError::Constraint { label: "C1", .. }) => assert!(error.to_string().contains("[2, 3]"), "{error}"),
            other => panic!("{lambd}: {other:?}"),
        }
    }
    assert!(x.soft_shrink(0.0).check().is_ok());
}

#[test]
fn the_gradient_is_the_slope() {
    assert!(matches!(SOFT_SHRINK.vjp, Vjp::Rule(_)));
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[8]);
    let slope = backward(&x.soft_shrink(0.25).sum([0], false), &[x]).remove(0);
    let body = lower(&[("slope".to_string(), slope)], Target::Generic).unwrap();
    let results = evaluate(&body, &[Array::new(DType::Fp16, [8], X.to_vec())]).unwrap();
    let wanted: Vec<f64> = X.iter().map(|x| f64::from(u8::from(x.abs() > 0.25))).collect();
    assert_eq!(results[0].data, wanted);
}

#[test]
fn it_goes_through_graph_text() {
    let graph = Graph::new();
    let y = graph.input("x", DType::Fp16, &[3]).soft_shrink(0.75);
    let text = graph.to_text_with(&[("y".to_string(), y)]);
    assert!(text.contains("soft_shrink(x = %0) [lambd = 0.75]"), "{text}");
    let read = Graph::parse_with(&text, &[&SOFT_SHRINK]).unwrap();
    assert_eq!(read.graph.to_text_with(&read.outputs), text);
}

/// The whole table, ours so many times that most graphs use it.
fn table() -> Vec<&'static GraphOp> {
    let mut operators = builtin().to_vec();
    operators.extend([&SOFT_SHRINK; 30]);
    operators
}

#[test]
fn random_graphs_with_it_agree_on_all_devices() {
    let (tally, failures) = Campaign::new(&table()).run(1, 60, 1, &mut |_| true);
    for failure in &failures {
        eprintln!("{}: {}\n{}", failure.finding.stage, failure.finding.problem, failure.case.as_deref().unwrap_or(""));
    }
    assert!(failures.is_empty(), "{} findings", failures.len());
    assert!(tally.uses["soft_shrink"] > 60, "{}", tally.report());
}

#[test]
fn random_graphs_reach_it_from_its_record_alone() {
    let mut tally = Tally::default();
    for seed in 0..10 {
        let _ = generate(seed, &table(), Campaign::mode(seed), &mut tally);
    }
    assert!(tally.uses["soft_shrink"] > 5);
}

#[test]
fn it_passes_the_conformance_suite_of_the_projects_own_operators() {
    let suite = Suite::of(&[&SOFT_SHRINK], &[]);
    for device in ["reference", "cpu", "emulator:m1", "emulator:m2", "emulator:m4", "emulator:m5"] {
        let report = suite.run(device, &Options::default(), &mut |_| ()).unwrap();
        assert!(report.is_green(), "{device}: {report:?}");
    }
}
