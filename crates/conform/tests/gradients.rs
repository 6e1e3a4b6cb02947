//! Gradients of random graphs equal those of PyTorch's autograd, both in f64.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use aneforge_conform::generate::{Built, Mode, Node, Place, Recipe, Tally, generate};
use aneforge_core::op::{self, GraphOp, Vjp};
use aneforge_core::{Array, Attribute, Body, DType, LowerOptions, Target, Tensor, TensorType, backward, evaluate, lower_with};
use aneforge_testkit::oracle;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Graphs that are compared.
const GRAPHS: usize = 200;
/// Graphs that are drawn for that: some are of no use, such as those with a slope of infinity.
const DRAWN: u64 = 300;
const SEED: u64 = 20_261_201;
/// Steeper slopes magnify the rounding of constants to f32 beyond what is compared.
const STEEPEST: f64 = 1e6;

/// Operators with a derivative that PyTorch has no form of. Difference quotients alone judge them, in the tests of the table.
const LACKING: &[&str] = &[];

fn differentiable() -> Vec<&'static GraphOp> {
    let has_rule = |op: &&GraphOp| matches!(op.vjp, Vjp::Rule(_)) && !op.cases.is_empty() && !op.is_native();
    op::builtin().iter().copied().filter(has_rule).collect()
}

/// The same graph in fp32, whose constants are rounded so finely that f64 results differ in the seventh digit at most.
fn widened(mut recipe: Recipe) -> Recipe {
    for node in &mut recipe.nodes {
        match node {
            Node::Input { ty, .. } | Node::Constant { ty, .. } if ty.dtype == DType::Fp16 => ty.dtype = DType::Fp32,
            Node::Apply { attributes, .. } => {
                for (_, value) in attributes.iter_mut().filter(|(_, value)| *value == Attribute::from("fp16")) {
                    *value = Attribute::from("fp32");
                }
            }
            _ => {}
        }
    }
    recipe
}

/// Multiples of 1/8.
fn weights(count: usize, salt: usize) -> Vec<f64> {
    (0..count).map(|place| ((place * 7 + salt * 3) % 11) as f64 / 8.0 - 0.5).collect()
}

/// A graph with its loss and gradients as bodies.
struct Judged {
    recipe: Recipe,
    request: Value,
    loss: Body,
    arrays: Vec<Array>,
    value: f64,
    gradients: Vec<Array>,
}

fn numbers(values: &[f64]) -> Vec<String> {
    values.iter().map(|value| if value.is_nan() { "nan".to_string() } else { format!("{value:?}") }).collect()
}

fn body(outputs: &[Tensor]) -> Result<Body, String> {
    let named: Vec<(String, Tensor)> =
        outputs.iter().enumerate().map(|(index, tensor)| (format!("out{index}"), tensor.clone())).collect();
    lower_with(&named, LowerOptions { target: Target::Generic, keep_unused_inputs: true }).map_err(|error| error.to_string())
}

