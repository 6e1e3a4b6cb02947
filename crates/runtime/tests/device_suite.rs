//! One suite for all devices: every case of the operator table, alone in a program that goes through text and weights.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::HostArray;
use aneforge_mil::op::{Argument, Case, Expected, MilOp, PortKind, declared};
use aneforge_mil::{Array, Body, Constant, DType, Operand, Output, Weight};
use aneforge_runtime::{Device, Program, open};
use common::through_text;
use std::sync::Arc;

/// A program of one operation and the values of its inputs.
struct Single {
    program: Arc<Program>,
    inputs: Vec<Array>,
}

/// The operation with its tensors as inputs, or with all but the first as constants.
fn single(op: &'static MilOp, case: &Case, constant_operands: bool) -> Option<Single> {
    let mut body = Body { name: "main".to_string(), ..Body::default() };
    let mut inputs = Vec::new();
    let mut operands = Vec::new();
    for (spec, given) in op.ports.iter().zip(case.arguments(op)) {
        let free = matches!(spec.kind, PortKind::Tensor | PortKind::Variadic);
        let mut ids = Vec::new();
        for (index, Argument { ty, value, text, .. }) in given.into_iter().enumerate() {
            let name = format!("{}_{index}", spec.name);
            ids.push(match (value, text) {
                (Some(array), _) if free && ty.dtype.bits() >= 8 && (!constant_operands || inputs.is_empty()) => {
                    inputs.push(array);
                    body.add_input(name, ty)
                }
                (Some(array), _) if ty.count() > 64 && ty.dtype == DType::Fp16 => {
                    let halves: Vec<_> = array.data.iter().map(|&value| half::f16::from_f64(value)).collect();
                    body.add_constant(name, ty.clone(), Constant::Weight(Weight::from_fp16(ty.shape, &halves).unwrap()))
                }
                (Some(array), _) => body.add_constant(name, ty, Constant::Values(array.data)),
                (None, Some(text)) => body.add_constant(name, ty, Constant::Text(text)),
                (None, None) => return None,
            });
        }
        operands.push(match (spec.kind, ids.as_slice()) {
            (_, []) => Operand::Absent,
            (kind, _) if kind.is_tuple() => Operand::Many(ids),
            (_, [id]) => Operand::One(*id),
            _ => return None,
        });
    }
    let types = body.infer(op, &operands).unwrap_or_else(|error| panic!("{} {}: {error}", op.name, case.name));
    if types.iter().any(|ty| ty.dtype.bits() < 8) {
        return None; // masks of sparse weights have no buffer form; tests of compressed chains cover them
    }
    let results = types.into_iter().enumerate().map(|(index, ty)| (format!("result_{index}"), ty)).collect();
    let outputs = body.add_operation(op, operands, results);
    body.outputs = outputs.iter().map(|&value| Output { name: body.value(value).name.clone(), value }).collect();
    let program = through_text(body, &format!("{} {}", op.name, case.name));
    Some(Single { program, inputs })
}

fn run(device: &dyn Device, single: &Single) -> Vec<Array> {
    let executable =
        device.load(&single.program).unwrap_or_else(|error| panic!("{} {}: {error}", device.name(), single.program.name()));
    let inputs: Vec<HostArray> = single.inputs.iter().map(|array| HostArray::from_array(array).unwrap()).collect();
    let results = executable.run(&inputs.iter().collect::<Vec<_>>());
    let results = results.unwrap_or_else(|error| panic!("{} {}: {error}", device.name(), single.program.name()));
    results.iter().map(HostArray::to_array).collect()
}

/// The largest difference relative to the largest finite magnitude of `wanted`; infinities and NaN must be in the same places.
fn difference(got: &Array, wanted: &Array) -> f64 {
    assert_eq!(got.ty, wanted.ty);
    let scale = wanted.data.iter().filter(|value| value.is_finite()).fold(1e-3f64, |most, value| most.max(value.abs()));
    let worst = got.data.iter().zip(&wanted.data).map(|(got, wanted)| match () {
        () if got == wanted || (got.is_nan() && wanted.is_nan()) => 0.0,
        () if got.is_finite() && wanted.is_finite() => (got - wanted).abs() / scale,
        () => f64::INFINITY,
    });
    worst.fold(0.0, f64::max)
}

fn cases() -> impl Iterator<Item = (&'static MilOp, &'static Case)> {
    declared().flat_map(|op| op.cases.iter().map(move |case| (op, case)))
}

