//! `aneforge run`

use crate::failure::Failure;
use crate::output;
use crate::package::{self, Selection};
use aneforge::io::NpyArray;
use aneforge::runtime::ane::Source;
use aneforge::runtime::power::{self, Measurement};
use aneforge::{CompileOptions, DType, HostArray, IntoProgram, Port, Program};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the machine rests before a run whose energy is measured.
const REST: Duration = Duration::from_secs(1);

/// Execute a compiled bundle on arrays from .npy files.
#[derive(clap::Args)]
pub struct Options {
    /// Bundle: the folder that `aneforge compile` wrote. Or a Core ML package, which is compiled first.
    bundle: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// An input as name=file.npy; once for each input.
    #[arg(long, value_name = "NAME=FILE", value_parser = assignment)]
    input: Vec<(String, PathBuf)>,
    /// Where results go: a folder, or name=file.npy once for each output wanted.
    #[arg(long, value_name = "FOLDER|NAME=FILE")]
    output: Vec<String>,
    /// Where to run: auto, cpu, reference, null, emulator:<chip>.
    #[arg(long, default_value = "auto")]
    device: String,
    /// Convert inputs to the element types that the program takes.
    #[arg(long)]
    cast: bool,
    /// Say how long each step of the device's plan took, the longest first.
    #[arg(long)]
    profile: bool,
    /// Measure the energy of this many calls, after a second of rest: joules per call and watts, the idle part taken off.
    #[arg(long, value_name = "CALLS")]
    power: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    device: String,
    milliseconds: f64,
    steps: Vec<Step>,
    /// Where each segment ran; empty where the program is whole.
    segments: Vec<Segment>,
    outputs: Vec<Summary>,
    /// Energy, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    power: Option<Measurement>,
}

/// One segment of the program.
#[derive(Serialize)]
struct Segment {
    kind: &'static str,
    device: String,
    operations: usize,
}

/// One step of the device's plan with its time.
#[derive(Serialize)]
struct Step {
    name: String,
    operators: Vec<&'static str>,
    kernel: String,
    rule: Option<String>,
    microseconds: f64,
}

/// One result in short.
#[derive(Serialize)]
struct Summary {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    least: f64,
    greatest: f64,
    mean: f64,
    /// Elements that are NaN or infinite; `least` and `greatest` leave NaN out.
    not_finite: usize,
    file: Option<PathBuf>,
}

fn assignment(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_string(), PathBuf::from(file))),
        _ => Err("expected name=file.npy".to_string()),
    }
}

/// Reads, executes, writes.
pub fn run(options: &Options) -> Result<(), Failure> {
    let device = aneforge::open(&options.device)?;
    let executable = device.load(&program(options)?)?;
    let targets = targets(&options.output, executable.outputs())?;
    let inputs = inputs(options, executable.inputs())?;
    let buffers: Vec<&[u8]> = inputs.iter().map(HostArray::bytes).collect();
    let mut results = executable.outputs().iter().map(room).collect::<Result<Vec<_>, _>>()?;
    let mut slices: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    let start = Instant::now();
    let times = if options.profile {
        executable.profile(&buffers, &mut slices)?
    } else {
        executable.execute(&buffers, &mut slices)?;
        Vec::new()
    };
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let power = match options.power {
        None => None,
        Some(calls) => {
            let mut counter = power::counter(&source(device.name()));
            Some(power::measure(&mut *counter, REST, calls, || executable.execute(&buffers, &mut slices))?)
        }
    };
    let loaded = executable.report();
    let segment = |part: &aneforge::runtime::SegmentReport| Segment {
        kind: part.kind,
        device: part.device.clone(),
        operations: part.operations,
    };
    let segments = loaded.segments.iter().map(segment).collect();
    let mut steps: Vec<Step> = loaded
        .steps
        .into_iter()
        .zip(times)
        .map(|(step, time)| Step {
            name: step.name,
            operators: step.ops,
            kernel: step.kernel,
            rule: step.rule.map(|rule| rule.label.to_string()),
            microseconds: time.as_secs_f64() * 1e6,
        })
        .collect();
    steps.sort_by(|a, b| b.microseconds.total_cmp(&a.microseconds));
    let mut report = Report { device: device.name().to_string(), milliseconds, steps, segments, outputs: Vec::new(), power };
    for ((port, bytes), file) in executable.outputs().iter().zip(results).zip(&targets) {
        let array = NpyArray { ty: port.ty.clone(), bytes };
        if let Some(file) = file {
            array.write(file)?;
        }
        report.outputs.push(summary(&port.name, &array, file.clone()));
    }
    print(options, &report)
}

