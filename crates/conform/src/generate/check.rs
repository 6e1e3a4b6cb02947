//! One graph the whole way.

use super::Mode;
use super::bound::{Arithmetics, Bound, bounds, distance};
use super::lossless::{self, ordered_inputs};
use super::tally::{Tally, count};
use super::trace::Tracer;
use super::whole;
use aneforge_compile::{CompileError, CompileOptions, bundle, compile};
use aneforge_core::{Array, Chip, DType, Graph, GraphOp, HostArray, Target, Tensor, chips, lower};
use aneforge_mil::{Body, parse, print};
use aneforge_runtime::emulator::{Emulator, EmulatorOptions};
use aneforge_runtime::{Cpu, Device, Null, Program, Reference};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A graph with the values of its inputs and what it is checked for.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The graph.
    pub graph: Graph,
    /// Its named outputs.
    pub outputs: Vec<(String, Tensor)>,
    /// Values of its inputs, in any order.
    pub inputs: Vec<(String, Array)>,
    /// What is asked of its results.
    pub mode: Mode,
    /// The chip it is compiled for, beside the generic target.
    pub chip: &'static Chip,
    /// Operators of the table that it was drawn from, for those that are not this project's own.
    pub operators: Vec<&'static GraphOp>,
}

/// What went wrong on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, in words that are the same for the same fault: `cpu for generic`, `graph text`.
    pub stage: String,
    /// What.
    pub problem: String,
}

/// The devices that graphs run on, made once.
#[derive(Debug)]
pub struct Devices {
    emulators: Vec<(&'static Chip, Emulator, Emulator)>,
}

impl Default for Devices {
    /// Every device, and the emulator of one chip of each family.
    fn default() -> Self {
        let mut emulators: Vec<(&'static Chip, Emulator, Emulator)> = Vec::new();
        for chip in chips() {
            if emulators.iter().all(|(other, ..)| other.family != chip.family) {
                let emulator = Emulator::new(chip, EmulatorOptions::default());
                emulators.push((chip, emulator.clone(), emulator.unfused()));
            }
        }
        Self { emulators }
    }
}

impl Devices {
    /// The chips whose emulators there are: the first of each family.
    pub fn chips(&self) -> Vec<&'static Chip> {
        self.emulators.iter().map(|(chip, ..)| *chip).collect()
    }
}

impl Finding {
    fn new(stage: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { stage: stage.into(), problem: problem.into() }
    }
}

/// Runs `work`; a panic becomes a finding.
///
/// # Errors
/// What `work` reports, or the panic's message.
pub(super) fn guarded<T>(stage: &str, work: impl FnOnce() -> Result<T, Finding>) -> Result<T, Finding> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Finding::new(format!("panic in {stage}"), message(&*panic))))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_string()
}

/// Takes a graph through text, lowering, passes, emission, parsing and all devices, and counts what was compared.
///
/// # Errors
/// The first [`Finding`].
pub fn check(subject: &Subject, devices: &Devices, tally: &mut Tally) -> Result<(), Finding> {
    guarded("graph text", || graph_text(subject))?;
    let generic = program(subject, Target::Generic, tally)?;
    let Some(generic) = generic else { return Ok(()) };
    let wanted = compare_devices(subject, &generic, devices, None, tally)?;
    let target = Target::e5rt(subject.chip);
    // A chip hands back fp16 alone.
    let fp16 = |tensor: &Tensor| tensor.dtype().is_ok_and(|dtype| dtype == DType::Fp16);
    let kept: Vec<usize> = (0..subject.outputs.len()).filter(|&index| fp16(&subject.outputs[index].1)).collect();
    if !kept.is_empty() {
        let outputs = kept.iter().map(|&index| subject.outputs[index].clone()).collect();
        let narrowed = Subject { outputs, ..subject.clone() };
        if let Some(chip) = program(&narrowed, target, tally)? {
            let wanted: Vec<Array> = kept.iter().map(|&index| wanted[index].clone()).collect();
            compare_devices(&narrowed, &chip, devices, Some(&wanted), tally)?;
        }
    }
    tally.graphs += 1;
    Ok(())
}

fn graph_text(subject: &Subject) -> Result<(), Finding> {
    let fault = |problem: String| Finding::new("graph text", problem);
    let text = subject.graph.to_text_with(&subject.outputs);
    let parsed = Graph::parse_with(&text, &subject.operators).map_err(|error| fault(error.to_string()))?;
    let again = parsed.graph.to_text_with(&parsed.outputs);
    if again == text { Ok(()) } else { Err(fault(format!("read back as another graph:\n{again}"))) }
}