fn compare(name: &str, allowed: impl Fn(&MilOp) -> f64) {
    let (device, reference) = (open(name).unwrap(), open("reference").unwrap());
    let mut faults = Vec::new();
    let mut compared = 0;
    for (op, case) in cases() {
        for constant_operands in [false, true] {
            let Some(single) = single(op, case, constant_operands) else { continue };
            let (got, wanted) = (run(&*device, &single), run(&*reference, &single));
            for (got, wanted) in got.iter().zip(&wanted) {
                compared += 1;
                let worst = difference(got, wanted);
                if worst > allowed(op) {
                    faults.push(format!(
                        "{} {} (constants: {constant_operands}): {worst:.3e}\n  got    {:.6?}\n  wanted {:.6?}",
                        op.name,
                        case.name,
                        &got.data[..got.data.len().min(12)],
                        &wanted.data[..wanted.data.len().min(12)]
                    ));
                }
            }
        }
    }
    assert!(compared > 200, "only {compared} results were compared");
    assert!(faults.is_empty(), "{} of {compared} results of {name} are off:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn the_reference_gives_the_written_results_of_every_case() {
    let reference = open("reference").unwrap();
    for (op, case) in cases() {
        let Expected::Values { results, .. } = case.expected else { continue };
        let Some(single) = single(op, case, false) else { continue };
        for (got, (shape, values)) in run(&*reference, &single).iter().zip(results) {
            let wanted = Array::new(got.ty.dtype, *shape, values.to_vec());
            assert!(difference(got, &wanted) < 2e-3, "{} {}: {got:?} {wanted:?}", op.name, case.name);
        }
    }
}

#[test]
fn cpu_stays_within_the_tolerance_of_every_case() {
    compare("cpu", |op| op.tolerance.max(1e-3));
}

#[test]
fn the_emulator_stays_near_every_case() {
    // Its tables and reductions are modelled, so the bound is what the published errors of single operators allow.
    compare("emulator:m1", |op| 5e-2f64.max(op.tolerance));
}

#[test]
fn the_emulator_of_a_winograd_chip_stays_near_every_case() {
    compare("emulator:m5", |op| 5e-2f64.max(op.tolerance));
}

#[test]
fn null_takes_every_case_and_gives_zeros() {
    let device = open("null").unwrap();
    for (op, case) in cases() {
        if let Some(single) = single(op, case, false) {
            assert!(run(&*device, &single).iter().all(|array| array.data.iter().all(|&value| value == 0.0)));
        }
    }
}

#[test]
fn every_step_of_the_emulator_has_a_rule_with_a_source() {
    let device = open("emulator:m1").unwrap();
    for (op, case) in cases() {
        let Some(single) = single(op, case, true) else { continue };
        let report = device.load(&single.program).unwrap().report();
        for step in report.steps.iter().filter(|step| !step.ops.is_empty()) {
            let rule = step.rule.as_ref().unwrap_or_else(|| panic!("{} has no rule", op.name));
            assert!(!rule.text.is_empty() && !rule.source.is_empty() && rule.chips.contains("m1"), "{rule:?}");
        }
    }
}

/// Every case that the chip can have, through the fake of Apple's frameworks: the emulator's bits, whatever the route.
fn compare_with_engine(route: aneforge_runtime::ane::AneRoute, chip: &str, profile: &str, least: usize) {
    let settings = serde_json::json!({ "chip": chip, "profile": profile, "limits": { "compiles": 100_000 } });
    let options = aneforge_runtime::ane::AneOptions { route, compilations: usize::MAX, ..Default::default() };
    let engine = common::engine::engine_with(settings, options);
    let (emulator, mut compared, mut without, mut faults) = (engine.emulator(), 0, 0, Vec::new());
    for (op, case) in cases() {
        for constant_operands in [false, true] {
            let Some(single) = single(op, case, constant_operands) else { continue };
            // A chip that cannot have an operator says so before anything reaches the frameworks.
            let Ok(program) = engine.program(single.program.body().clone()) else {
                without += 1;
                continue;
            };
            let own = match engine.device.load(&program) {
                Ok(own) => own,
                Err(error) => {
                    faults.push(format!("{} {} (constants: {constant_operands}): {error}", op.name, case.name));
                    continue;
                }
            };
            let inputs: Vec<HostArray> = single.inputs.iter().map(|array| HostArray::from_array(array).unwrap()).collect();
            let (got, wanted) =
                (common::engine::outputs(&own, &inputs), common::engine::outputs(&emulator.load(&program).unwrap(), &inputs));
            compared += 1;
            if got != wanted {
                faults.push(format!("{} {} (constants: {constant_operands}): other bits than the emulator", op.name, case.name));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {compared} faults on {chip} {profile} {route:?}, {without} refused:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(compared >= least, "only {compared} programs were compared, {without} were refused");
    common::engine::assert_clean();
}

#[test]
fn the_engine_gives_the_emulators_bits_for_every_case_through_e5rt() {
    use aneforge_runtime::ane::AneRoute;
    compare_with_engine(AneRoute::E5rt, "m1", "strict", 100);
    compare_with_engine(AneRoute::E5rt, "m5", "agreed", 100);
}

#[test]
fn the_engine_gives_the_emulators_bits_for_every_case_in_memory() {
    use aneforge_runtime::ane::AneRoute;
    compare_with_engine(AneRoute::InMemory, "m1", "strict", 50);
    compare_with_engine(AneRoute::Client, "m5", "agreed", 50);
}
