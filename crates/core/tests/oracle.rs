//! Values of every operator against PyTorch and numpy in float64, which `testing/python/graph_ops.py` runs: the examples of the
//! records, and edge inputs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod support;

use aneforge_core::op::{Case, Expected, GraphOp, Sample, builtin, find};
use aneforge_core::{Array, Attribute, DType};
use aneforge_testkit::{difference, oracle};
use serde_json::{Value, json};
use support::build;

/// Operators whose examples the oracle does not judge, with the reason.
const NOT_JUDGED: &[(&str, &str)] = &[("crop_resize", "PyTorch has no form of it; coremltools judges the MIL operator")];

/// One use with our results.
struct Use {
    name: String,
    request: Value,
    results: Vec<Array>,
    tolerance: f64,
}

fn numbers(array: &Array) -> Value {
    let text = |value: &f64| match *value {
        value if value.is_nan() => "nan".to_string(),
        value if value.is_infinite() => if value > 0.0 { "inf" } else { "-inf" }.to_string(),
        value => format!("{value:?}"),
    };
    json!({ "shape": array.ty.shape, "data": array.data.iter().map(text).collect::<Vec<_>>() })
}

fn used(op: &'static GraphOp, case: &Case, values: &[Array], tolerance: f64) -> Use {
    let built = build(op, case);
    let name = format!("{} {}", op.name, case.name);
    let results = built.results().unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut inputs = serde_json::Map::new();
    for (sample, array) in case.inputs.iter().zip(values) {
        let list = inputs.entry(sample.input).or_insert_with(|| json!([]));
        list.as_array_mut().unwrap().push(numbers(array));
    }
    let attributes: serde_json::Map<String, Value> = op
        .attributes
        .iter()
        .map(|spec| {
            let given = case.attributes.iter().find(|given| given.0 == spec.name).map_or(spec.default, |given| given.1);
            (spec.name.to_string(), json!(Attribute::from(given)))
        })
        .collect();
    Use { name, request: json!({ "op": op.name, "inputs": inputs, "attributes": attributes }), results, tolerance }
}

/// Compares all uses with what the oracle answers; the number of uses judged.
fn judge(uses: &[Use]) -> usize {
    let request: Vec<&Value> = uses.iter().map(|used| &used.request).collect();
    let Some(answer) = oracle("graph_ops.py", &[], &serde_json::to_string(&request).unwrap()) else { return 0 };
    let answers: Vec<Option<Vec<Value>>> = serde_json::from_str(&answer).unwrap();
    let (mut judged, mut faults) = (0, Vec::new());
    for (used, answer) in uses.iter().zip(answers) {
        let Some(answer) = answer else {
            let reason = NOT_JUDGED.iter().find(|entry| used.name.starts_with(entry.0));
            assert!(reason.is_some(), "{}: not known to the oracle", used.name);
            continue;
        };
        judged += 1;
        assert_eq!(answer.len(), used.results.len(), "{}", used.name);
        for (got, told) in used.results.iter().zip(&answer) {
            let shape: Vec<usize> = serde_json::from_value(told["shape"].clone()).unwrap();
            let parse = |number: &Value| number.as_str().unwrap().parse().unwrap();
            let wanted: Vec<f64> = told["data"].as_array().unwrap().iter().map(parse).collect();
            if got.ty.shape != shape {
                faults.push(format!("{}: shape {:?}, the oracle has {shape:?}", used.name, got.ty.shape));
                continue;
            }
            let apart = difference(&got.data, &wanted);
            if apart.worst > used.tolerance {
                faults.push(format!("{}: {} at {}, the oracle has {}", used.name, got.data[apart.at], apart.at, wanted[apart.at]));
            }
        }
    }
    assert!(faults.is_empty(), "{} of {judged} uses differ:\n{}", faults.len(), faults.join("\n"));
    judged
}

