//! What a dump tells the emulator: functions by lookup, undecided readings, and how far the rules reach.

use super::{ConvolutionForm, EmulatorOptions, Engine, PartialOverflow, SingleTap, SubnormalProducts};
use crate::numerics::{Answer, Dump, DumpError, FunctionKey, Probe, answers};
use crate::{DeviceError, Program};
use half::f16;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A dump, ready to be asked.
#[derive(Debug)]
pub(crate) struct Known {
    /// Tells plans with different dumps apart.
    pub(crate) number: u64,
    /// Who answered.
    pub(crate) source: String,
    tables: HashMap<FunctionKey, Arc<[f16]>>,
    answers: HashMap<String, Answer>,
}

impl Known {
    pub(crate) fn new(dump: &Dump) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let tables = dump.tables.iter().map(|table| (table.key(), table.results.values().collect())).collect();
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), source: dump.source(), tables, answers: HashMap::new() }
    }

    /// The dumped results of a function.
    pub(crate) fn table(&self, key: &FunctionKey) -> Option<&Arc<[f16]>> {
        self.tables.get(key)
    }

    /// How many of the dumped results of an operator's probes its rule gives.
    pub(crate) fn answer(&self, op: &str) -> Option<Answer> {
        self.answers.get(op).copied()
    }
}

/// Reads a dump into an engine: of the readings that published figures leave open those that give most of the dumped results, the
/// default ones where that decides nothing; then counts what each operator's rule gives.
pub(crate) fn engine(dump: &Dump, defaults: EmulatorOptions) -> Result<Engine, DumpError> {
    let chip = dump.chip()?;
    let mut programs = Vec::new();
    for (index, probe) in dump.probes.iter().enumerate() {
        let fault = |error: DeviceError| DumpError::Probe { index, name: probe.name.clone(), problem: error.to_string() };
        programs.push((index, probe, probe.program().map_err(fault)?));
    }
    let mut options = defaults;
    let made = |options, known| Engine::with(chip, options, Some(known));
    let count = |options| ask(&Arc::new(made(options, Arc::new(Known::new(dump)))), &programs);
    let missed = |all: &[(&Probe, Answer)]| all.iter().map(|(_, answer)| answer.total - answer.matched).sum::<usize>();
    let mut best = count(options)?;
    if missed(&best) > 0 {
        for candidate in readings(defaults) {
            let answers = count(candidate)?;
            if missed(&answers) < missed(&best) {
                (options, best) = (candidate, answers);
            }
        }
    }
    let mut known = Known::new(dump);
    for (probe, answer) in best {
        let held = known.answers.entry(probe.op.clone()).or_default();
        held.matched += answer.matched;
        held.total += answer.total;
    }
    Ok(made(options, Arc::new(known)))
}

type Programs<'a> = [(usize, &'a Probe, Program)];

/// Asks an engine every probe whose inputs are in the file.
fn ask<'a>(engine: &Arc<Engine>, programs: &Programs<'a>) -> Result<Vec<(&'a Probe, Answer)>, DumpError> {
    let mut all = Vec::new();
    for (index, probe, program) in programs {
        let fault = |error: DeviceError| DumpError::Probe { index: *index, name: probe.name.clone(), problem: error.to_string() };
        all.extend(answers(engine, probe, program).map_err(fault)?.map(|answer| (*probe, answer)));
    }
    Ok(all)
}

/// Every combination of readings of the multiply-accumulate path.
fn readings(defaults: EmulatorOptions) -> impl Iterator<Item = EmulatorOptions> {
    let subnormal = [SubnormalProducts::Kept, SubnormalProducts::Flushed];
    let overflow = [PartialOverflow::FinalOnly, PartialOverflow::Immediate];
    let tap = [SingleTap::Element, SingleTap::Port];
    let form = [ConvolutionForm::Direct, ConvolutionForm::Winograd];
    (0..16_usize).map(move |bits| EmulatorOptions {
        subnormal_products: subnormal[bits & 1],
        partial_overflow: overflow[bits >> 1 & 1],
        single_tap: tap[bits >> 2 & 1],
        convolution: form[bits >> 3 & 1],
        ..defaults
    })
}
