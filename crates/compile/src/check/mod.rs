//! What a program meets on each target, before it is compiled for one: operators that are native, written as others, refused or too
//! large, with the reason and what to do; and where fp16 may lose what the program means.

mod product;
mod ranges;
mod risk;
mod single;

pub use product::product_error;
pub use ranges::{Assumptions, Range, ranges};
pub use risk::{Risk, RiskKind, risks};

use crate::CompileError;
use aneforge_core::{Chip, CompilerTarget, Target, compiler_targets};
use aneforge_mil::op::Standing;
use aneforge_mil::{Body, Operation};
use std::collections::BTreeMap;

/// How a target takes an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The engine executes it.
    Native,
    /// It runs written as other operators, folded, or done in software around the engine.
    Decomposed,
    /// A tensor or kernel is larger than the target takes.
    Oversize,
    /// The target does not take it.
    Rejected,
}

/// How a target takes the uses of one operator that fare alike.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The operator.
    pub op: &'static str,
    /// How it is taken.
    pub verdict: Verdict,
    /// How many uses.
    pub count: usize,
    /// SSA name of the first.
    pub first: String,
    /// Why; empty where it is native.
    pub reason: String,
    /// What to do; empty where nothing has to be done.
    pub remedy: String,
}

/// How a target takes a program.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TargetCheck {
    /// The target of the compiler.
    pub target: &'static str,
    /// Products that have it.
    pub chips: Vec<&'static str>,
    /// Operators, worst first.
    pub findings: Vec<Finding>,
}

impl TargetCheck {
    /// The worst verdict of all.
    pub fn worst(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Native)
    }

    /// Uses with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).map(|finding| finding.count).sum()
    }
}

/// Checks a program, as it was lowered or read, against the targets. Each distinct use of an operator goes through the passes of a
/// target by itself, so what is told is what compiling would do; weights are not read for it.
pub fn check(body: &Body, targets: &[&'static CompilerTarget]) -> Vec<TargetCheck> {
    let distinct = single::distinct(body);
    // Targets of one family differ in the number of their units, which no operator minds.
    let mut known: Vec<(&'static Chip, Vec<Finding>)> = Vec::new();
    let mut checked = Vec::with_capacity(targets.len());
    for target in targets {
        let findings = match target.chip() {
            None => without_programs(body, target),
            Some(chip) => match known.iter().find(|(other, _)| is_alike(other, chip)) {
                Some((_, findings)) => findings.clone(),
                None => {
                    let findings = on_chip(body, &distinct, chip);
                    known.push((chip, findings.clone()));
                    findings
                }
            },
        };
        checked.push(TargetCheck { target: target.name, chips: target.products().map(|chip| chip.name).collect(), findings });
    }
    checked
}

/// All targets of the compiler.
pub fn all_targets() -> Vec<&'static CompilerTarget> {
    compiler_targets().iter().collect()
}

fn is_alike(a: &Chip, b: &Chip) -> bool {
    let limits = |chip: &Chip| (chip.family, chip.max_extent, chip.max_channels, chip.max_kernel_width);
    let features = |chip: &Chip| (chip.sine, chip.width_slice_hazard, chip.winograd);
    limits(a) == limits(b) && features(a) == features(b)
}

fn without_programs(body: &Body, target: &CompilerTarget) -> Vec<Finding> {
    let reason = format!("{} takes no program in MIL; the compiler says that it is supported from H13 on", target.name);
    let finding = |op, count, first: &str| Finding {
        op,
        verdict: Verdict::Rejected,
        count,
        first: first.to_string(),
        reason: reason.clone(),
        remedy: "choose a target from h13 on".to_string(),
    };
    let mut counts: BTreeMap<&'static str, (usize, &str)> = BTreeMap::new();
    for operation in &body.operations {
        let first = operation.outputs.first().map_or("", |&output| body.value(output).name.as_str());
        counts.entry(operation.op.name).or_insert((0, first)).0 += 1;
    }
    counts.into_iter().map(|(op, (count, first))| finding(op, count, first)).collect()
}

fn on_chip(body: &Body, distinct: &[single::Use], chip: &'static Chip) -> Vec<Finding> {
    let target = Target::e5rt(chip);
    let mut findings: Vec<Finding> = Vec::new();
    for used in distinct {
        let operation = &body.operations[used.first];
        let (verdict, reason, remedy) = judge(&used.body, operation, chip, &target);
        let alike = findings.iter_mut().find(|finding| {
            finding.op == operation.op.name && finding.verdict == verdict && finding.reason == reason && finding.remedy == remedy
        });
        match alike {
            Some(finding) => finding.count += used.count,
            None => findings.push(Finding {
                op: operation.op.name,
                verdict,
                count: used.count,
                first: used.name.clone(),
                reason,
                remedy,
            }),
        }
    }
    findings.sort_by(|a, b| b.verdict.cmp(&a.verdict).then(a.op.cmp(b.op)));
    findings
}

fn judge(alone: &Body, operation: &Operation, chip: &Chip, target: &Target) -> (Verdict, String, String) {
    let compiled = crate::pipeline::run(
        alone.clone(),
        &crate::pass::Context { target, rewrites: crate::Rewrites::none() },
        &mut crate::Notes::default(),
    );
    match compiled {
        Ok((body, _)) => {
            let remains = body.operations.iter().any(|other| other.op.name == operation.op.name);
            if !remains {
                let mut names: Vec<&str> = body.operations.iter().map(|other| other.op.name).collect();
                names.dedup();
                let reason =
                    if names.is_empty() { "removed by the passes".to_string() } else { format!("written as {}", short(&names)) };
                return (Verdict::Decomposed, reason, String::new());
            }
            match operation.op.support.standing(chip.family.number()) {
                Standing::Native => (Verdict::Native, String::new(), String::new()),
                _ => {
                    let reason = format!("composed, folded or done in software on {}", chip.family);
                    (Verdict::Decomposed, reason, String::new())
                }
            }
        }
        Err(CompileError::Limit { rule, remedy, ty, is_size, .. }) => {
            let verdict = if is_size { Verdict::Oversize } else { Verdict::Rejected };
            (verdict, format!("{ty}: {rule}"), remedy.to_string())
        }
        Err(error) => (Verdict::Rejected, error.to_string(), String::new()),
    }
}

fn short(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    let rest = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{shown} and {rest} more") } else { shown }
}
