//! What holds for every record of the operator table.

mod op_support;

use aneforge_mil::op::{Default, Expected, PortKind, builtin, declared};
use aneforge_mil::{Array, DType, TensorType};
use op_support::{Dice, close, resized, run};
use std::collections::BTreeSet;

#[test]
fn names_are_unique_and_listed_in_order() {
    let names: Vec<_> = builtin().all().iter().map(|op| op.name).collect();
    assert!(names.is_sorted());
    assert_eq!(names.len(), declared().count(), "a name is declared twice");
}

#[test]
fn every_record_is_complete() {
    for op in builtin().all() {
        assert!(!op.cases.is_empty(), "{} has no case", op.name);
        assert!(op.summary.ends_with('.'), "{}: summary is not a sentence", op.name);
        assert!(["ios15", "ios16", "ios17", "ios18"].contains(&op.opset), "{}: op-set {}", op.name, op.opset);
        assert!(!op.support.source.is_empty(), "{}: support without a source", op.name);
        assert!(op.tolerance < 0.5, "{}: tolerance {}", op.name, op.tolerance);
        let names: BTreeSet<_> = op.cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), op.cases.len(), "{}: two cases of one name", op.name);
        for (index, constraint) in op.constraints.iter().enumerate() {
            assert_eq!(constraint.label, format!("C{}", index + 1), "{}: labels count up from C1", op.name);
            assert!(constraint.rule.len() > 10, "{} {}: rule is empty", op.name, constraint.label);
        }
        for (port, low, high) in op.domain {
            assert!(op.port(port).is_some() && low < high, "{}: domain of {port}", op.name);
        }
    }
}

#[test]
fn every_port_has_a_default_of_its_own_type() {
    for op in builtin().all() {
        let names: BTreeSet<_> = op.ports.iter().map(|port| port.name).collect();
        assert_eq!(names.len(), op.ports.len(), "{}: two ports of one name", op.name);
        for port in op.ports {
            let dtypes = port.dtypes;
            let fits = match port.default {
                Default::Required | Default::Absent => !dtypes.is_empty(),
                Default::Int(_) | Default::Ints(_) => dtypes.contains(&DType::Int32),
                Default::Float(_) => dtypes.contains(&DType::Fp16) && dtypes.contains(&DType::Fp32),
                Default::Flag(_) => dtypes == [DType::Bool],
                Default::Text(_) => dtypes == [DType::String],
            };
            assert!(fits, "{}: default of {} is {:?}", op.name, port.name, port.default);
            let value = !matches!(port.default, Default::Required | Default::Absent);
            assert!(!value || port.kind == PortKind::Constant, "{}: {} has a default but is no attribute", op.name, port.name);
        }
    }
}

#[test]
fn cases_name_only_ports_that_exist() {
    for op in builtin().all() {
        for case in op.cases {
            for (port, _) in case.given {
                assert!(op.port(port).is_some(), "{} {}: no port {port}", op.name, case.name);
            }
        }
    }
}

#[test]
fn meaning_gives_the_expected_values_of_every_case() {
    for op in builtin().all() {
        for case in op.cases {
            let (_, got) = run(op, &case.arguments(op)).unwrap_or_else(|error| panic!("{} {}: {error}", op.name, case.name));
            let Expected::Values { results, .. } = case.expected else { continue };
            assert_eq!(got.len(), results.len(), "{} {}: number of results", op.name, case.name);
            for (got, (shape, want)) in got.iter().zip(results) {
                assert_eq!(got.shape(), *shape, "{} {}", op.name, case.name);
                let agree = got.data.iter().zip(*want).all(|(&got, &want)| close(got, want, 1e-14));
                assert!(agree, "{} {}: got {:?}, expected {want:?}", op.name, case.name, got.data);
            }
        }
    }
}

#[test]
fn inference_agrees_with_the_meaning_of_every_case() {
    for op in builtin().all() {
        for case in op.cases {
            let (types, values) = run(op, &case.arguments(op)).unwrap();
            let got: Vec<_> = values.iter().map(|value| value.ty.clone()).collect();
            assert_eq!(types, got, "{} {}", op.name, case.name);
            assert!(values.iter().all(|value| value.data.len() == value.ty.count()), "{} {}", op.name, case.name);
        }
    }
}

