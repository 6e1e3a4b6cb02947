//! Every record of the operator table, tested through its own examples: rules, shapes, values and derivatives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod support;

use aneforge_core::op::{Expected, InputKind, Vjp, builtin};
use aneforge_core::{GraphError, Target, backward, evaluate, lower};
use support::{Built, build, values_of};

#[test]
fn names_are_unique_and_every_operator_has_an_example() {
    let mut names: Vec<_> = builtin().iter().map(|op| op.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    let bare: Vec<_> = builtin().iter().filter(|op| op.cases.is_empty()).map(|op| op.name).collect();
    assert!(bare.is_empty(), "without an example: {bare:?}");
}

#[test]
fn each_rule_refuses_its_counterexample_and_says_so() {
    let mut wrong = Vec::new();
    for op in builtin() {
        for rule in op.constraints {
            let name = format!("{}_{}", op.name, rule.label);
            match build(op, &rule.broken_by).outputs[0].check() {
                Err(error @ GraphError::Constraint { label, .. }) if label == rule.label => {
                    let text = error.to_string();
                    let shapes = rule.broken_by.inputs.iter().all(|sample| text.contains(&format!("{:?}", sample.shape)));
                    if !(text.contains(op.name) && text.contains(rule.label) && text.contains(rule.rule) && shapes) {
                        wrong.push(format!("{name}: the text lacks operator, label, rule or shapes: {text}"));
                    }
                }
                Err(other) => wrong.push(format!("{name}: refused by something else: {other}")),
                Ok(_) => wrong.push(format!("{name}: accepted")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_have_the_expected_shapes_and_values() {
    let mut wrong = Vec::new();
    for op in builtin() {
        for case in op.cases {
            let name = format!("{}/{}", op.name, case.name);
            let built = build(op, case);
            let results = match built.results() {
                Ok(results) => results,
                Err(error) => {
                    wrong.push(format!("{name}: {error}"));
                    continue;
                }
            };
            for (output, result) in built.outputs.iter().zip(&results) {
                if output.ty().unwrap() != &result.ty || result.data.len() != result.ty.count() {
                    wrong.push(format!("{name}: inferred {}, computed {}", output.ty().unwrap(), result.ty));
                }
            }
            let (shape, values) = match case.expected {
                Expected::Shape(shape) => (shape, None),
                Expected::Values { shape, values, .. } => (shape, Some(values)),
                Expected::Refused => panic!("{name}: an example must be legal"),
            };
            if results[0].ty.shape != shape {
                wrong.push(format!("{name}: shape {:?}, expected {shape:?}", results[0].ty.shape));
            }
            // Constants such as 0.1 are rounded to fp16 in the lowering, hence not closer.
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-3 * (1.0 + b.abs());
            if values.is_some_and(|values| values.len() != results[0].data.len() || !results[0].data.iter().zip(values).all(close))
            {
                wrong.push(format!("{name}: values {:?}, expected {values:?}", results[0].data));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn derivatives_equal_finite_differences() {
    let mut wrong = Vec::new();
    for op in builtin().iter().filter(|op| matches!(op.vjp, Vjp::Rule(_))) {
        for case in op.cases {
            if let Err(error) = check_gradient(&build(op, case)) {
                wrong.push(format!("{}/{}: {error}", op.name, case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares the gradient of a weighted sum of all results with central differences of its f64 meaning.
fn check_gradient(built: &Built) -> Result<(), String> {
    let text = |error: GraphError| error.to_string();
    let mut loss = built.graph.scalar(0.0);
    for (index, output) in built.outputs.iter().enumerate() {
        let ty = output.ty().map_err(text)?.clone();
        if !ty.dtype.is_float() {
            return Ok(());
        }
        // Multiples of 1/8: exact in fp16, so that the weights are the same on both sides.
        let weights: Vec<f64> = (0..ty.count()).map(|place| f64::from(((place * 7 + index * 3) % 11) as u32) / 8.0 - 0.5).collect();
        let weighted =
            output.cast(aneforge_core::DType::Fp16) * built.graph.values(aneforge_core::DType::Fp16, &ty.shape, &weights);
        loss = loss + weighted.reduce_sum([0i64; 0], false);
    }
    let wrt: Vec<usize> =
        (0..built.inputs.len()).filter(|&index| built.inputs[index].ty().is_ok_and(|ty| ty.dtype.is_float())).collect();
    if wrt.is_empty() {
        return Ok(());
    }
    let targets: Vec<_> = wrt.iter().map(|&index| built.inputs[index].clone()).collect();
    let grads = backward(&loss, &targets);
    let body = |tensors: &[aneforge_core::Tensor]| {
        let outputs: Vec<_> = tensors.iter().enumerate().map(|(index, tensor)| (format!("out{index}"), tensor.clone())).collect();
        let options = aneforge_core::LowerOptions { target: Target::Generic, keep_unused_inputs: true };
        aneforge_core::lower_with(&outputs, options).map_err(text)
    };
    let (loss_body, grad_body) = (body(&[loss])?, body(&grads)?);
    let run =
        |body: &aneforge_core::Body, arrays: &[aneforge_core::Array]| evaluate(body, arrays).map_err(|error| error.to_string());
    let computed = run(&grad_body, &built.arrays)?;
    let step = 1e-4;
    for (&input, grad) in wrt.iter().zip(&computed) {
        if grad.ty != built.arrays[input].ty {
            return Err(format!("gradient has type {}", grad.ty));
        }
        let scale = grad.data.iter().fold(1.0f64, |scale, value| scale.max(value.abs()));
        for place in 0..grad.data.len() {
            let at = |delta: f64| {
                let mut arrays = built.arrays.clone();
                arrays[input].data[place] += delta;
                run(&loss_body, &arrays).map(|results| results[0].data[0])
            };
            let slope = (at(step)? - at(-step)?) / (2.0 * step);
            if (slope - grad.data[place]).abs() > 3e-3 * scale {
                return Err(format!(
                    "input {input}, element {place}: derivative {}, difference quotient {slope}",
                    grad.data[place]
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn variadic_inputs_are_named_in_examples() {
    for op in builtin() {
        for case in op.cases {
            for spec in op.inputs.iter().filter(|spec| spec.kind != InputKind::Optional) {
                assert!(
                    case.inputs.iter().any(|sample| sample.input == spec.name),
                    "{}/{} lacks {}",
                    op.name,
                    case.name,
                    spec.name
                );
            }
        }
    }
}

#[test]
fn lowering_is_deterministic() {
    for op in builtin() {
        let text = || {
            let built = build(op, &op.cases[0]);
            let body = lower(&built.named_outputs(), Target::Generic).unwrap();
            format!("{:?} {:?}", body.values, values_of(&body))
        };
        assert_eq!(text(), text(), "{}", op.name);
    }
}