#[test]
fn every_example_has_the_values_of_pytorch_or_numpy() {
    // The native layers' meanings are held against numpy by their own crate's tests.
    let available = builtin().iter().filter(|op| op.is_available() && !op.is_native());
    let uses: Vec<Use> = available
        .flat_map(|op| op.cases.iter().map(move |case| (*op, case)))
        .map(|(op, case)| {
            let arrays: Vec<Array> = support::arrays(op, case);
            // Constants of a lowering, such as 0.1, are rounded to fp16.
            used(op, case, &arrays, 1e-3)
        })
        .collect();
    let judged = judge(&uses);
    println!("{judged} examples judged");
}

/// Zeros of both signs, the smallest numbers, ties of roundings, the largest number.
const EDGES: &[f64] =
    &[0.0, -0.0, 5.960464477539063e-8, -6.097555160522461e-5, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, 2047.5, 65504.0, -65504.0];
const INFINITIES: &[f64] = &[f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0];
/// Of both signs, none of them beyond 1.
const UNIT: &[f64] = &[0.0, 5.960464477539063e-8, -6.097555160522461e-5, 0.5, -0.5, 1.0, -1.0, 0.99951171875];

fn on(op: &'static GraphOp, name: &'static str, inputs: &[(&'static str, &'static [f64], DType)]) -> Use {
    let samples: Vec<Sample> = inputs
        .iter()
        .map(|&(input, values, dtype)| {
            let shape: &'static [usize] = Box::leak(Box::new([values.len()]));
            Sample { input, dtype, shape, values, constant: false }
        })
        .collect();
    let samples: &'static [Sample] = Box::leak(samples.into_boxed_slice());
    let case = Case { name, inputs: samples, attributes: &[], expected: Expected::Refused };
    let arrays = support::arrays(op, &case);
    used(op, &case, &arrays, 1e-3)
}

#[test]
fn edge_inputs_have_the_values_of_pytorch() {
    let mut uses = Vec::new();
    let fp16 = DType::Fp16;
    for name in
        "abs sign floor ceil round relu relu6 sigmoid tanh erf atan softsign sin cos square silu softplus asinh".split_whitespace()
    {
        uses.push(on(find(name).unwrap(), "edges", &[("x", EDGES, fp16)]));
    }
    for name in "abs sign floor ceil round relu relu6 sigmoid tanh erf exp exp2 square".split_whitespace() {
        uses.push(on(find(name).unwrap(), "infinities", &[("x", INFINITIES, fp16)]));
    }
    for name in "asin acos".split_whitespace() {
        uses.push(on(find(name).unwrap(), "unit", &[("x", UNIT, fp16)]));
    }
    const ROTATED: &[f64] =
        &[1.0, -0.0, 0.0, 65504.0, -65504.0, 0.5, 2.5, 1.5, -1.0, 2047.5, -2.5, 5.960464477539063e-8, -6.097555160522461e-5, -0.5];
    for name in "add sub mul maximum minimum greater greater_equal less less_equal equal not_equal".split_whitespace() {
        uses.push(on(find(name).unwrap(), "edges", &[("x", EDGES, fp16), ("y", ROTATED, fp16)]));
        uses.push(on(find(name).unwrap(), "equal", &[("x", EDGES, fp16), ("y", EDGES, fp16)]));
        uses.push(on(
            find(name).unwrap(),
            "infinities",
            &[("x", INFINITIES, fp16), ("y", &[1.0, 1.0, f64::INFINITY, f64::INFINITY], fp16)],
        ));
    }
    for name in "real_div floor_div mod".split_whitespace() {
        const DIVIDENDS: &[f64] = &[7.0, -7.0, 6.0, -6.0, 0.5, 0.0, 65504.0, -65504.0, 1.0, 2.5];
        const DIVISORS: &[f64] = &[2.0, 2.0, -3.0, -3.0, 0.25, 5.0, 3.0, 7.0, -65504.0, -0.5];
        uses.push(on(find(name).unwrap(), "signs", &[("x", DIVIDENDS, fp16), ("y", DIVISORS, fp16)]));
    }
    let judged = judge(&uses);
    println!("{judged} uses judged");
}