fn program(options: &Options) -> Result<Arc<Program>, Failure> {
    let path = &options.bundle;
    if package::is_package(path) {
        let body = package::body(path, &options.selection)?;
        let compiled = aneforge::compile::compile_body(body, &CompileOptions::default())?;
        return compiled.into_program().map_err(|error| Failure::input(&error));
    }
    let function = options.selection.of_bundle(path)?;
    if aneforge::io::bundle::check(path)?.is_text_edited {
        output::note("the program's text was edited after compiling");
    }
    let program = function.map_or_else(|| Program::open(path), |function| Program::open_function(path, function));
    Ok(Arc::new(program?))
}

/// A buffer for a result, or word that memory does not suffice for it.
fn room(port: &Port) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let length = port.byte_length();
    bytes
        .try_reserve_exact(length)
        .map_err(|error| Failure::NotHere(format!("output {:?} takes {}: {error}", port.name, output::bytes(length as u64))))?;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// Where the counters of a device's machine are.
fn source(device: &str) -> Source {
    match std::env::var_os("ANEFORGE_FAKE_APPLE").filter(|_| device.starts_with("fake")) {
        Some(path) => Source::Library(path.into()),
        None => Source::System,
    }
}

fn note_power(power: &Measurement) {
    output::note(&format!("energy of {} calls, {:.3} s, from {}", power.calls, power.net.seconds, power.source));
    for (unit, joules) in power.net.units() {
        output::note(&match (power.per_call(joules), joules) {
            (Some((each, watts)), _) => format!("  {unit}: {each:.3e} J a call, {watts:.3} W above idle"),
            (None, power::Readable::NotReadable(reason)) => format!("  {unit}: not readable here: {reason}"),
            (None, power::Readable::Value(_)) => format!("  {unit}: no call was made"),
        });
    }
    match &power.net.ane_bytes {
        power::Readable::Value(bytes) => output::note(&format!("  engine's memory traffic: {bytes:.0} bytes")),
        power::Readable::NotReadable(reason) => output::note(&format!("  engine's memory traffic: not readable here: {reason}")),
    }
}

fn print(options: &Options, report: &Report) -> Result<(), Failure> {
    if options.json {
        return output::json(report);
    }
    let rows: Vec<_> = report
        .outputs
        .iter()
        .map(|row| {
            let mut range = format!("{:.6} .. {:.6}, mean {:.6}", row.least, row.greatest, row.mean);
            if row.not_finite > 0 {
                range.push_str(&format!(", {} of them NaN or infinite", row.not_finite));
            }
            let file = row.file.as_ref().map_or(String::new(), |file| file.display().to_string());
            vec![row.name.clone(), row.dtype.clone(), output::shape(&row.shape), range, file]
        })
        .collect();
    output::data(&output::table(&rows, &[]))?;
    let steps = report.steps.iter().map(|step| {
        let (time, rule) = (format!("{:.1} us", step.microseconds), step.rule.clone().unwrap_or_default());
        vec![time, rule, step.name.clone(), step.operators.join("+"), step.kernel.clone()]
    });
    let steps = output::table(&steps.collect::<Vec<_>>(), &[0]);
    if !steps.is_empty() {
        output::note(steps.trim_end());
    }
    if let Some(power) = &report.power {
        note_power(power);
    }
    for (index, part) in report.segments.iter().enumerate() {
        output::note(&format!("segment {index}, {} of {} operations, on {}", part.kind, part.operations, part.device));
    }
    output::note(&format!("on {}: {:.3} ms", report.device, report.milliseconds));
    Ok(())
}

