//! Compiles a use, runs it on the device and judges what comes out.

use super::SuiteError;
use super::compare::{Arith, allowed, difference};
use super::usage::{Form, Use};
use crate::claims::{Claims, Route, Status, Verdict};
use crate::files::write;
use crate::report::{ClaimSummary, Outcome, UseResult};
use aneforge_compile::{CompileError, CompileOptions, Compiled, compile, compile_body};
use aneforge_core::{Chip, HostArray, Target};
use aneforge_mil::Body;
use aneforge_native::net;
use aneforge_runtime::ane::AneError;
use aneforge_runtime::{Device, DeviceError, Program};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A device with what is claimed about the chip that it stands for.
pub(super) struct Bench<'a> {
    device: Arc<dyn Device>,
    arithmetic: Arith,
    chip: Option<&'static Chip>,
    /// What programs are compiled for.
    target: Target,
    /// Whether programs of one operation are compiled too: an engine refuses some that it runs once they are rewritten.
    legalises: bool,
    twin: Option<Arc<dyn Device>>,
    claims: &'a Claims,
    folder: tempfile::TempDir,
}

/// What came of a run before it is compared.
enum Ran {
    Results {
        got: Vec<HostArray>,
        body: Body,
        time: Duration,
    },
    Refused(String),
    Lacks(String),
    Failed(String),
    /// The process has no compilations left.
    Spent(String),
}

impl<'a> Bench<'a> {
    pub(super) fn open(device: Arc<dyn Device>, twin: Option<&str>, claims: &'a Claims) -> Result<Self, SuiteError> {
        let chip = device.chip();
        let target = device.target();
        let kind = device.name().split(':').next();
        let legalises = matches!(kind, Some("ane" | "fake"));
        let twin = twin.map(aneforge_runtime::open).transpose()?;
        let arithmetic = match (device.name(), chip) {
            ("null", _) => Arith::Null,
            ("reference", _) => Arith::Wide,
            (_, Some(_)) => Arith::Engine,
            _ => Arith::Half,
        };
        Ok(Self { device, arithmetic, chip, target, legalises, twin, claims, folder: tempfile::tempdir()? })
    }

