//! What a machine has of an engine, found by looking and by asking; and experiments on what nobody knows.
//!
//! [`examine`] looks everything up by name, compiles one small program in each dialect on each route, tries sizes of surfaces and how many
//! programs may be loaded, and says which route is taken and why. It is the same on a Mac and on a library that stands in for Apple's frameworks.

mod bench;
pub mod experiment;
mod limits;
mod weights;

use aneforge_mil::{Dialect, EmitOptions};
use aneforge_runtime::ane::{Ane, AneOptions, AneRoute, CachePlace};
use aneforge_runtime::{Device, Program};
use aneforge_sys::{Frameworks, Source};
use bench::Bench;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// Version of the layout of [`Examination`].
const SCHEMA: u32 = 2;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// Version of the layout.
    pub schema: u32,
    /// Version of these crates.
    pub version: String,
    /// The chip as the system names it.
    pub chip: String,
    /// Kind of the engine, for example `h13g`; or why it is not known.
    pub engine: String,
    /// Build of the operating system.
    pub os_build: String,
    /// Parts of the system and what was looked up in each.
    pub parts: Vec<Part>,
    /// What each route made of a small program.
    pub routes: Vec<Outcome>,
    /// What the client made of one in each dialect of the text.
    pub dialects: Vec<Outcome>,
    /// What the client made of surfaces of several sizes.
    pub surfaces: Vec<Outcome>,
    /// The route that is taken, or that there is none, and why.
    pub choice: String,
    /// Limits that were reached or kept to when they were asked for.
    pub asked: Vec<Outcome>,
    /// Limits that are kept to, with their sources.
    pub limits: Vec<String>,
}

/// A part of the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Name.
    pub name: String,
    /// Number of things that were found.
    pub found: usize,
    /// What is missing though it is needed.
    pub missing: Vec<String>,
    /// What is missing and can be done without.
    pub optional_missing: Vec<String>,
    /// Methods of other types than those known: name, known types, types found.
    pub other_types: Vec<[String; 3]>,
}

/// What came of a small program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What was asked.
    pub what: String,
    /// `right answer`, or what was wrong.
    pub outcome: String,
}

impl Outcome {
    /// Whether the answer was right.
    pub fn is_right(&self) -> bool {
        self.outcome == RIGHT
    }
}

/// What is said of a program that gave the right answer.
const RIGHT: &str = "right answer";

/// Looks and asks; what was found before for the same system and version is taken from `cache` unless `again` is set.
///
/// # Errors
/// Why there is nothing to be asked here, in words.
pub fn examine(source: &Source, cache: &Path, again: bool) -> Result<Examination, String> {
    let frameworks = Frameworks::open(source).map_err(|error| error.to_string())?;
    let chip = frameworks.chip_name().map_err(|error| error.to_string())?;
    let os_build = frameworks.os_build().map_err(|error| error.to_string())?;
    let file = cache.join("doctor").join(format!("{}.json", key(source, &chip, &os_build)));
    let kept = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Examination>(&bytes).ok());
    if let Some(kept) = kept.filter(|kept| !again && kept.schema == SCHEMA && kept.os_build == os_build) {
        return Ok(kept);
    }
    let engine = match frameworks.engine_subtype() {
        Ok(Some(kind)) => kind,
        Ok(None) => "the system knows of none".to_string(),
        Err(error) => error.to_string(),
    };
    let parts = frameworks.inventory().into_iter().map(|(name, lookups)| Part {
        name: name.to_string(),
        found: lookups.iter().filter(|lookup| lookup.found).count(),
        missing: lookups.iter().filter(|lookup| !lookup.found && lookup.required).map(|lookup| lookup.item.to_string()).collect(),
        optional_missing: lookups
            .iter()
            .filter(|lookup| !lookup.found && !lookup.required)
            .map(|lookup| lookup.item.to_string())
            .collect(),
        other_types: lookups
            .iter()
            .filter_map(|lookup| lookup.types.clone().map(|(known, found)| [lookup.item.to_string(), known, found]))
            .collect(),
    });
    let parts = parts.collect();
    let routes: Vec<Outcome> =
        [AneRoute::E5rt, AneRoute::InMemory, AneRoute::Client].into_iter().map(|way| route(source, way)).collect();
    let works = |index: usize| routes.get(index).is_some_and(Outcome::is_right);
    let dialects = [Dialect::Modern, Dialect::Old].into_iter().map(|form| dialect(source, form)).collect();
    let surfaces = limits::surfaces(source);
    let choice = match (works(0), works(1), works(2)) {
        (true, ..) => "e5rt: it gives the right answer and counts no compilations",
        (false, _, true) => "none by itself, because e5rt gives no right answer; name the device with :client",
        (false, true, false) => "none by itself, because e5rt gives no right answer; name the device with :in-memory",
        (false, false, false) => "none: no route gives the right answer",
    };
    let options = AneOptions::default();
    let limits = vec![
        format!(
            "{} loaded programs in a process; about 128 are reported (ANE guide, arXiv 2606.22283, chapter 14)",
            options.loaded_programs
        ),
        format!("{} compilations in a process on the in-memory route; about 119 are reported (maderix/ANE)", options.compilations),
        format!("{} bytes of weights in a program (ANEForge 0.4.0)", options.weight_bytes),
    ];
    // Last: what fails here may spoil compilations that follow.
    let asked = if works(0) { vec![limits::together(source, options.loaded_programs)] } else { Vec::new() };
    let version = env!("CARGO_PKG_VERSION").to_string();
    let choice = choice.to_string();
    let found =
        Examination { schema: SCHEMA, version, chip, engine, os_build, parts, routes, dialects, surfaces, choice, asked, limits };
    // Without a cache the next run asks again.
    if let (Some(folder), Ok(text)) = (file.parent(), serde_json::to_string_pretty(&found)) {
        let _ = std::fs::create_dir_all(folder).and_then(|()| crate::report::write_atomically(&file, &text));
    }
    Ok(found)
}

