//! Entries of MIL operators.

use super::support::{families, limits};
use super::{FamilySupport, Limit, Port, Rule, default_text, dtype_list};
use crate::claims::{Claims, Route};
use aneforge_mil::op::{Arithmetic, MilOp, PortKind, PortSpec};
use serde::Serialize;

/// An operator known by name alone.
#[derive(Clone, Debug, Serialize)]
pub struct ListedEntry {
    /// Name.
    pub name: &'static str,
    /// What it is, as far as that is published; empty where it is not.
    pub summary: &'static str,
    /// Why there is no record, and what to do instead.
    pub reason: &'static str,
    /// Support per family with every side.
    pub support: Vec<FamilySupport>,
    /// What holds for some uses alone.
    pub limits: Vec<Limit>,
}

impl ListedEntry {
    pub(super) fn of(name: &'static str, summary: &'static str, reason: &'static str, route: Route, claims: &Claims) -> Self {
        Self { name, summary, reason, support: families(name, claims, route), limits: limits(name, claims) }
    }
}

/// A MIL operator, or one of the engine's own layers.
#[derive(Clone, Debug, Serialize)]
pub struct MilEntry {
    /// Keyword, or type in net.plist.
    pub name: &'static str,
    /// First op-set, or format version, that has it.
    pub opset: &'static str,
    /// What it computes.
    pub summary: &'static str,
    /// Inputs and parameters.
    pub ports: Vec<Port>,
    /// Rules.
    pub rules: Vec<Rule>,
    /// How well the engine's arithmetic is known, and by what rule.
    pub arithmetic: String,
    /// Error that an fp16 device may show, relative to the largest exact result.
    pub tolerance: f64,
    /// First family with a native form according to [`MilEntry::source`].
    pub native_from: Option<String>,
    /// Limits that the same source names.
    pub limits_in_words: Option<&'static str>,
    /// Who says so.
    pub source: &'static str,
    /// Support per family with every side.
    pub support: Vec<FamilySupport>,
    /// What holds for some uses alone.
    pub limits: Vec<Limit>,
}

impl MilEntry {
    pub(super) fn of(op: &'static MilOp, route: Route, claims: &Claims) -> Self {
        Self {
            name: op.name,
            opset: op.opset,
            summary: op.summary,
            ports: op.ports.iter().map(port).collect(),
            rules: op.constraints.iter().map(|rule| Rule { label: rule.label, rule: rule.rule }).collect(),
            arithmetic: match op.arithmetic {
                Arithmetic::Exact(rule) => format!("exact: {rule}"),
                Arithmetic::Modelled(rule) => format!("modelled: {rule}"),
                Arithmetic::Copy => "moves elements".to_string(),
                Arithmetic::Unknown => "unknown".to_string(),
            },
            tolerance: op.tolerance,
            native_from: op.support.native_from().map(|family| format!("A{family}")),
            limits_in_words: Some(op.support.limits).filter(|limits| !limits.is_empty()),
            source: op.support.source,
            support: families(op.name, claims, route),
            limits: limits(op.name, claims),
        }
    }
}

fn port(port: &PortSpec) -> Port {
    let kind = match port.kind {
        PortKind::Tensor => "",
        PortKind::Constant | PortKind::Weight => "constant ",
        PortKind::Variadic => "several of ",
        PortKind::Constants => "several constant ",
    };
    Port { name: port.name, takes: format!("{kind}{}", dtype_list(port.dtypes)), default: default_text(port.default) }
}
