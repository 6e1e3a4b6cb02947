//! The text form of graphs: it reads back the same, and says where it cannot be read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod support;

use aneforge_core::op::builtin;
use aneforge_core::{DType, Graph, GraphError, Target, Weight, evaluate, lower};
use half::f16;
use support::build;

#[test]
fn every_operator_reads_back_the_same() {
    for op in builtin() {
        for case in op.cases {
            let built = build(op, case);
            let text = built.graph.to_text_with(&built.named_outputs());
            let read = Graph::parse(&text).unwrap_or_else(|error| panic!("{}/{}: {error}\n{text}", op.name, case.name));
            assert_eq!(read.graph.to_text_with(&read.outputs), text, "{}/{}", op.name, case.name);
            let body = lower(&read.outputs, Target::Generic).unwrap();
            let results = evaluate(&body, &built.arrays).unwrap();
            assert_eq!(results, built.results().unwrap(), "{}/{}", op.name, case.name);
        }
    }
}

fn sample() -> String {
    let graph = Graph::new();
    let x = graph.input("x \"quoted\" \u{7}", DType::Fp16, &[2, 3]);
    let weight = Weight::from_fp16([100, 3], &[f16::ONE; 300]).unwrap();
    let w = graph.parameter("w", weight);
    let halves = (x.linear(&w, None) * 0.1).named("scaled").split(2, 1);
    let outputs = [("left".to_string(), halves[0].clone()), ("max".to_string(), halves[1].amax(-1, false))];
    graph.to_text_with(&outputs)
}

#[test]
fn large_weights_become_seeded_stand_ins_that_stay_the_same() {
    let text = sample();
    assert!(text.contains("parameter \"w\" tensor<fp16, [100, 3]> seeded(1)"), "{text}");
    let read = Graph::parse(&text).unwrap();
    assert_eq!(read.graph.to_text_with(&read.outputs), text);
    let again = Graph::parse(&text).unwrap();
    let body = |outputs: &[(String, aneforge_core::Tensor)]| {
        let body = lower(outputs, Target::Generic).unwrap();
        let input = aneforge_core::Array::new(DType::Fp16, [2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        evaluate(&body, &[input]).unwrap()
    };
    assert_eq!(body(&read.outputs), body(&again.outputs));
    assert!(body(&read.outputs)[0].data.iter().any(|&value| value != 0.0));
}

#[test]
fn comments_and_blank_lines_are_skipped() {
    let read = Graph::parse("# a graph\n\n  %7 = input \"x\" tensor<fp16, [2]>  # the only one\noutput \"y\" = %7\n").unwrap();
    assert_eq!(read.outputs[0].1.shape().unwrap(), [2]);
}

#[test]
fn errors_say_line_column_and_what_is_wrong() {
    let head = "%0 = input \"x\" tensor<fp16, [2, 3]>\n";
    for (line, column, wanted) in [
        ("%1 = blur(x = %0) [] -> tensor<fp16, [2, 3]>", 6, "no operator \"blur\""),
        ("%1 = relu(y = %0) [] -> tensor<fp16, [2, 3]>", 11, "relu has no input \"y\"; it takes x"),
        ("%1 = relu(x = %4) [] -> tensor<fp16, [2, 3]>", 15, "%4 is not defined above"),
        ("%1 = relu(x = %0.1) [] -> tensor<fp16, [2, 3]>", 15, "%0 has 1 results"),
        ("%1 = relu(x = %0) [] -> tensor<fp16, [3, 2]>", 25, "relu gives tensor<fp16, [2, 3]>, not tensor<fp16, [3, 2]>"),
        ("%1 = matmul(x = %0, y = %0) [] -> tensor<fp16, [2, 2]>", 6, "matmul breaks rule C3"),
        ("%1 = softmax(x = %0) [axes = 1] -> tensor<fp16, [2, 3]>", 23, "softmax has no attribute \"axes\"; it takes axis"),
        ("%1 = softmax(x = %0) [axis = \"last\"] -> tensor<fp16, [2, 3]>", 6, "takes an integer"),
        ("%0 = relu(x = %0) [] -> tensor<fp16, [2, 3]>", 1, "%0 is defined twice"),
        ("%1 = input \"x\" tensor<fp16, [2, 3]>", 6, "already an input"),
        ("%1 = input \"y\" tensor<fp12, [2, 3]>", 23, "no element type"),
        ("%1 = constant tensor<fp16, [2]> [1.0]", 6, "2 elements but 1"),
        ("relu", 1, "a line is"),
        ("output \"y\" = %0 %1", 17, "end of the line"),
        ("output \"y = %0", 9, "does not end"),
    ] {
        match Graph::parse(&format!("{head}{line}\n")) {
            Err(GraphError::Text { line: 2, column: at, message }) => {
                assert!(message.contains(wanted) && at == column, "{line}: column {at}: {message}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn text_cut_anywhere_is_refused_or_read_but_never_panics() {
    let text = sample();
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        let _ = Graph::parse(&text[..end]);
        // A character that does not belong there, too.
        let _ = Graph::parse(&format!("{}\u{e9}{}", &text[..end], &text[end..]));
    }
}