/// A compiled graph that came back from its text and weight file.
struct Compiled {
    target: Target,
    program: Arc<Program>,
}

/// Compiles, writes and reads back; `None` where the target does not take the graph, which the generic one always does.
fn program(subject: &Subject, target: Target, tally: &mut Tally) -> Result<Option<Compiled>, Finding> {
    let stage = |what: &str| format!("{what} for {target}");
    let lowered = guarded(&stage("lowering"), || Ok(lower(&subject.outputs, target)))?;
    let refused = |reason: String, tally: &mut Tally| match target {
        Target::Generic => Err(Finding::new(stage("compiling"), reason)),
        Target::Chip { .. } => {
            count(&mut tally.refused, reason);
            Ok(None)
        }
    };
    let body = match lowered {
        Ok(body) => body,
        Err(error) => return refused(kind(&error), tally),
    };
    if subject.mode != Mode::Edge {
        let stage = stage("passes");
        guarded(&stage, || lossless::check(body, &target, &subject.inputs).map_err(|problem| Finding::new(&stage, problem)))?;
    }
    let named: Vec<(&str, &Tensor)> = subject.outputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let options = CompileOptions { target, ..CompileOptions::default() };
    let compiled = guarded(&stage("compiling"), || Ok(compile(&named, &options)))?;
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(error @ (CompileError::Limit { .. } | CompileError::Output { .. } | CompileError::Graph(_))) => {
            return refused(kind(&error), tally);
        }
        Err(error) => return Err(Finding::new(stage("compiling"), error.to_string())),
    };
    let written = stage("bundle");
    let program = guarded(&written, || read_back(&compiled, &written))?;
    Ok(Some(Compiled { target, program }))
}

/// The part of an error's text that does not name this one graph.
fn kind(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    text.split("; got ").next().unwrap_or(&text).split(['"', '[']).next().unwrap_or(&text).trim().to_string()
}

fn read_back(compiled: &aneforge_compile::Compiled, stage: &str) -> Result<Arc<Program>, Finding> {
    let fault = |problem: String| Finding::new(stage, problem);
    let folder = tempfile::tempdir().map_err(|error| fault(error.to_string()))?;
    let place = folder.path().join("bundle");
    compiled.write(&place).map_err(|error| fault(error.to_string()))?;
    let program = Program::open(&place).map_err(|error| fault(error.to_string()))?;
    let text = std::fs::read_to_string(place.join(bundle::TEXT)).unwrap_or_default();
    if !text.is_empty() {
        let parsed = parse(&text).map_err(|error| fault(error.to_string()))?;
        if print(&parsed) != text {
            return Err(fault(format!("the text is not printed back as it was:\n{text}")));
        }
        if !program.body().same_computation(&compiled.body) {
            return Err(fault(format!("read back as another computation:\n{text}")));
        }
    }
    Ok(Arc::new(program))
}

/// Runs a program on all devices and compares them with `reference`, and that with `wanted`; gives what `reference` answered.
fn compare_devices(
    subject: &Subject,
    compiled: &Compiled,
    devices: &Devices,
    wanted: Option<&[Array]>,
    tally: &mut Tally,
) -> Result<Vec<Array>, Finding> {
    let run = |device: &dyn Device| run(subject, compiled, device);
    let reference = run(&Reference)?;
    run(&Null)?;
    let chip =
        devices.emulators.iter().filter(|(chip, ..)| compiled.target.chip().is_none_or(|wanted| wanted.family == chip.family));
    if subject.mode == Mode::Edge {
        run(&Cpu::default())?;
        for (_, emulator, unfused) in chip {
            same(compiled, emulator, "the unfused plan", &run(emulator)?, &run(unfused)?, tally)?;
        }
        tally.edge += reference.len();
        return Ok(reference);
    }
    let body: &Body = compiled.program.body();
    let inputs = ordered_inputs(body, &subject.inputs);
    let stage = format!("evaluation for {}", compiled.target);
    let fault = |problem: String| Finding::new(&stage, problem);
    let tracer = Tracer::new(body).map_err(fault)?;
    let trace = tracer.run(&inputs, &mut |_, _| ()).map_err(fault)?;
    if subject.mode == Mode::Whole && whole::holds(&tracer, &trace, &inputs) {
        if let Some(wanted) = wanted {
            same(compiled, &Reference, "the generic program", &reference, wanted, tally)?;
        }
        same(compiled, &Cpu::default(), "reference", &run(&Cpu::default())?, &reference, tally)?;
        same(compiled, &Cpu::unfused(), "reference", &run(&Cpu::unfused())?, &reference, tally)?;
        for (_, emulator, unfused) in chip {
            same(compiled, emulator, "reference", &run(emulator)?, &reference, tally)?;
            same(compiled, unfused, "reference", &run(unfused)?, &reference, tally)?;
        }
        return Ok(reference);
    }
    let exact = tracer.outputs(&trace);
    let seed = subject.inputs.len() as u64;
    let processor = bounds(&tracer, &inputs, &exact, Arithmetics::Processor, seed).map_err(fault)?;
    if let Some(wanted) = wanted {
        near(compiled, "reference, against the generic program", &reference, wanted, &processor, tally)?;
    }
    near(compiled, "cpu", &run(&Cpu::default())?, &reference, &processor, tally)?;
    near(compiled, "cpu unfused", &run(&Cpu::unfused())?, &reference, &processor, tally)?;
    // What the engine gets wrong and chips' passes work around is no disagreement: only programs for a chip are compared there.
    for (_, emulator, unfused) in chip.take(if compiled.target.chip().is_some() { 1 } else { 0 }) {
        let engine = bounds(&tracer, &inputs, &exact, Arithmetics::Engine, seed).map_err(fault)?;
        let answer = run(emulator)?;
        same(compiled, emulator, "the unfused plan", &answer, &run(unfused)?, tally)?;
        near(compiled, emulator.name(), &answer, &reference, &engine, tally)?;
    }
    Ok(reference)
}

