//! Every record of the operator table, tested through its own examples: one named test per rule (`matmul_C1`), per example and
//! per derivative.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod support;

use aneforge_core::op::{Case, Constraint, Expected, GraphOp, InputKind, Vjp, builtin};
use aneforge_core::{Array, Body, DType, GraphError, LowerOptions, Target, Tensor, backward, evaluate, lower, lower_with};
use libtest_mimic::{Arguments, Failed, Trial};
use support::{Built, build, values_of};

fn main() {
    let mut trials = vec![
        Trial::test("names_are_unique_and_every_operator_has_an_example", names_are_unique),
        Trial::test("no_derivative_goes_unchecked_and_none_is_missing_without_a_reason", derivatives_are_checked),
    ];
    for &op in builtin() {
        for rule in op.constraints {
            trials.push(Trial::test(format!("{}_{}", op.name, rule.label), move || refuses(op, rule)));
        }
        for case in op.cases {
            let name = |what: &str| format!("{}_{}_{what}", op.name, case.name);
            trials.push(Trial::test(name("gives_what_is_expected"), move || gives_expected(op, case)));
            trials.push(Trial::test(name("lowers_to_the_same_body_twice"), move || lowers_alike(op, case)));
            if matches!(op.vjp, Vjp::Rule(_)) {
                trials.push(Trial::test(name("derivative_equals_difference_quotient"), move || {
                    Ok(check_gradient(&build(op, case))?)
                }));
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn names_are_unique() -> Result<(), Failed> {
    let mut names: Vec<_> = builtin().iter().map(|op| op.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    let bare: Vec<_> = builtin().iter().filter(|op| op.cases.is_empty() && op.is_available()).map(|op| op.name).collect();
    assert!(bare.is_empty(), "without an example: {bare:?}");
    Ok(())
}

/// The counterexample of a rule is refused by that rule, and the error says operator, label, rule and shapes.
fn refuses(op: &'static GraphOp, rule: &Constraint) -> Result<(), Failed> {
    match build(op, &rule.broken_by).outputs[0].check() {
        Err(error @ GraphError::Constraint { label, .. }) if label == rule.label => {
            let text = error.to_string();
            let shapes = rule.broken_by.inputs.iter().all(|sample| text.contains(&format!("{:?}", sample.shape)));
            let complete = text.contains(op.name) && text.contains(rule.label) && text.contains(rule.rule) && shapes;
            if complete { Ok(()) } else { Err(format!("the text lacks operator, label, rule or shapes: {text}").into()) }
        }
        Err(other) => Err(format!("refused by something else: {other}").into()),
        Ok(_) => Err("accepted".into()),
    }
}

/// The types found without computing are those of the computed values, and those are the expected ones.
fn gives_expected(op: &'static GraphOp, case: &Case) -> Result<(), Failed> {
    let required = op.inputs.iter().filter(|spec| spec.kind != InputKind::Optional);
    for spec in required {
        assert!(case.inputs.iter().any(|sample| sample.input == spec.name), "the example lacks input {}", spec.name);
    }
    let built = build(op, case);
    let results = built.results()?;
    for (output, result) in built.outputs.iter().zip(&results) {
        assert_eq!((output.ty().unwrap(), result.ty.count()), (&result.ty, result.data.len()));
    }
    let (shape, values) = match case.expected {
        Expected::Shape(shape) => (shape, None),
        Expected::Values { shape, values, .. } => (shape, Some(values)),
        Expected::Refused => return Err("an example must be legal".into()),
    };
    assert_eq!(results[0].ty.shape, shape);
    // Constants such as 0.1 are rounded to fp16 in the lowering, hence not closer.
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-3 * (1.0 + b.abs());
    let got = &results[0].data;
    if values.is_some_and(|values| values.len() != got.len() || !got.iter().zip(values).all(close)) {
        return Err(format!("values {got:?}, expected {values:?}").into());
    }
    Ok(())
}

/// Nothing in a lowering depends on the run: names, order and constants are the same.
fn lowers_alike(op: &'static GraphOp, case: &Case) -> Result<(), Failed> {
    let text = || {
        let body = lower(&build(op, case).named_outputs(), Target::Generic).unwrap();
        format!("{:?} {:?}", body.values.iter().map(|value| (&value.name, &value.ty)).collect::<Vec<_>>(), values_of(&body))
    };
    assert_eq!(text(), text());
    Ok(())
}

/// Each derivative rule has an example whose gradient is compared, with respect to each input of floats that the operator has; an
/// operator without a rule says why.
fn derivatives_are_checked() -> Result<(), Failed> {
    let mut unchecked = Vec::new();
    for op in builtin().iter().filter(|op| op.is_available()) {
        if let Vjp::None(reason) = op.vjp {
            assert!(reason.len() > 10 && reason != "nobody has written it yet", "{} has no derivative: {reason:?}", op.name);
            continue;
        }
        for spec in op.inputs.iter().filter(|spec| spec.dtypes.iter().any(|dtype| dtype.is_float())) {
            let compared = |case: &&Case| {
                let sample = case.inputs.iter().find(|sample| sample.input == spec.name);
                let varies = sample.is_some_and(|sample| sample.dtype.is_float() && !sample.constant);
                varies && build(op, case).outputs.iter().all(|output| output.ty().is_ok_and(|ty| ty.dtype.is_float()))
            };
            if op.cases.iter().any(|case| compared(&case)) {
                continue;
            }
            // Examples give it as a constant: an input in its place has a gradient too, unless the operator takes constants alone.
            let mut checked = false;
            for case in op.cases {
                let mut samples = case.inputs.to_vec();
                samples.iter_mut().filter(|sample| sample.input == spec.name).for_each(|sample| sample.constant = false);
                let opened = build(op, &Case { inputs: samples.leak(), ..*case });
                let is_given = case.inputs.iter().any(|sample| sample.input == spec.name);
                if is_given && opened.body().is_ok() {
                    check_gradient(&opened).map_err(|error| format!("{} of {}: {error}", spec.name, op.name))?;
                    checked = true;
                }
            }
            let takes_constants_alone = op.cases.iter().all(|case| {
                let mut samples = case.inputs.to_vec();
                samples.iter_mut().for_each(|sample| sample.constant &= sample.input != spec.name);
                build(op, &Case { inputs: samples.leak(), ..*case }).body().is_err()
            });
            if !checked && !takes_constants_alone {
                unchecked.push(format!("{} of {}", spec.name, op.name));
            }
        }
    }
    if unchecked.is_empty() { Ok(()) } else { Err(format!("no gradient is compared for {unchecked:?}").into()) }
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
        let weights: Vec<f64> = (0..ty.count()).map(|place| ((place * 7 + index * 3) % 11) as f64 / 8.0 - 0.5).collect();
        let weighted = output.cast(DType::Fp16) * built.graph.values(DType::Fp16, &ty.shape, &weights);
        loss = loss + weighted.reduce_sum([0i64; 0], false);
    }
    let is_float = |index: &usize| built.inputs[*index].ty().is_ok_and(|ty| ty.dtype.is_float());
    let wrt: Vec<usize> = (0..built.inputs.len()).filter(is_float).collect();
    if wrt.is_empty() {
        return Ok(());
    }
    let targets: Vec<_> = wrt.iter().map(|&index| built.inputs[index].clone()).collect();
    let grads = backward(&loss, &targets);
    let body = |tensors: &[Tensor]| {
        let outputs: Vec<_> = tensors.iter().enumerate().map(|(index, tensor)| (format!("out{index}"), tensor.clone())).collect();
        lower_with(&outputs, LowerOptions { target: Target::Generic, keep_unused_inputs: true }).map_err(text)
    };
    let (loss_body, grad_body) = (body(&[loss])?, body(&grads)?);
    let run = |body: &Body, arrays: &[Array]| evaluate(body, arrays).map_err(|error| error.to_string());
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
