//! Whose arithmetic a plan follows.

use crate::emulator::Engine;
use crate::report::Rule;
use aneforge_mil::op::MilOp;
use aneforge_mil::round_to_fp16;
use half::f16;
use std::sync::Arc;

/// The numeric policy of a plan.
#[derive(Clone, Debug)]
pub(crate) enum Policy {
    /// fp16 storage with ties to even, f32 between the operators that one step does.
    Fast,
    /// The engine of one chip: every operator's result is stored with its rounding.
    Engine(Arc<Engine>),
}

impl Policy {
    /// Rounds the f64 results of an operator to fp16 values.
    pub(crate) fn store(&self, values: &mut [f64]) {
        match self {
            Self::Fast => values.iter_mut().for_each(|value| *value = round_to_fp16(*value).to_f64()),
            Self::Engine(engine) => engine.store(values),
        }
    }

    /// A value as the device takes it in.
    pub(crate) fn input(&self, value: f16) -> f16 {
        match self {
            Self::Fast => value,
            Self::Engine(engine) => engine.input(value),
        }
    }

    /// Text that is the same for policies with the same arithmetic, and only for those.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Fast => "fast".to_string(),
            Self::Engine(engine) => engine.identity(),
        }
    }

    /// The rule that results of an operator follow; none on the host.
    pub(crate) fn rule(&self, op: &'static MilOp) -> Option<Rule> {
        match self {
            Self::Fast => None,
            Self::Engine(engine) => Some(engine.rule(op)),
        }
    }
}