fn run(subject: &Subject, compiled: &Compiled, device: &dyn Device) -> Result<Vec<Array>, Finding> {
    let stage = format!("{} for {}", device.name(), compiled.target);
    guarded(&stage, || {
        let fault = |problem: String| Finding::new(&stage, problem);
        let loaded = device.load(&compiled.program).map_err(|error| fault(error.to_string()))?;
        let mut given = Vec::new();
        for port in loaded.inputs() {
            let found = subject.inputs.iter().find(|(name, _)| *name == port.name);
            let (_, array) = found.ok_or_else(|| fault(format!("no value for input {}", port.name)))?;
            given.push(HostArray::from_array(array).map_err(|error| fault(error.to_string()))?);
        }
        let results = loaded.run(&given.iter().collect::<Vec<_>>()).map_err(|error| fault(error.to_string()))?;
        Ok(results.iter().map(HostArray::to_array).collect())
    })
}

/// Equal bit for bit, but for the sign of zero, which the engine does not keep (ANE guide, arXiv 2606.22283, chapter 3).
fn same(
    compiled: &Compiled,
    device: &dyn Device,
    other: &str,
    got: &[Array],
    wanted: &[Array],
    tally: &mut Tally,
) -> Result<(), Finding> {
    let equal = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    for (index, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        let wrong = got.data.iter().zip(&wanted.data).position(|(a, b)| !equal(*a, *b));
        if let Some(at) = wrong {
            let stage = format!("{} for {} against {other}", device.name(), compiled.target);
            return Err(Finding::new(stage, difference(compiled, index, at, got, wanted)));
        }
        tally.exact += 1;
    }
    Ok(())
}

fn near(
    compiled: &Compiled,
    device: &str,
    got: &[Array],
    wanted: &[Array],
    bounds: &[Bound],
    tally: &mut Tally,
) -> Result<(), Finding> {
    for (index, ((got, wanted), bound)) in got.iter().zip(wanted).zip(bounds).enumerate() {
        if !bound.sound {
            tally.ill_conditioned += 1;
            continue;
        }
        let apart = |at: usize| distance(got.data[at], wanted.data[at]);
        let worst = (0..got.data.len()).max_by(|&a, &b| apart(a).total_cmp(&apart(b)));
        if let Some(at) = worst.filter(|&at| apart(at) > bound.allowed) {
            let stage = format!("{device} for {} against reference", compiled.target);
            let text = difference(compiled, index, at, got, wanted);
            return Err(Finding::new(stage, format!("{text}; {:.3e} apart, {:.3e} allowed", apart(at), bound.allowed)));
        }
        tally.bounded += 1;
    }
    Ok(())
}

fn difference(compiled: &Compiled, output: usize, at: usize, got: &Array, wanted: &Array) -> String {
    let name = compiled.program.body().outputs.get(output).map_or("", |output| output.name.as_str());
    format!("output {name:?} ({}), element {at}: {:?}, expected {:?}", got.ty, got.data[at], wanted.data[at])
}