#[test]
fn inference_agrees_with_the_meaning_on_generated_shapes() {
    let mut dice = Dice(0x5eed);
    for op in builtin().all() {
        let mut legal = 0;
        for round in 0..40 {
            let case = &op.cases[round % op.cases.len()];
            let ports = resized(op, case, &mut dice);
            if let Ok((types, values)) = run(op, &ports) {
                legal += 1;
                let got: Vec<_> = values.iter().map(|value| value.ty.clone()).collect();
                assert_eq!(types, got, "{} {}", op.name, case.name);
                assert!(values.iter().all(|value| value.data.len() == value.ty.count()), "{} {}", op.name, case.name);
            }
        }
        assert!(legal > 0, "{}: no generated use was legal", op.name);
    }
}

/// Shapes, element types and attribute values from a hat: an error is fine, a panic is not.
#[test]
fn illegal_uses_are_errors_never_panics() {
    let mut dice = Dice(0xbad);
    let dtypes = [DType::Fp16, DType::Fp32, DType::Bool, DType::Int32, DType::Int8, DType::UInt4, DType::UInt1];
    let odd = [0.0, -1.0, 1.0, 2.0, 3.0, -7.0, 4e9, -9.3e18, 1e300, f64::NAN, f64::INFINITY, 0.5];
    for op in builtin().all() {
        for round in 0..300 {
            let mut ports = vec![Vec::new(); op.ports.len()];
            if round % 2 == 0 {
                ports = op.cases[dice.below(op.cases.len())].arguments(op);
            }
            for (spec, port) in op.ports.iter().zip(&mut ports) {
                if dice.below(3) != 0 {
                    continue;
                }
                let dtype =
                    if dice.below(4) == 0 { dtypes[dice.below(dtypes.len())] } else { spec.dtypes[dice.below(spec.dtypes.len())] };
                if dtype == DType::String {
                    *port = vec![aneforge_mil::op::Argument::string(["EXACT", "custom", "", "int8", "same"][dice.below(5)])];
                    continue;
                }
                let count = if spec.kind.is_tuple() { dice.below(4) } else { dice.below(2) };
                *port = (0..count)
                    .map(|_| {
                        let rank = dice.below(7);
                        let shape: Vec<_> = (0..rank).map(|_| [0, 1, 2, 3, 5][dice.below(5)]).collect();
                        let ty = TensorType::new(dtype, shape);
                        let data = (0..ty.count()).map(|_| odd[dice.below(odd.len())]).collect();
                        aneforge_mil::op::Argument::valued(Array { ty, data })
                    })
                    .collect();
            }
            let Ok(arguments) = aneforge_mil::op::Arguments::checked(op, &ports) else { continue };
            if let Ok(types) = (op.infer)(&arguments) {
                let small = types.iter().all(|ty| ty.checked_count().is_some_and(|count| count < 1 << 20));
                if small {
                    let values = (op.meaning)(&arguments).unwrap_or_else(|error| panic!("{}: {error}", op.name));
                    assert_eq!(types, values.iter().map(|value| value.ty.clone()).collect::<Vec<_>>(), "{}", op.name);
                }
            }
        }
    }
}

/// Types far beyond any memory: extents near the largest integer, without values.
#[test]
fn huge_extents_are_refused_without_overflow() {
    let huge = [1usize << 20, 1 << 32, 1 << 40, usize::MAX / 2, usize::MAX];
    for op in builtin().all() {
        for extent in huge {
            for case in op.cases {
                let mut ports = case.arguments(op);
                for (spec, port) in op.ports.iter().zip(&mut ports) {
                    for argument in port.iter_mut().filter(|_| !spec.kind.is_attribute()) {
                        argument.value = None;
                        argument.ty.shape.iter_mut().filter(|own| **own > 1).for_each(|own| *own = extent);
                    }
                }
                let types = aneforge_mil::op::Arguments::checked(op, &ports).and_then(|arguments| (op.infer)(&arguments));
                assert!(types.iter().flatten().all(|ty| ty.checked_count().is_some()), "{}", op.name);
            }
        }
    }
}