/// What an examination holds for.
fn key(source: &Source, chip: &str, os_build: &str) -> String {
    let place = match source {
        Source::System => "system".to_string(),
        Source::Library(path) => path.display().to_string(),
    };
    let text = format!("{place} {chip} {os_build} {}", env!("CARGO_PKG_VERSION"));
    text.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '_' }).collect()
}

/// Asks a route for a small program, as the device would.
fn route(source: &Source, route: AneRoute) -> Outcome {
    let what = match route {
        AneRoute::Default | AneRoute::E5rt => "e5rt",
        AneRoute::InMemory => "in-memory",
        AneRoute::Client => "client",
    };
    Outcome { what: what.to_string(), outcome: judged(ask(source, route)) }
}

fn judged(answer: Result<bool, String>) -> String {
    match answer {
        Ok(true) => RIGHT.to_string(),
        Ok(false) => "a wrong answer".to_string(),
        Err(problem) => problem,
    }
}

fn ask(source: &Source, route: AneRoute) -> Result<bool, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(|error| text(&error))?;
    let cache = CachePlace::Folder(folder.path().join("cache"));
    let device = Ane::open(AneOptions { source: source.clone(), route, cache, ..AneOptions::default() });
    let device = device.map_err(|error| text(&error))?;
    let place = folder.path().join("program");
    bench::write(&place, &bench::sum(&["x"], &EmitOptions::default())?)?;
    let program = Arc::new(Program::open(&place).map_err(|error| text(&error))?);
    let executable = device.load(&program).map_err(|error| text(&error))?;
    let mut out = vec![0; bench::BYTES];
    executable.execute(&[&bench::input()], &mut [&mut out]).map_err(|error| text(&error))?;
    Ok(bench::is_times(&out, 2.0))
}

/// Asks for a small program in a dialect of the text, through the client.
fn dialect(source: &Source, dialect: Dialect) -> Outcome {
    let what = match dialect {
        Dialect::Modern => "program(1.3), ios18",
        Dialect::Old => "program(1.0), ios16",
    };
    let asked = || {
        let bench = Bench::open(source)?;
        let text = bench::sum(&["x"], &EmitOptions { dialect, ..EmitOptions::default() })?;
        let mut model = bench.model("dialect", &text)?;
        let (from, to) = (bench.surface(bench::SURFACE)?, bench.surface(bench::SURFACE)?);
        let mut request = bench.request(&model, &[&from], &to)?;
        bench.client.evaluate(&mut model, &mut request, bench::QUALITY).map_err(bench::words)?;
        Ok(bench::is_times(&bench.read(&to)?, 2.0))
    };
    Outcome { what: what.to_string(), outcome: judged(asked()) }
}
