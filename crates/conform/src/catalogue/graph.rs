//! Entries of graph operators.

use super::lowering::{LoweringText, texts};
use super::support::one;
use super::{FamilySupport, Port, Rule, default_text, dtype_list};
use crate::claims::{Claims, FAMILIES, Route, Status, Verdict};
use aneforge_core::op::{InputKind, Vjp};
use aneforge_core::{AttributeKind, AttributeSpec, Family, GraphOp};
use serde::Serialize;

/// A graph operator.
#[derive(Clone, Debug, Serialize)]
pub struct GraphEntry {
    /// Name.
    pub name: &'static str,
    /// Names of the Python package aneforge 0.4 for uses of it.
    pub aliases: Vec<Alias>,
    /// What it computes.
    pub summary: &'static str,
    /// Inputs.
    pub inputs: Vec<Port>,
    /// Attributes.
    pub attributes: Vec<Port>,
    /// Rules.
    pub rules: Vec<Rule>,
    /// Whether it has a derivative.
    pub differentiable: bool,
    /// Its derivative, or why there is none.
    pub gradient: Gradient,
    /// Error that an fp16 device may show, relative to the largest exact result.
    pub tolerance: f64,
    /// What its first case becomes, by target.
    pub lowering: Vec<LoweringText>,
    /// Support per family: that of the weakest operator it is made of there.
    pub support: Vec<FamilySupport>,
}

/// Another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Alias {
    /// The name.
    pub name: &'static str,
    /// How it is written here.
    pub written: &'static str,
}

/// Status of the derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "status", content = "reason")]
pub enum Gradient {
    /// There is a rule.
    Rule,
    /// There is none, and why.
    None(&'static str),
}

impl GraphEntry {
    pub(super) fn of(op: &'static GraphOp, claims: &Claims) -> Self {
        let kind = |kind| match kind {
            InputKind::One => "",
            InputKind::Optional => "optional ",
            InputKind::Variadic => "several of ",
        };
        let lowering = texts(op);
        let support = FAMILIES.into_iter().map(|family| weakest(&lowering, family, claims)).collect();
        Self {
            name: op.name,
            aliases: op.aliases.iter().map(|&(name, written)| Alias { name, written }).collect(),
            summary: op.summary,
            inputs: op
                .inputs
                .iter()
                .map(|input| {
                    let constant = if input.constant { "constant " } else { "" };
                    let takes = format!("{}{constant}{}", kind(input.kind), dtype_list(input.dtypes));
                    Port { name: input.name, takes, default: (input.kind == InputKind::Optional).then(|| "none".to_string()) }
                })
                .collect(),
            attributes: op.attributes.iter().map(attribute).collect(),
            rules: op.constraints.iter().map(|rule| Rule { label: rule.label, rule: rule.rule }).collect(),
            differentiable: matches!(op.vjp, Vjp::Rule(_)),
            gradient: match op.vjp {
                Vjp::Rule(_) => Gradient::Rule,
                Vjp::None(reason) => Gradient::None(reason),
            },
            tolerance: op.tolerance,
            lowering,
            support,
        }
    }
}

fn attribute(spec: &AttributeSpec) -> Port {
    let takes = match spec.kind {
        AttributeKind::Text(words) => format!("one of {}", words.join(", ")),
        other => format!("{other:?}").to_lowercase(),
    };
    Port { name: spec.name, takes, default: default_text(spec.default) }
}

/// Support of a composition: that of its weakest part.
fn weakest(lowering: &[LoweringText], family: Family, claims: &Claims) -> FamilySupport {
    let nothing =
        |verdict, status| FamilySupport { family, route: Route::E5rt, verdict, status, sides: Vec::new(), figures: Vec::new() };
    match lowering.iter().find(|text| text.targets.contains(&family.to_string())) {
        Some(text) if text.refused.is_some() => nothing(Some(Verdict::Refused), Status::Reported),
        Some(text) => {
            let parts = text.operators.iter().map(|operator| one(operator, family, claims.route_of(operator), claims));
            parts.max_by_key(weakness).unwrap_or_else(|| nothing(None, Status::Unknown))
        }
        None => nothing(None, Status::Unknown),
    }
}

/// Orders parts: what the engine lacks first, then what is least known.
fn weakness(part: &FamilySupport) -> (u8, u8) {
    let verdict = match part.verdict {
        Some(Verdict::Native | Verdict::Runs | Verdict::Computes) => 0,
        Some(Verdict::Bridged) => 1,
        None => 2,
        Some(Verdict::Gated | Verdict::Absent | Verdict::Refused) => 3,
    };
    let status = match part.status {
        Status::Measured => 0,
        Status::Emulated => 1,
        Status::Reported => 2,
        Status::Contradicted => 3,
        Status::Unknown => 4,
    };
    (verdict, status)
}