/// Our loss and gradients, and the graph as PyTorch is asked for it; `None` where nothing in it has a slope.
fn judged(recipe: Recipe) -> Option<Result<Judged, String>> {
    // A few uses are legal in fp16 alone.
    let Built { graph, outputs, inputs } = recipe.build().ok()?;
    let arrays: Vec<Array> = inputs.iter().map(|(_, ty, draw)| draw.array(ty)).collect();
    let mut loss = graph.values(DType::Fp32, &[], &[0.0]);
    let (mut weighed, mut asked) = (Vec::new(), Vec::new());
    for (index, (place, (_, output))) in recipe.outputs.iter().zip(&outputs).enumerate() {
        let ty: &TensorType = output.ty().unwrap();
        if ty.dtype.is_float() {
            let weights = weights(ty.count(), index);
            let part = output.cast(DType::Fp32).mul(&graph.values(DType::Fp32, &ty.shape, &weights));
            weighed.push(part.reduce_sum((0..ty.rank() as i64).collect::<Vec<_>>(), false).reshape(&[]));
            asked.push(json!({"place": [place.node, place.result], "weights": weights}));
        }
    }
    for part in weighed {
        loss = loss.add(&part);
    }
    let leaves: Vec<usize> = recipe
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| matches!(node, Node::Input { ty, .. } if ty.dtype.is_float()))
        .map(|(index, _)| index)
        .collect();
    if asked.is_empty() || leaves.is_empty() {
        return None;
    }
    let named = graph.inputs();
    let place_of = |node: usize| inputs.iter().position(|(name, ..)| *name == format!("x{node}")).unwrap();
    let wrt: Vec<Tensor> = leaves.iter().map(|&node| named[place_of(node)].clone()).collect();
    let grads = backward(&loss, &wrt);
    let (grads, loss) = match (body(&grads), body(&[loss])) {
        (Ok(grads), Ok(loss)) => (grads, loss),
        (grads, loss) => {
            let problem = grads.and(loss).err().unwrap_or_default();
            // Some ways to combine what is scattered have no derivative, and say so.
            let by_design = problem.starts_with("scatter") && problem.contains("has no derivative: mode");
            return (!by_design).then_some(Err(problem));
        }
    };
    let gradients = evaluate(&grads, &arrays).unwrap();
    let value = evaluate(&loss, &arrays).unwrap()[0].data[0];
    let mut values = inputs.iter().zip(&arrays);
    let nodes: Vec<Value> = recipe
        .nodes
        .iter()
        .map(|node| match node {
            Node::Input { ty, .. } => json!({"shape": ty.shape, "data": numbers(&values.next().unwrap().1.data)}),
            Node::Constant { ty, values } => json!({"shape": ty.shape, "data": numbers(values)}),
            Node::Apply { op, inputs, attributes } => {
                let places = |places: &[Place]| places.iter().map(|place| [place.node, place.result]).collect::<Vec<_>>();
                let inputs: serde_json::Map<String, Value> =
                    op.inputs.iter().zip(inputs).map(|(spec, list)| (spec.name.to_string(), json!(places(list)))).collect();
                let value =
                    |name: &str, usual| attributes.iter().find(|(given, _)| *given == name).map_or(usual, |(_, v)| v.clone());
                let attributes: serde_json::Map<String, Value> = op
                    .attributes
                    .iter()
                    .map(|spec| (spec.name.to_string(), json!(value(spec.name, Attribute::from(spec.default)))))
                    .collect();
                json!({"op": op.name, "inputs": inputs, "attributes": attributes})
            }
        })
        .collect();
    let request = json!({"nodes": nodes, "outputs": asked, "wanted": leaves});
    Some(Ok(Judged { recipe, request, loss, arrays, value, gradients }))
}

/// Operators that a gradient with respect to a leaf comes through.
fn reached(recipe: &Recipe) -> BTreeSet<&'static str> {
    let mut leads = vec![false; recipe.nodes.len()];
    let mut names = BTreeSet::new();
    for (index, node) in recipe.nodes.iter().enumerate() {
        leads[index] = match node {
            Node::Input { ty, .. } => ty.dtype.is_float(),
            Node::Constant { .. } => false,
            Node::Apply { .. } => node.uses().any(|place| leads[place.node]),
        };
        if let (true, Node::Apply { op, .. }) = (leads[index], node) {
            names.insert(op.name);
        }
    }
    names
}

/// Whether the loss has another slope forwards than backwards along some direction: there, a derivative is a convention.
fn has_a_kink(judged: &Judged) -> bool {
    let at = |step: f64| {
        let mut arrays = judged.arrays.clone();
        for (index, array) in arrays.iter_mut().enumerate().filter(|(_, array)| array.ty.dtype.is_float()) {
            let along = weights(array.data.len(), index + 5);
            array.data.iter_mut().zip(along).for_each(|(value, along)| *value += step * along);
        }
        evaluate(&judged.loss, &arrays).unwrap()[0].data[0]
    };
    let step = 1e-6;
    let (forwards, backwards) = ((at(step) - judged.value) / step, (judged.value - at(-step)) / step);
    (forwards - backwards).abs() > 1e-3 * (1.0 + forwards.abs().max(backwards.abs()))
}

