//! Optimizers and schedules equal PyTorch's over 50 steps, in f64.
#![allow(clippy::unwrap_used)]

use aneforge_core::{Array, DType, Graph, Target, evaluate, lower};
use aneforge_nn::optimizer::MOMENT_SCALE;
use aneforge_nn::pair::{LOW, Pair};
use aneforge_nn::state::Slots;
use aneforge_nn::{NnError, Optimizer, Schedule, clip_by_norm};
use aneforge_testkit::{Random, oracle};
use serde_json::{Value, json};

const STEPS: usize = 50;
const SIZES: [usize; 2] = [6, 3];

/// Parameters after each step, from gradients of each step.
fn ours(
    optimizer: &Optimizer,
    clip: Option<f64>,
    rates: &[f64],
    start: &[Vec<f64>],
    gradients: &[Vec<Vec<f64>>],
) -> Vec<Vec<Vec<f64>>> {
    let graph = Graph::new();
    let given: Vec<_> = SIZES.iter().enumerate().map(|(i, &n)| graph.input(&format!("g{i}"), DType::Fp16, &[n])).collect();
    let rate = graph.input("rate", DType::Fp16, &[1]);
    let mut slots = Slots::new(&graph);
    let weights: Vec<Pair> = SIZES
        .iter()
        .enumerate()
        .map(|(i, &n)| Pair::slot(&mut slots, &format!("w{i}"), &[n], true, || vec![0.0; n]).unwrap())
        .collect();
    optimizer.begin(&mut slots).unwrap();
    let clipped =
        clip.map_or(given.clone(), |limit| clip_by_norm(&given, limit, &graph.values(DType::Fp16, &[1], &[MOMENT_SCALE])));
    for (i, (weight, gradient)) in weights.iter().zip(&clipped).enumerate() {
        optimizer.update(&mut slots, &format!("w{i}"), weight, gradient, &rate).unwrap();
    }
    let outputs: Vec<_> = slots.all().iter().map(|slot| (format!("{}.next", slot.name), slot.current.clone())).collect();
    let body = lower(&outputs, Target::Generic).unwrap();
    let mut held: Vec<Vec<f64>> = slots
        .all()
        .iter()
        .map(|slot| match SIZES.iter().enumerate().find(|(i, _)| slot.name == format!("w{i}")) {
            Some((i, _)) => start[i].clone(),
            None => slot.initial.to_array().data,
        })
        .collect();
    let mut after = Vec::new();
    for (rate, gradients) in rates.iter().zip(gradients) {
        let mut arrays: Vec<Array> = gradients
            .iter()
            .map(|values| Array::new(DType::Fp16, [values.len()], values.iter().map(|value| value * MOMENT_SCALE).collect()))
            .collect();
        arrays.push(Array::new(DType::Fp16, [1], vec![rate * optimizer.rate_scale()]));
        arrays.extend(held.iter().map(|values| Array::new(DType::Fp16, [values.len()], values.clone())));
        held = evaluate(&body, &arrays).unwrap().into_iter().map(|array| array.data).collect();
        let value = |name: &str| slots.all().iter().position(|slot| slot.name == name).map(|place| held[place].clone()).unwrap();
        let sum = |i: usize| {
            let (high, low) = (value(&format!("w{i}")), value(&format!("w{i}.low")));
            high.iter().zip(low).map(|(high, low)| high + low / LOW).collect()
        };
        after.push((0..SIZES.len()).map(sum).collect());
    }
    after
}

