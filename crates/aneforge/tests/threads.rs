//! Graphs are built and programs run from several threads at once, with the answers of one thread.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use aneforge::{DType, Executable, Graph, HostArray, Tensor, compile, open};
use aneforge_testkit::Random;
use common::graphs::{Maker, networks};
use common::{options, run, written};
use std::sync::{Arc, Barrier};
use std::thread;

const THREADS: usize = 8;

/// Runs a closure on all threads at the same moment and gives their results in order.
fn together<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        let start = |index| {
            let (work, barrier) = (&work, &barrier);
            scope.spawn(move || {
                barrier.wait();
                work(index)
            })
        };
        let handles: Vec<_> = (0..THREADS).map(start).collect();
        handles.into_iter().map(|handle| handle.join().expect("no thread panics")).collect()
    })
}

fn chain(x: &Tensor, length: usize) -> Tensor {
    (0..length).fold(x.clone(), |value, step| (value * 0.5 + step as f64 * 0.125).tanh())
}

#[test]
fn one_graph_grows_from_many_threads_and_equal_nodes_stay_one() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4, 8]);
    let alone = chain(&x, 40);
    let size = graph.len();
    let built = together(|_| chain(&x, 40));
    assert!(built.iter().all(|tensor| tensor.is_same(&alone)), "equal expressions became different nodes");
    assert_eq!(graph.len(), size);
    let parts = together(|index| chain(&(&x * (index + 2) as f64), 20));
    let sum = parts.iter().skip(1).fold(parts[0].clone(), |sum, part| sum + part);
    assert!(compile(&[("y", &sum)], &options("generic")).is_ok());
}

#[test]
fn a_name_is_given_to_one_thread_alone() {
    let graph = Graph::new();
    let made = together(|_| graph.input("x", DType::Fp16, &[2]).check().is_ok());
    assert_eq!(made.iter().filter(|&&made| made).count(), 1);
    assert_eq!(graph.inputs().len(), 1);
}

#[test]
fn compiling_the_same_graph_on_many_threads_writes_the_same_text() {
    for sample in &networks() {
        let texts = together(|_| written(&compile(&sample.named_outputs(), &options("generic")).unwrap()).text);
        assert!(texts.iter().all(|text| *text == texts[0]), "{}", sample.name);
    }
}

#[test]
fn one_loaded_program_answers_many_threads_each_with_its_own_result() {
    let mut make = Maker::new(21);
    let x = make.input("x", &[16, 48], -1.0, 1.0);
    let (up, bias, down) = (make.dense(96, 48), make.weight(&[96], -0.2, 0.2), make.dense(48, 96));
    let y = x.linear(&up, Some(&bias)).relu().linear(&down, None).softmax(-1);
    let bundle = written(&compile(&[("y", &y)], &options("generic")).unwrap());
    for device in ["null", "reference", "cpu", "emulator:m1", "emulator:m5"] {
        let loaded = open(device).unwrap().load(&bundle.program).unwrap();
        let inputs: Vec<HostArray> = (0..THREADS)
            .map(|seed| HostArray::from_f64(DType::Fp16, [16, 48], &Random::new(seed as u64).values(16 * 48, -1.0, 1.0)).unwrap())
            .collect();
        let alone: Vec<HostArray> = inputs.iter().map(|input| loaded.run(&[input]).unwrap().remove(0)).collect();
        if device != "null" {
            assert_ne!(alone[0], alone[1]);
        }
        let rounds = if device == "cpu" { 50 } else { 5 };
        together(|index| {
            for _ in 0..rounds {
                assert_eq!(loaded.run(&[&inputs[index]]).unwrap()[0], alone[index], "{device}");
            }
        });
    }
}

#[test]
fn programs_are_loaded_run_and_dropped_on_many_threads() {
    let samples = networks();
    let bundles: Vec<_> =
        samples.iter().map(|sample| written(&compile(&sample.named_outputs(), &options("generic")).unwrap())).collect();
    let alone: Vec<_> = samples.iter().zip(&bundles).map(|(sample, bundle)| run("cpu", &bundle.program, &sample.inputs)).collect();
    together(|index| {
        for round in 0..2 * samples.len() {
            let which = (index + round) % samples.len();
            let got = run("cpu", &bundles[which].program, &samples[which].inputs);
            assert_eq!(got, alone[which], "{}", samples[which].name);
        }
    });
}

#[test]
fn what_people_hold_may_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Graph>();
    crosses::<Tensor>();
    crosses::<HostArray>();
    crosses::<Arc<dyn Executable>>();
    crosses::<aneforge::runtime::Program>();
}
