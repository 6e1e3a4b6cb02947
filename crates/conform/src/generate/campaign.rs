//! Many graphs, on several threads.

use super::check::guarded;
use super::{Case, Devices, Finding, Mode, Recipe, Subject, Tally, check, generate, shrink};
use aneforge_core::GraphOp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Cases of one stage that are made small; more of the same kind are only counted.
const SHRUNK_PER_STAGE: usize = 3;

/// An operator table and the devices that its graphs run on.
#[derive(Debug)]
pub struct Campaign {
    operators: Vec<&'static GraphOp>,
    devices: Devices,
}

/// A graph that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What failed.
    pub finding: Finding,
    /// The smallest case found, as text; `None` where others of the same stage were made small before, or where drawing it failed.
    pub case: Option<String>,
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Graphs that were started.
    pub started: u64,
    /// Failures so far.
    pub failures: usize,
    /// The graph that has been running longest, and how long.
    pub longest: Option<(u64, Duration)>,
}

impl Campaign {
    /// A campaign over a table: [`aneforge_core::op::builtin`], one's own operators, or both. Operators without an example are left
    /// out: every use of those is an error.
    pub fn new(operators: &[&'static GraphOp]) -> Self {
        let usable = operators.iter().copied().filter(|op| !op.cases.is_empty());
        Self { operators: usable.collect(), devices: Devices::default() }
    }

    /// The operators that graphs are drawn from.
    pub fn operators(&self) -> &[&'static GraphOp] {
        &self.operators
    }

    /// The mode of a seed: one graph in ten gets values at the edges, the others whole numbers or reals.
    pub fn mode(seed: u64) -> Mode {
        match seed % 10 {
            0 => Mode::Edge,
            odd if odd % 2 == 1 => Mode::Whole,
            _ => Mode::Real,
        }
    }

    /// Draws and checks one graph.
    ///
    /// # Errors
    /// The finding with the whole graph, as it was drawn.
    pub fn graph(&self, seed: u64, tally: &mut Tally) -> Result<(), (Finding, Option<Recipe>)> {
        let mode = Self::mode(seed);
        let recipe = guarded("drawing", || Ok(generate(seed, &self.operators, mode, tally))).map_err(|finding| (finding, None))?;
        if recipe.outputs.is_empty() {
            return Ok(());
        }
        self.recipe(&recipe, mode, seed, tally).map_err(|finding| (finding, Some(recipe)))
    }

    fn recipe(&self, recipe: &Recipe, mode: Mode, seed: u64, tally: &mut Tally) -> Result<(), Finding> {
        let fault = |problem: String| Finding { stage: "building".to_string(), problem };
        let built = guarded("building", || recipe.build().map_err(|error| fault(error.to_string())))?;
        let subject = Subject {
            graph: built.graph,
            outputs: built.outputs,
            inputs: built.inputs.into_iter().map(|(name, ty, draw)| (name, draw.array(&ty))).collect(),
            mode,
            chip: Case::chip_of(seed),
            operators: self.operators.clone(),
        };
        check(&subject, &self.devices, tally)
    }

    /// Checks a case.
    ///
    /// # Errors
    /// The finding; a case that cannot be read is one too.
    pub fn case(&self, text: &str, tally: &mut Tally) -> Result<(), Finding> {
        let fault = |problem: String| Finding { stage: "reading".to_string(), problem };
        let case = Case::parse(text).map_err(|error| fault(error.to_string()))?;
        let subject = case.subject(&self.operators).map_err(|error| fault(error.to_string()))?;
        check(&subject, &self.devices, tally)
    }

    /// The smallest case of a graph that failed.
    fn smallest(&self, recipe: &Recipe, seed: u64, finding: &Finding) -> Option<String> {
        let mode = Self::mode(seed);
        let mut last = finding.clone();
        let small = shrink(recipe, &mut |candidate| match self.recipe(candidate, mode, seed, &mut Tally::default()) {
            Err(found) if found.stage == finding.stage => {
                last = found;
                true
            }
            _ => false,
        });
        let case = Case::new(&small, mode, Case::chip_of(seed)).ok()?;
        let problem = last.problem.lines().next().unwrap_or("");
        Some(format!("# {}: {problem}\n{case}", last.stage))
    }

    /// Checks `count` graphs from a seed on, on several threads; `watch` is called every second and stops the run with `false`.
    pub fn run(&self, first: u64, count: u64, threads: usize, watch: &mut dyn FnMut(Progress) -> bool) -> (Tally, Vec<Failure>) {
        let (next, stop, live) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(threads as u64));
        let total = Mutex::new((Tally::default(), Vec::<Failure>::new(), BTreeMap::<String, usize>::new()));
        let running: Vec<Mutex<Option<(u64, Instant)>>> = (0..threads).map(|_| Mutex::new(None)).collect();
        let worker = |slot: &Mutex<Option<(u64, Instant)>>| {
            let mut tally = Tally::default();
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    break;
                }
                let seed = first.wrapping_add(index);
                *hold(slot) = Some((seed, Instant::now()));
                if let Err((finding, recipe)) = self.graph(seed, &mut tally) {
                    let known = {
                        let mut total = hold(&total);
                        let known = total.2.entry(finding.stage.clone()).or_default();
                        *known += 1;
                        *known
                    };
                    let wanted = recipe.filter(|_| known <= SHRUNK_PER_STAGE);
                    let case = wanted.and_then(|recipe| self.smallest(&recipe, seed, &finding));
                    hold(&total).1.push(Failure { seed, finding, case });
                }
                *hold(slot) = None;
            }
            hold(&total).0.add(&tally);
            live.fetch_sub(1, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            for slot in &running {
                scope.spawn(move || worker(slot));
            }
            while live.load(Ordering::Relaxed) > 0 {
                std::thread::sleep(Duration::from_millis(if count < 5000 { 20 } else { 1000 }));
                let busy = running.iter().filter_map(|slot| *hold(slot));
                let longest = busy.map(|(seed, since)| (seed, since.elapsed())).max_by_key(|(_, time)| *time);
                let started = next.load(Ordering::Relaxed).min(count);
                if !watch(Progress { started, failures: hold(&total).1.len(), longest }) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        });
        let (tally, mut failures, _) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        failures.sort_by_key(|failure| failure.seed);
        (tally, failures)
    }
}

fn hold<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
