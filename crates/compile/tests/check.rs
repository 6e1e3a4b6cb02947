//! What a program meets on each target, told before it is compiled for one.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use aneforge_compile::check::{Assumptions, Range, Risk, RiskKind, TargetCheck, Verdict, all_targets, check, ranges, risks};
use aneforge_core::{CompilerTarget, DType, Graph, HostArray, Target, Tensor, Window, lower};
use aneforge_mil::{Body, Constant, ValueKind, Weight, WeightError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn body(output: &Tensor) -> Body {
    lower(&[("y".to_string(), output.clone())], Target::Generic).unwrap()
}

fn on(body: &Body, target: &str) -> TargetCheck {
    check(body, &[CompilerTarget::find(target).unwrap()]).remove(0)
}

fn found(body: &Body, assumptions: &Assumptions) -> Vec<Risk> {
    risks(body, &ranges(body, assumptions), &all_targets(), 0.01)
}

fn of(risks: &[Risk], kind: RiskKind) -> Vec<&Risk> {
    risks.iter().filter(|risk| risk.kind == kind).collect()
}

fn weight(graph: &Graph, shape: &[usize], value: f32) -> Tensor {
    graph.constant(&HostArray::fp16_from_f32(shape.to_vec(), &vec![value; shape.iter().product()]).unwrap())
}

#[test]
fn an_operator_is_native_where_the_chip_has_it_and_written_out_elsewhere() {
    let graph = Graph::new();
    let body = body(&graph.input("x", DType::Fp16, &[4, 8]).sin());
    let sine = |target: &str| on(&body, target).findings.into_iter().find(|finding| finding.op == "sin").unwrap();
    let old = sine("h13");
    assert_eq!((old.verdict, old.count), (Verdict::Decomposed, 1));
    assert!(old.reason.contains("mul"), "{}", old.reason);
    assert_eq!(sine("h15").verdict, Verdict::Native);
}

#[test]
fn sizes_beyond_a_limit_are_told_with_the_limit_and_what_to_do() {
    let graph = Graph::new();
    let body = body(&graph.input("x", DType::Fp16, &[1, 20_000]).relu());
    let relu = on(&body, "h14g").findings.remove(0);
    assert_eq!(relu.verdict, Verdict::Oversize);
    assert!(relu.reason.contains("16384") && !relu.remedy.is_empty(), "{relu:?}");
    assert_eq!(on(&body, "h16").worst(), Verdict::Native);
}

#[test]
fn a_target_without_programs_refuses_everything_and_says_why() {
    let graph = Graph::new();
    let body = body(&graph.input("x", DType::Fp16, &[4, 8]).relu());
    for target in ["h11", "h12", "m9", "t0", "u1", "u2", "u3"] {
        let checked = on(&body, target);
        assert_eq!(checked.worst(), Verdict::Rejected);
        assert!(checked.findings.iter().all(|finding| finding.reason.contains("H13")), "{checked:?}");
    }
}

/// What the check says of a whole program is what compiling says.
#[test]
fn verdicts_agree_with_the_compiler() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 4, 8, 40]);
    let wide = x.conv(&weight(&graph, &[4, 4, 1, 14], 0.1), None, &Window::default());
    for (output, ok) in [(wide, [false, true]), (x.softmax(-1), [true, true])] {
        let body = body(&output);
        for (target, ok) in ["h13", "h16"].into_iter().zip(ok) {
            let options = aneforge_compile::CompileOptions { target: target.parse().unwrap(), ..Default::default() };
            assert_eq!(aneforge_compile::compile_body(body.clone(), &options).is_ok(), ok, "{target}");
            assert_eq!(on(&body, target).worst() < Verdict::Oversize, ok, "{target}");
        }
    }
}

#[test]
fn products_that_may_pass_the_ceiling_are_told_and_likely_only_where_they_typically_do() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 1024]);
    let at = |value: f32| {
        let risks = found(&body(&x.linear(&weight(&graph, &[2, 1024], value), None)), &Assumptions::default());
        of(&risks, RiskKind::ProductOverflow).first().map(|risk| (risk.size, risk.is_likely))
    };
    assert_eq!(at(1.0), None);
    // 1024 products of at most 4 x 16 are bounded by 65536; typically they are 32 x 2.3 x 16.
    assert_eq!(at(16.0), Some((65536.0, false)));
    assert!(at(256.0).is_some_and(|(_, is_likely)| is_likely));
}

#[test]
fn observed_values_take_the_place_of_bounds() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 1024]);
    let body = body(&x.linear(&weight(&graph, &[2, 1024], 16.0), None));
    let name = body.value(body.outputs[0].value).name.clone();
    let observed = [(name, Range { low: -900.0, high: 800.0, scale: 200.0 })].into_iter().collect();
    let risks = found(&body, &Assumptions { observed, ..Assumptions::default() });
    assert!(of(&risks, RiskKind::ProductOverflow).is_empty(), "{risks:?}");
}

#[test]
fn the_hazard_of_width_slices_is_told_for_the_chips_that_have_it() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4, 64]) * 2000.0;
    let risks = found(&body(&x.slice_by_size(&[0, 8], &[4, 16])), &Assumptions::default());
    let slices = of(&risks, RiskKind::WidthSlice);
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].targets, ["h13", "h13g", "t1", "h14", "h14g", "h14c"]);
    let risks = found(&body(&x.slice_by_size(&[1, 0], &[2, 64])), &Assumptions::default());
    assert!(of(&risks, RiskKind::WidthSlice).is_empty());
}