/// The first difference between our gradients and PyTorch's.
fn difference(ours: &Judged, theirs: &Value) -> Option<String> {
    let number = |value: &Value| -> f64 { value.as_str().unwrap().parse().unwrap() };
    let loss = number(&theirs["loss"]);
    if (ours.value - loss).abs() > 1e-4 * (1.0 + loss.abs()) {
        return Some(format!("the loss is {}, not {loss}", ours.value));
    }
    let all: Vec<Vec<f64>> =
        theirs["gradients"].as_array().unwrap().iter().map(|one| one.as_array().unwrap().iter().map(number).collect()).collect();
    // Constants are rounded to 2^-24 of themselves; a gradient is as exact as the largest one next to it.
    for (index, (ours, theirs)) in ours.gradients.iter().zip(&all).enumerate() {
        let size = theirs.iter().fold(1.0f64, |size, value| size.max(value.abs()));
        for (place, (a, b)) in ours.data.iter().zip(theirs).enumerate() {
            if (a - b).abs() > 1e-4 * size || a.is_nan() {
                return Some(format!("leaf {index}, element {place}: {a}, not {b}"));
            }
        }
    }
    None
}

fn is_tame(theirs: &Value) -> bool {
    let numbers = theirs["gradients"].as_array().unwrap().iter().flat_map(|one| one.as_array().unwrap());
    numbers.map(|value| value.as_str().unwrap().parse::<f64>().unwrap()).all(|value| value.abs() <= STEEPEST)
}

#[test]
fn random_graphs_have_the_gradients_of_pytorch() {
    let all = differentiable();
    let drawn = (0..DRAWN).filter_map(|index| {
        // Each graph has one operator more often than the others, so that all are reached.
        let focus = all[index as usize % all.len()];
        let operators: Vec<&'static GraphOp> = all.iter().copied().chain(std::iter::repeat_n(focus, all.len() / 6)).collect();
        judged(widened(generate(SEED + index, &operators, Mode::Real, &mut Tally::default())))
    });
    let (mut graphs, mut faults) = (Vec::new(), Vec::new());
    drawn.for_each(|drawn| match drawn {
        Ok(judged) => graphs.push(judged),
        Err(problem) => faults.push(problem),
    });
    let requests: Vec<&Value> = graphs.iter().map(|judged| &judged.request).collect();
    let Some(answer) = oracle("torch_gradients.py", &[], &json!(requests).to_string()) else { return };
    let answers: Vec<Value> = serde_json::from_str(&answer).unwrap();
    let (mut compared, mut kinks, mut steep, mut names) = (0, 0, 0, BTreeSet::new());
    for (judged, theirs) in graphs.iter().zip(&answers) {
        if let Some(name) = theirs["lacks"].as_str() {
            assert!(LACKING.contains(&name), "{name} is not known to the oracle");
            continue;
        }
        if !is_tame(theirs) {
            steep += 1;
            continue;
        }
        match difference(judged, theirs) {
            Some(_) if has_a_kink(judged) => kinks += 1,
            Some(fault) => {
                let uses: Vec<&str> = judged.recipe.operators().map(|op| op.name).collect();
                faults.push(format!("{fault}\n  {}", uses.join(" ")));
            }
            None => {
                compared += 1;
                names.extend(reached(&judged.recipe));
            }
        }
    }
    eprintln!("{compared} graphs, {} operators; {kinks} left out at kinks, {steep} for steep slopes", names.len());
    assert!(faults.is_empty(), "{} graphs differ:\n{}", faults.len(), faults.join("\n"));
    assert!(compared >= GRAPHS, "{compared} graphs were compared");
    let missed: Vec<&str> = all.iter().map(|op| op.name).filter(|name| !names.contains(name) && !LACKING.contains(name)).collect();
    assert!(missed.is_empty(), "no graph had a gradient through {missed:?}");
}