/// The inputs in call order, each checked against its port before anything runs.
fn inputs(options: &Options, ports: &[Port]) -> Result<Vec<HostArray>, Failure> {
    let known = || ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ");
    let given = |name: &str| options.input.iter().filter(|(given, _)| given == name).collect::<Vec<_>>();
    if let Some((name, _)) = options.input.iter().find(|(name, _)| !ports.iter().any(|port| port.name == *name)) {
        return Err(Failure::Input(format!("the program has no input {name:?}; it has {}", known())));
    }
    let read = |port: &Port| match given(&port.name)[..] {
        [(_, path)] => read_input(path, port, options.cast),
        [] => Err(Failure::Input(format!(
            "input {:?} is missing: give --input {}=file.npy; the inputs are {}",
            port.name,
            port.name,
            known()
        ))),
        _ => Err(Failure::Input(format!("input {:?} is given more than once", port.name))),
    };
    ports.iter().map(read).collect()
}

fn read_input(path: &Path, port: &Port, cast: bool) -> Result<HostArray, Failure> {
    let array = NpyArray::read(path)?;
    let wrong = |what: String| Failure::Input(format!("input {:?} from {}: {what}", port.name, path.display()));
    if array.ty.shape != port.ty.shape {
        let (found, expected) = (output::shape(&array.ty.shape), output::shape(&port.ty.shape));
        return Err(wrong(format!("has shape {found}, the program takes {expected}")));
    }
    if array.ty.dtype == port.ty.dtype {
        return HostArray::from_bytes(array.ty.dtype, array.ty.shape, array.bytes).map_err(|error| wrong(error.to_string()));
    }
    if !cast {
        let problem = format!("holds {}, the program takes {}; convert it or add --cast", array.ty.dtype, port.ty.dtype);
        return Err(wrong(problem));
    }
    let values: Vec<f64> = aneforge::mil::unpack(array.ty.dtype, &array.bytes, array.ty.count()).unwrap_or_default();
    let cast = HostArray::from_f64(port.ty.dtype, port.ty.shape.clone(), &values).map_err(|error| wrong(error.to_string()))?;
    // Casting must not make an infinity out of a number without a word.
    let narrowed = aneforge::mil::unpack(port.ty.dtype, cast.bytes(), values.len()).unwrap_or_default();
    match values.iter().zip(&narrowed).position(|(value, narrow)| value.is_finite() && !narrow.is_finite()) {
        Some(index) => Err(wrong(format!("holds {} at element {index}, which {} cannot hold", values[index], port.ty.dtype))),
        None => Ok(cast),
    }
}

/// A file for each output, or none.
fn targets(given: &[String], ports: &[Port]) -> Result<Vec<Option<PathBuf>>, Failure> {
    let mut targets = vec![None; ports.len()];
    // Names before folders, whatever the order on the command line.
    let (named, folders): (Vec<_>, Vec<_>) = given.iter().partition(|text| assignment(text).is_ok());
    for text in named.into_iter().chain(folders) {
        match assignment(text) {
            Ok((name, file)) => {
                let position = ports.iter().position(|port| port.name == name);
                let known = || ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ");
                let position =
                    position.ok_or_else(|| Failure::Input(format!("the program has no output {name:?}; it has {}", known())))?;
                if let Some(first) = targets[position].replace(file) {
                    let first = first.display();
                    return Err(Failure::Input(format!("--output gives output {name:?} a second place beside {first}")));
                }
            }
            Err(_) => {
                let folder = Path::new(text);
                if !folder.is_dir() {
                    return Err(Failure::Input(format!("--output {text}: no such folder, and not of the form name=file.npy")));
                }
                for (port, target) in ports.iter().zip(&mut targets) {
                    // A name=file.npy says more than a folder does.
                    target.get_or_insert_with(|| folder.join(format!("{}.npy", port.name)));
                }
            }
        }
    }
    let mut files: Vec<&PathBuf> = targets.iter().flatten().collect();
    files.sort();
    if let Some(pair) = files.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::Input(format!("--output sends two outputs to {}: one would be lost", pair[0].display())));
    }
    Ok(targets)
}

fn summary(name: &str, array: &NpyArray, file: Option<PathBuf>) -> Summary {
    let values = aneforge::mil::unpack(array.ty.dtype, &array.bytes, array.ty.count()).unwrap_or_default();
    let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(f64::NAN);
    Summary {
        name: name.to_string(),
        dtype: DType::keyword(array.ty.dtype).to_string(),
        shape: array.ty.shape.clone(),
        least: fold(f64::min),
        greatest: fold(f64::max),
        mean: values.iter().sum::<f64>() / values.len().max(1) as f64,
        not_finite: values.iter().filter(|value| !value.is_finite()).count(),
        file,
    }
}
