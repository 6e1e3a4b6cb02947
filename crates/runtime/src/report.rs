//! What a loaded program is made of, for people who want to know where the time and memory went.

use crate::ane::EngineReport;
use aneforge_compile::SegmentKind;
use std::borrow::Cow;
use std::fmt;

/// Where a program runs and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Name of the device.
    pub device: String,
    /// Bytes that all activations and scratch buffers share; fixed when the program is loaded.
    pub arena_bytes: usize,
    /// Bytes of constants and packed weights that the executable holds beside the program.
    pub constant_bytes: usize,
    /// What is executed, in order.
    pub steps: Vec<StepReport>,
    /// Where each segment runs, in order; empty where the program is whole.
    pub segments: Vec<SegmentReport>,
    /// What is known of the engine that it runs on, where it does.
    pub engine: Option<EngineReport>,
}

/// Where one segment of a program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// `mil` or `native`.
    pub kind: &'static str,
    /// Name of the device.
    pub device: String,
    /// How many of the report's steps are this segment's, in their order; 0 where the device does not work segment by segment.
    pub steps: usize,
    /// Number of its operations or layers.
    pub operations: usize,
}

impl SegmentReport {
    pub(crate) fn new(kind: SegmentKind, device: &str, steps: usize, operations: usize) -> Self {
        let kind = match kind {
            SegmentKind::Mil => "mil",
            SegmentKind::Native => "native",
        };
        Self { kind, device: device.to_string(), steps, operations }
    }
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// Name of the value that it makes.
    pub name: String,
    /// Keywords of the operators that it does, in program order.
    pub ops: Vec<&'static str>,
    /// How: the kernel, or `meaning` for the generic form through the operator's definition.
    pub kernel: String,
    /// How well the arithmetic is known, on the emulator.
    pub rule: Option<Rule>,
}

/// The arithmetic rule of a step on the emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How well it is known.
    pub label: Label,
    /// The rule in words.
    pub text: String,
    /// Who says so.
    pub source: Cow<'static, str>,
    /// Chips that it holds for.
    pub chips: String,
}

/// How well a rule of the engine's arithmetic is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// Published figures are reproduced to every digit, or the results are those that the device itself gave for every input.
    Exact,
    /// A stand-in of the right size; its bits are not the chip's.
    Modelled,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Modelled => "modelled",
        })
    }
}

impl Report {
    /// Operators that went through the generic form, each once, in order of first use.
    pub fn generic_ops(&self) -> Vec<&'static str> {
        let mut seen = Vec::new();
        for op in self.steps.iter().filter(|step| step.kernel == "meaning").flat_map(|step| &step.ops) {
            if !seen.contains(op) {
                seen.push(*op);
            }
        }
        seen
    }
}