#[test]
fn the_loss_of_small_products_is_predicted_from_scales() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 4096]);
    // The published workload: both factors of deviation 1/64, relative error 0.02724 (arXiv 2606.17090).
    let name = Assumptions { inputs: (-0.027_063_3, 0.027_063_3), weight_elements: 0, ..Assumptions::default() };
    let risks = found(&body(&x.linear(&weight(&graph, &[4096, 4096], 0.0), None)), &name);
    let small = of(&risks, RiskKind::SmallProducts);
    assert!(small.len() == 1 && (small[0].size / 0.02724 - 1.0).abs() < 0.02, "{small:?}");
}

#[test]
fn an_epsilon_that_fp16_loses_is_told() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4, 64]);
    let at = |epsilon: f64| {
        let mut body = body(&x.layer_norm([-1], None, None, 1e-3));
        // Lowering raises what fp16 can't hold; programs that are read may have anything.
        for value in &mut body.values {
            match &mut value.kind {
                ValueKind::Constant(Constant::Values(values)) if values.len() == 1 && (1e-4..1e-2).contains(&values[0]) => {
                    values[0] = epsilon;
                }
                _ => {}
            }
        }
        of(&found(&body, &Assumptions::default()), RiskKind::Epsilon).first().map(|risk| risk.is_likely)
    };
    assert_eq!((at(1e-12), at(1e-5), at(1e-3)), (Some(true), Some(false), None));
}

#[test]
fn chips_that_give_other_bits_are_named() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 8, 16, 16]);
    let window = Window { pad: vec![1, 1, 1, 1], ..Window::default() };
    let risks = found(&body(&x.conv(&weight(&graph, &[8, 8, 3, 3], 0.1), None, &window)), &Assumptions::default());
    let other = of(&risks, RiskKind::OtherBits);
    assert!(other.len() == 1 && other[0].targets.contains(&"h17s") && !other[0].targets.contains(&"h16"), "{other:?}");
}

/// A decoder of Qwen3-0.6B's shape on 128 tokens, 596 million weights of which none may be read. Its vocabulary is in tiles.
#[test]
fn a_large_decoder_is_checked_by_its_shapes_alone() {
    let reads = Arc::new(AtomicUsize::new(0));
    let graph = Graph::new();
    let named = |shape: &[usize]| {
        let reads = reads.clone();
        graph.weight(Weight::computed(
            shape.to_vec(),
            Arc::new(move |_| {
                reads.fetch_add(1, Ordering::Relaxed);
                Err(WeightError::Other("read".to_string()))
            }),
        ))
    };
    let (tokens, width, inner, heads, groups, head) = (128, 1024, 3072, 16, 8, 128);
    let mut x = graph.input("x", DType::Fp16, &[tokens, width]);
    for _ in 0..28 {
        let normed = x.rms_norm(-1, None, 1e-5);
        let split = |y: &Tensor, heads: usize| y.reshape(&[tokens as i64, heads as i64, head as i64]).transpose(&[1, 0, 2]);
        let query = split(&normed.linear(&named(&[heads * head, width]), None), heads);
        let key = split(&normed.linear(&named(&[groups * head, width]), None), groups);
        let value = split(&normed.linear(&named(&[groups * head, width]), None), groups);
        let (key, value) = (aneforge_core::concat(&[key.clone(), key], 0), aneforge_core::concat(&[value.clone(), value], 0));
        let scores = query.matmul(&key.transpose(&[0, 2, 1])).softmax(-1).matmul(&value);
        let joined = scores.transpose(&[1, 0, 2]).reshape(&[tokens as i64, (heads * head) as i64]);
        x = x + joined.linear(&named(&[width, heads * head]), None);
        let normed = x.rms_norm(-1, None, 1e-5);
        let gate = normed.linear(&named(&[inner, width]), None).silu();
        x = x + (gate * normed.linear(&named(&[inner, width]), None)).linear(&named(&[width, inner]), None);
    }
    let normed = x.rms_norm(-1, None, 1e-5);
    let tiles: Vec<Tensor> = (0..10).map(|_| normed.linear(&named(&[15_194, width]), None)).collect();
    let outputs: Vec<(String, Tensor)> = tiles.into_iter().enumerate().map(|(at, tile)| (format!("logits_{at}"), tile)).collect();
    let body = lower(&outputs, Target::Generic).unwrap();
    let start = std::time::Instant::now();
    let checked = check(&body, &all_targets());
    let assumptions = Assumptions { weight_elements: 0, ..Assumptions::default() };
    let risks = risks(&body, &ranges(&body, &assumptions), &all_targets(), 0.01);
    println!("{} operations, 28 targets, {} risks in {:?}", body.operations.len(), risks.len(), start.elapsed());
    assert_eq!(reads.load(Ordering::Relaxed), 0);
    assert_eq!(checked.len(), 28);
    for target in checked.iter().filter(|target| CompilerTarget::find(target.target).unwrap().features.mil) {
        assert!(target.worst() <= Verdict::Decomposed, "{}: {:?}", target.target, target.findings.first());
    }
}
