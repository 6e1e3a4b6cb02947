//! What holds for every layer's record.
#![allow(clippy::unwrap_used)]

mod support;

use aneforge_mil::op::{Arguments, Expected, Given, OpError, PortKind, build, builtin};
use aneforge_native::layer::{find, layers, of, unusable};
use aneforge_native::{Param, ParamKind};
use std::collections::BTreeSet;
use support::broken::BROKEN;
use support::run;

#[test]
fn names_are_unique_and_no_layer_is_an_operator_of_mil() {
    let names: BTreeSet<_> = layers().iter().map(|layer| layer.op.name).chain(unusable().iter().map(|row| row.name)).collect();
    assert_eq!(names.len(), layers().len() + unusable().len());
    assert!(names.iter().all(|name| builtin().get(name).is_none()));
    assert!(layers().iter().all(|layer| std::ptr::eq(of(&layer.op).unwrap(), *layer)));
    assert!(builtin().all().iter().all(|op| of(op).is_none()));
}

fn ports(params: &[Param], prefix: &str) -> Vec<String> {
    let port = |param: &Param| match param.kind {
        ParamKind::Table(columns) => ports(columns, &format!("{}_", param.key)),
        _ => vec![format!("{prefix}{}", param.key)],
    };
    params.iter().flat_map(port).collect()
}

#[test]
fn every_port_is_a_bottom_or_a_parameter_and_each_of_those_is_a_port() {
    for layer in layers() {
        let bottoms: BTreeSet<String> = layer.bottoms.iter().flat_map(|list| list.iter().map(ToString::to_string)).collect();
        let params: BTreeSet<String> = ports(layer.params, "").into_iter().collect();
        assert!(bottoms.is_disjoint(&params), "{}", layer.op.name);
        let all: BTreeSet<String> = layer.op.ports.iter().map(|port| port.name.to_string()).collect();
        assert_eq!(all, &bottoms | &params, "{}", layer.op.name);
        for port in layer.op.ports {
            let moving = matches!(port.kind, PortKind::Tensor | PortKind::Variadic);
            assert!(!moving || bottoms.contains(port.name), "{} {}", layer.op.name, port.name);
        }
    }
}

#[test]
fn meaning_gives_the_written_values_of_every_case() {
    for layer in layers() {
        assert!(!layer.op.cases.is_empty(), "{} has no case", layer.op.name);
        assert!(layer.op.summary.ends_with('.') && !layer.op.support.source.is_empty(), "{}", layer.op.name);
        for case in layer.op.cases {
            let got = run(&layer.op, &case.arguments(&layer.op)).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let Expected::Values { results: [(shape, wanted)], .. } = case.expected else { panic!("{}: no values", case.name) };
            assert_eq!(got[0].shape(), *shape, "{} {}", layer.op.name, case.name);
            let near = got[0].data.iter().zip(*wanted).all(|(got, wanted)| (got - wanted).abs() < 1e-12);
            assert!(near, "{} {}: {:?}", layer.op.name, case.name, got[0].data);
        }
    }
}

#[test]
fn every_rule_is_broken_by_a_use_that_nothing_earlier_refuses() {
    let mut covered = BTreeSet::new();
    for (name, label, changes) in BROKEN {
        let layer = find(name).unwrap_or_else(|| panic!("{name}"));
        // A legal use, with some of its arguments replaced.
        let mut given: Vec<(&str, Given)> = layer.op.cases[0].given.to_vec();
        given.retain(|(port, _)| !changes.iter().any(|(changed, _)| changed == port));
        given.extend(changes.iter().filter_map(|(port, value)| value.map(|value| (*port, value))));
        match Arguments::checked(&layer.op, &build(&layer.op, &given)) {
            Err(error @ OpError::Constraint { label: found, .. }) if found == *label => {
                assert!(error.to_string().contains(name), "{error}");
            }
            other => panic!("{name} {label}: {:?}", other.map(|_| "accepted")),
        }
        covered.insert((*name, *label));
    }
    let all: BTreeSet<_> = layers().iter().flat_map(|l| l.op.constraints.iter().map(|rule| (l.op.name, rule.label))).collect();
    // The first rule, four axes, is one and the same everywhere.
    let missing: Vec<_> = all.difference(&covered).filter(|(_, label)| *label != "C1").collect();
    assert!(missing.is_empty(), "rules without a use that breaks them: {missing:?}");
    for layer in layers() {
        let port = layer.bottoms[0][0];
        let given: Vec<_> = layer.op.cases[0].given.iter().filter(|(name, _)| *name != port).copied().collect();
        let given = [&[(port, aneforge_mil::op::given(&[3], &[1.0; 3]))], &given[..]].concat();
        let ports = build(&layer.op, &given);
        let broken = Arguments::checked(&layer.op, &ports);
        assert!(matches!(broken, Err(OpError::Constraint { label: "C1", .. })), "{}", layer.op.name);
    }
}

/// Shapes and parameters from a hat: an error is fine, a panic is not.
#[test]
fn illegal_uses_are_errors_never_panics() {
    let mut state = 0x5eed_u64;
    let mut dice = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % end as u64) as usize
    };
    let odd = [0.0, -1.0, 1.0, 2.0, 3.0, 4.0, 9.0, -7.0, 2e9, -2e9, 0.5];
    for layer in layers() {
        for round in 0..400 {
            let mut ports = layer.op.cases[round % layer.op.cases.len()].arguments(&layer.op);
            for (spec, port) in layer.op.ports.iter().zip(&mut ports) {
                for argument in port.iter_mut() {
                    if argument.text.is_some() {
                        if dice(6) == 0 {
                            argument.text = Some(["", "Max", "Width", "Conv"][dice(4)].to_string());
                        }
                    } else if dice(3) == 0 {
                        let free = spec.kind != PortKind::Constant;
                        let rank = if free { argument.ty.rank() } else { dice(2) };
                        let shape: Vec<usize> = (0..rank).map(|_| 1 + dice(5)).collect();
                        let ty = aneforge_mil::TensorType::new(argument.ty.dtype, shape);
                        let data = (0..ty.count()).map(|_| odd[dice(if free { 7 } else { odd.len() })]).collect();
                        *argument = aneforge_mil::op::Argument::valued(aneforge_mil::Array { ty, data });
                    }
                }
                if dice(12) == 0 {
                    port.clear();
                }
            }
            let Ok(arguments) = Arguments::checked(&layer.op, &ports) else { continue };
            let Ok(types) = (layer.op.infer)(&arguments) else { continue };
            if types.iter().all(|ty| ty.count() < 1 << 20) {
                let values = (layer.op.meaning)(&arguments).unwrap_or_else(|error| panic!("{}: {error}", layer.op.name));
                assert_eq!(types[0], values[0].ty, "{}", layer.op.name);
                assert_eq!(values[0].data.len(), types[0].count(), "{}", layer.op.name);
            }
        }
    }
}