    /// The chip that the device stands for.
    pub(super) fn chip(&self) -> Option<&'static Chip> {
        self.chip
    }

    /// The route that programs take to the chip.
    pub(super) fn route(&self) -> Route {
        if self.target.route() == Some(aneforge_core::Route::InMemory) { Route::InMemory } else { Route::E5rt }
    }

    pub(super) fn name(&self) -> &str {
        self.device.name()
    }

    /// What is claimed of a MIL operator on the chip.
    pub(super) fn claim(&self, op: &str) -> Option<ClaimSummary> {
        let support = self.claims.support(op, self.chip?.family, self.claims.route_of(op));
        Some(ClaimSummary { verdict: support.verdict, status: support.status })
    }

    /// Runs one use; says beside what came of it whether a process that has compilations left must run it again.
    pub(super) fn run(&self, usage: &Use) -> (UseResult, bool) {
        match self.execute(usage) {
            Ran::Spent(reason) => (self.judge(usage, Ran::Failed(reason)), true),
            ran => (self.judge(usage, ran), false),
        }
    }

    fn judge(&self, usage: &Use, ran: Ran) -> UseResult {
        let result = |outcome, error, allowed, time: Duration, reason| UseResult {
            case: usage.case.clone(),
            origin: usage.origin,
            outcome,
            error,
            allowed,
            micros: time.as_secs_f64() * 1e6,
            reason,
        };
        let stopped = |outcome, reason| result(outcome, None, usage.tolerance, Duration::ZERO, Some(reason));
        match ran {
            Ran::Lacks(reason) => stopped(Outcome::Unsupported, reason),
            Ran::Refused(reason) => stopped(Outcome::Refused, reason),
            Ran::Failed(reason) | Ran::Spent(reason) => stopped(Outcome::Fail, reason),
            Ran::Results { got, body, time } => {
                let allowed = allowed(&body, self.arithmetic, usage.tolerance);
                if self.arithmetic == Arith::Null {
                    return result(Outcome::Pass, None, 0.0, time, None);
                }
                let worst =
                    got.iter().zip(&usage.wanted).map(|(got, wanted)| difference(&got.to_array(), wanted)).fold(0.0, f64::max);
                if got.len() == usage.wanted.len() && worst <= allowed {
                    return result(Outcome::Pass, Some(worst), allowed, time, None);
                }
                let reason = format!("{worst:.3e} off, {allowed:.1e} allowed{}", shown(&got, usage));
                result(Outcome::Fail, Some(worst).filter(|worst| worst.is_finite()), allowed, time, Some(reason))
            }
        }
    }

    fn execute(&self, usage: &Use) -> Ran {
        let path = self.folder.path().join("use");
        let (body, written) = match &usage.form {
            Form::Faulty(problem) => return Ran::Failed(problem.clone()),
            Form::Body(body) => match self.lacks(body) {
                Some(reason) => return Ran::Lacks(reason),
                None if self.legalises => match self.legalised(body) {
                    Ok(compiled) => (compiled.body.clone(), compiled.write(&path).map(|_| ()).map_err(|error| error.to_string())),
                    Err(ran) => return ran,
                },
                None => (body.clone(), write(body, &path)),
            },
            Form::Net(body) => match self.lacks(body) {
                Some(reason) => return Ran::Lacks(reason),
                // A network goes to the device as it stands; the device compiles it for its chip itself.
                None => match self.legalises.then(|| self.legalised(body)) {
                    Some(Err(ran)) => return ran,
                    _ => (body.clone(), write_net(body, &path)),
                },
            },
            Form::Graph(outputs, generic) => {
                let named: Vec<_> = outputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
                let options = CompileOptions { target: self.target, ..CompileOptions::default() };
                match compile(&named, &options) {
                    Ok(compiled) => match self.lacks(&compiled.body) {
                        Some(reason) => return Ran::Lacks(reason),
                        None => (compiled.body.clone(), compiled.write(&path).map(|_| ()).map_err(|error| error.to_string())),
                    },
                    // A limit of the chip is a claim about it too.
                    Err(error @ CompileError::Limit { .. }) => return Ran::Lacks(error.to_string()),
                    Err(error) => return self.lacks(generic).map_or_else(|| Ran::Refused(error.to_string()), Ran::Lacks),
                }
            }
        };
        let outcome = written.map_err(Ran::Failed).and_then(|()| self.call(&path, usage));
        let _ = std::fs::remove_dir_all(&path);
        match outcome {
            Ok((got, time)) => Ran::Results { got, body, time },
            Err(ran) => ran,
        }
    }

    /// A body as it is compiled for the device. A limit of the chip is a claim about it.
    fn legalised(&self, body: &Body) -> Result<Compiled, Ran> {
        let options = CompileOptions { target: self.target, ..CompileOptions::default() };
        compile_body(body.clone(), &options).map_err(|error| match error {
            CompileError::Limit { .. } | CompileError::Output { .. } => Ran::Lacks(error.to_string()),
            error => Ran::Failed(error.to_string()),
        })
    }

    /// Loads a program and runs it once.
    fn call(&self, path: &Path, usage: &Use) -> Result<(Vec<HostArray>, Duration), Ran> {
        let text = |error: &dyn std::error::Error| Ran::Failed(error.to_string());
        let program = match &usage.form {
            Form::Net(_) => Program::from_body("net", net::read(path).map_err(|error| text(&error))?),
            _ => Program::open(path).map_err(|error| text(&error))?,
        };
        let program = Arc::new(program);
        let executable = self.device.load(&program).map_err(|error| match error {
            DeviceError::Ane(AneError::CompilationsSpent { .. }) => Ran::Spent(error.to_string()),
            error => text(&error),
        })?;
        let mut inputs = Vec::new();
        for port in executable.inputs() {
            let found = usage.inputs.iter().find(|(name, _)| *name == port.name);
            let missing = || Ran::Failed(format!("the program wants an input {:?} that the use does not have", port.name));
            let (_, array) = found.ok_or_else(missing)?;
            inputs.push(HostArray::from_array(array).map_err(|error| text(&error))?);
        }
        let inputs: Vec<&HostArray> = inputs.iter().collect();
        let start = Instant::now();
        let results = executable.run(&inputs).map_err(|error| text(&error))?;
        let time = start.elapsed();
        if let Some(twin) = &self.twin {
            let wanted = twin.load(&program).and_then(|executable| executable.run(&inputs));
            let wanted = wanted.map_err(|error| Ran::Failed(format!("{}: {error}", twin.name())))?;
            if !results.iter().map(HostArray::bytes).eq(wanted.iter().map(HostArray::bytes)) {
                return Err(Ran::Failed(format!("other bits than {}", twin.name())));
            }
        }
        Ok((results, time))
    }

    /// The first operator of a program that the chip lacks according to everybody who says anything.
    fn lacks(&self, body: &Body) -> Option<String> {
        let chip = self.chip?;
        let missing = |name: &&'static str| {
            let support = self.claims.support(name, chip.family, self.claims.route_of(name));
            support.status != Status::Contradicted
                && matches!(support.verdict, Some(Verdict::Gated | Verdict::Absent | Verdict::Refused))
        };
        let name = body.operations.iter().map(|operation| operation.op.name).find(missing)?;
        let support = self.claims.support(name, chip.family, self.claims.route_of(name));
        let source = support.claims.first().and_then(|claim| self.claims.source(&claim.source));
        let citation = source.map_or("the claims", |source| source.citation.as_str());
        Some(format!("{} has no {name}: {citation}", chip.product))
    }
}

/// Writes a body of layers as a network.
fn write_net(body: &Body, folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    net::write(body, folder).map_err(|error| error.to_string())
}

/// The first result beside the wanted one, for people who look into a failure.
fn shown(got: &[HostArray], usage: &Use) -> String {
    let Some((got, wanted)) = got.iter().zip(&usage.wanted).find(|(got, wanted)| got.to_array() != **wanted) else {
        return String::new();
    };
    let got = got.to_array();
    let few = |data: &[f64]| data.iter().take(6).map(|value| format!("{value:.5}")).collect::<Vec<_>>().join(" ");
    format!("; {} got [{}], wanted [{}]", got.ty, few(&got.data), few(&wanted.data))
}