fn options(optimizer: &Optimizer) -> (&'static str, Value) {
    match *optimizer {
        Optimizer::Sgd { momentum, nesterov, weight_decay } => {
            ("sgd", json!({"momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay}))
        }
        Optimizer::Adam { betas, epsilon, weight_decay } => {
            ("adam", json!({"betas": betas, "eps": epsilon, "weight_decay": weight_decay}))
        }
        Optimizer::AdamW { betas, epsilon, weight_decay } => {
            ("adamw", json!({"betas": betas, "eps": epsilon, "weight_decay": weight_decay}))
        }
        Optimizer::Lion { betas, weight_decay } => ("lion", json!({"betas": betas, "weight_decay": weight_decay})),
    }
}

#[test]
fn fifty_steps_equal_pytorch() {
    let nesterov = Optimizer::Sgd { momentum: 0.9, nesterov: true, weight_decay: 0.01 };
    let cases = [
        (Optimizer::sgd(0.0), None),
        (Optimizer::sgd(0.9), None),
        (nesterov, Some(0.5)),
        (Optimizer::adam(), None),
        (Optimizer::adam().with_weight_decay(0.125), Some(1.0)),
        (Optimizer::sgd(0.0), Some(0.3)),
        (Optimizer::adamw(), None),
        (Optimizer::lion().with_weight_decay(0.25), None),
    ]
    .map(|(optimizer, clip)| (optimizer.rounded().unwrap(), clip));
    let mut random = Random::new(3);
    let start: Vec<Vec<f64>> = SIZES.iter().map(|&count| random.values(count, -1.0, 1.0)).collect();
    let gradients: Vec<Vec<Vec<f64>>> =
        (0..STEPS).map(|step| SIZES.iter().map(|&count| random.values(count, -1.0, 1.0 + 0.1 * step as f64)).collect()).collect();
    let rates: Vec<f64> = (0..STEPS).map(|step| 0.02 / (1.0 + step as f64 * 0.1)).collect();
    let schedules = [
        (Schedule::Step { every: 7, factor: 0.5 }, json!({"name": "step", "options": {"every": 7, "factor": 0.5}, "steps": STEPS})),
        (
            Schedule::WarmupCosine { warmup: 10, total: 45, last: 0.1 },
            json!({"name": "cosine", "options": {"warmup": 10, "total": 45, "last": 0.1}, "steps": 46}),
        ),
    ];
    let requests: Vec<Value> = cases
        .iter()
        .map(|(optimizer, clip)| {
            let (name, options) = options(optimizer);
            json!({"name": name, "options": options, "rates": rates, "clip": clip, "parameters": start, "gradients": gradients})
        })
        .collect();
    let schedule_requests: Vec<&Value> = schedules.iter().map(|(_, request)| request).collect();
    let request = json!({"optimizers": requests, "schedules": schedule_requests});
    let Some(answer) = oracle("torch_optimizers.py", &[], &request.to_string()) else { return };
    let answer: Value = serde_json::from_str(&answer).unwrap();
    for (index, (optimizer, clip)) in cases.iter().enumerate() {
        let theirs: Vec<Vec<Vec<f64>>> = serde_json::from_value(answer["optimizers"][index].clone()).unwrap();
        let ours = ours(optimizer, *clip, &rates, &start, &gradients);
        for step in 0..STEPS {
            for (ours, theirs) in ours[step].iter().flatten().zip(theirs[step].iter().flatten()) {
                assert!((ours - theirs).abs() <= 1e-6, "{optimizer:?}, step {step}: {ours} for {theirs}");
            }
        }
    }
    for (index, (schedule, _)) in schedules.iter().enumerate() {
        let theirs: Vec<f64> = serde_json::from_value(answer["schedules"][index].clone()).unwrap();
        for (step, theirs) in theirs.iter().enumerate() {
            let ours = schedule.factor(step as u64);
            assert!((ours - theirs).abs() < 1e-6, "{schedule:?}, step {step}: {ours} for {theirs}");
        }
    }
}

#[test]
fn settings_that_fp16_would_lose_are_refused() {
    let adam = |betas, epsilon| Optimizer::Adam { betas, epsilon, weight_decay: 0.0 };
    let bad = [
        adam((0.9, 0.999_99), 1e-8),
        adam((0.9, 1.0), 1e-8),
        adam((-0.1, 0.999), 1e-8),
        adam((0.9, 0.999), 1e-12),
        adam((0.9, 0.999), f64::NAN),
        Optimizer::sgd(1.0),
        Optimizer::lion().with_weight_decay(-1.0),
    ];
    for optimizer in bad {
        assert!(matches!(optimizer.rounded(), Err(NnError::Setting { .. })), "{optimizer:?}");
    }
    let Optimizer::Adam { epsilon, betas, .. } = Optimizer::adam().rounded().unwrap() else { panic!("Adam") };
    assert!((epsilon / 1e-8 - 1.0).abs() < 3e-3 && (betas.1 - 0.999).abs() < 1e-6, "{epsilon} {betas:?}");
}
