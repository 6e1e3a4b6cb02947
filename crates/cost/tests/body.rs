//! Programs become the work that their definitions say.
#![allow(clippy::unwrap_used)]

use aneforge_core::{DType, Graph, HostArray, Target, Tensor, lower};
use aneforge_cost::body::{items, work};
use aneforge_cost::{Basis, Chip, HostClass, Kind, Model, Work};
use aneforge_mil::Body;

fn body(output: &Tensor) -> Body {
    lower(&[("y".to_string(), output.clone())], Target::Generic).unwrap()
}

fn weight(graph: &Graph, shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    graph.constant(&HostArray::fp16_from_f32(shape.to_vec(), &vec![0.5; count]).unwrap())
}

#[test]
fn a_layer_is_counted_by_hand() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[64, 256]);
    let body = body(&x.linear(&weight(&graph, &[512, 256]), None).relu());
    let items = items(&body);
    assert_eq!(items.iter().map(|item| item.op).collect::<Vec<_>>(), ["matmul", "relu"]);
    let product = &items[0].work[0];
    assert_eq!((product.kind, product.flops), (Kind::Product, 2.0 * 64.0 * 256.0 * 512.0));
    assert_eq!((product.weight_bytes, product.input_bytes, product.output_bytes), (262_144.0, 32_768.0, 65_536.0));
    let work = work(&body, &items, 1);
    assert_eq!((work.elements_in, work.elements_out, work.dispatches), (64.0 * 256.0, 64.0 * 512.0, 1.0));
}

#[test]
fn a_product_of_activations_has_no_weight_and_minds_its_transposes() {
    let graph = Graph::new();
    let (x, y) = (graph.input("x", DType::Fp16, &[3, 16, 64]), graph.input("z", DType::Fp16, &[3, 64, 32]));
    let items = items(&body(&x.matmul(&y)));
    let product = &items[0].work[0];
    assert_eq!((product.weight_bytes, product.flops), (0.0, 2.0 * 3.0 * 16.0 * 64.0 * 32.0));
}

#[test]
fn norms_count_once_whether_written_out_or_not() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[64, 256]);
    let root = (&x * &x).mean([-1], true).rsqrt(1e-3);
    let written = body(&(&x * &root));
    let kinds: Vec<Kind> = items(&written).iter().flat_map(|item| &item.work).map(|work| work.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::RmsNorm).count(), 1, "{kinds:?}");
    assert!(!kinds.contains(&Kind::Reduction), "{kinds:?}");
}

#[test]
fn what_depends_on_constants_alone_takes_no_time() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4, 8]);
    let bias = weight(&graph, &[8]).exp();
    let items = items(&body(&(&x + &bias)));
    assert_eq!(items.iter().map(|item| item.op).collect::<Vec<_>>(), ["add"]);
}

#[test]
fn a_chip_without_rows_is_labelled_and_less_certain() {
    let model = Model::committed().unwrap();
    let work = Work::new(1e5, 1e5, vec![aneforge_cost::Operation::vector(Kind::Softmax, 1e5)]);
    let estimate = |name| model.chip(Chip::find(name).unwrap(), HostClass::Native).estimate(&work);
    let width = |name| estimate(name).total_ms.high / estimate(name).total_ms.value;
    assert!(matches!(estimate("m4").basis, Basis::Fitted { .. }));
    assert!(matches!(estimate("m3").basis, Basis::Extrapolated { .. }));
    assert!(width("m4") < width("m3") && width("m3") < width("m6"));
    assert!((width("h16s") - width("m3")).abs() < 1e-9);
}

#[test]
fn every_target_that_takes_programs_has_an_estimate() {
    let model = Model::committed().unwrap();
    let layer = aneforge_cost::Operation::linear(8.0, 4096.0, 4096.0, aneforge_cost::Format::Int4);
    let work = Work::new(32_768.0, 32_768.0, vec![layer]);
    for target in aneforge_core::compiler_targets() {
        let Some(chip) = target.chip() else { continue };
        let estimate = model.chip(chip, HostClass::Native).estimate(&work);
        for ranged in [estimate.total_ms, estimate.package_mj, estimate.engine_mj] {
            assert!(ranged.value.is_finite() && ranged.low > 0.0 && ranged.low < ranged.high, "{} {ranged:?}", target.name);
        }
        // Package energy includes the engine's.
        assert!(estimate.engine_mj.value <= estimate.package_mj.value, "{}", target.name);
    }
}
