//! `aneforge doctor`

mod experiment;
mod report;

use crate::failure::Failure;
use crate::output;
use aneforge::conform::engine::{Examination, examine};
use aneforge::runtime::ane::Source;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Say what this machine has: processor features, threads, caches, Apple's frameworks; write a report that people can send.
#[derive(clap::Args)]
pub struct Options {
    /// Write a report with the raw answers of a device to every question about its arithmetic; the device emulator:FILE reads it.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The device that the report asks: ane where none is named; also fake or emulator:<chip>.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Ask the frameworks again instead of showing what was found before on this system.
    #[arg(long)]
    again: bool,
    /// Run one of the numbered experiments in a process of its own: 1 to 9, or 0 to list them.
    #[arg(long, value_name = "N", conflicts_with = "report")]
    experiment: Option<u32>,
    /// Run the experiment, its risks known.
    #[arg(long, requires = "experiment")]
    yes: bool,
    /// Seconds after which an experiment is ended.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    limit: u64,
    /// A result of an experiment that goes into the report; once for each.
    #[arg(long, value_name = "FILE", requires = "report")]
    with: Vec<PathBuf>,
    /// Run an experiment in this process.
    #[arg(long, hide = true)]
    experiment_here: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Finding {
    what: String,
    found: String,
}

/// Looks around and tells.
pub fn run(options: &Options) -> Result<(), Failure> {
    if let Some(number) = options.experiment {
        return experiment::run(number, options);
    }
    if let Some(number) = options.experiment_here {
        return experiment::here(number, &source(options));
    }
    // A device that is not here is told before anything is written.
    let device = match (&options.report, &options.device) {
        (None, None) => None,
        (_, name) => Some(aneforge::open(name.as_deref().unwrap_or("ane"))?),
    };
    let engine = examine(&source(options), &aneforge::io::cache::cache_folder(), options.again);
    let findings = findings(&engine);
    if let (Some(path), Some(device)) = (&options.report, &device) {
        report::write(path, &**device, &findings, &engine, &options.with)?;
    }
    if options.json {
        #[derive(Serialize)]
        struct Findings<'a> {
            findings: &'a [Finding],
            engine: Option<&'a Examination>,
        }
        return output::json(&Findings { findings: &findings, engine: engine.as_ref().ok() });
    }
    let rows: Vec<_> = findings.into_iter().map(|finding| vec![finding.what, finding.found]).collect();
    output::data(&output::table(&rows, &[]))
}

/// What stands for Apple's frameworks: the library of the device `fake` where that is named or the environment has one.
fn source(options: &Options) -> Source {
    let fake = options.device.as_deref().is_none_or(|name| name.starts_with("fake"));
    match std::env::var_os("ANEFORGE_FAKE_APPLE").filter(|path| fake && !path.is_empty()) {
        Some(path) => Source::Library(path.into()),
        None => Source::System,
    }
}

fn findings(engine: &Result<Examination, String>) -> Vec<Finding> {
    let cache = aneforge::io::cache::cache_folder();
    let mut findings = vec![
        Finding { what: "version".to_string(), found: env!("CARGO_PKG_VERSION").to_string() },
        Finding { what: "system".to_string(), found: format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH) },
        Finding { what: "processor features".to_string(), found: features() },
        Finding {
            what: "threads".to_string(),
            found: std::thread::available_parallelism().map_or("unknown".to_string(), |n| n.to_string()),
        },
        Finding { what: "cache".to_string(), found: format!("{} ({})", cache.display(), cache_state(&cache)) },
    ];
    findings.extend(told(engine));
    findings.extend(
        aneforge::devices()
            .into_iter()
            .filter(|info| info.name == "ane" || info.name == "auto")
            .map(|info| Finding { what: format!("device {}", info.name), found: info.description }),
    );
    findings
}

/// What is told of an engine.
fn told(engine: &Result<Examination, String>) -> Vec<Finding> {
    let finding = |what: &str, found: String| Finding { what: what.to_string(), found };
    let engine = match engine {
        Ok(engine) => engine,
        Err(reason) => return vec![finding("engine", format!("no engine: {reason}"))],
    };
    let mut all = vec![
        finding("chip", engine.chip.clone()),
        finding("engine", engine.engine.clone()),
        finding("OS build", engine.os_build.clone()),
    ];
    for part in &engine.parts {
        let mut text = format!("{} found", part.found);
        for (word, names) in [("missing", &part.missing), ("missing, can be done without", &part.optional_missing)] {
            if !names.is_empty() {
                text.push_str(&format!("; {word}: {}", names.join(", ")));
            }
        }
        for [name, known, found] in &part.other_types {
            text.push_str(&format!("; {name} has types {found}, known are {known}"));
        }
        all.push(finding(&part.name, text));
    }
    all.extend(engine.routes.iter().map(|route| finding(&format!("route {}", route.what), route.outcome.clone())));
    all.extend(engine.dialects.iter().map(|dialect| finding(&format!("dialect {}", dialect.what), dialect.outcome.clone())));
    all.extend(engine.surfaces.iter().map(|surface| finding(&format!("surfaces, {}", surface.what), surface.outcome.clone())));
    all.push(finding("route taken", engine.choice.clone()));
    all.extend(engine.asked.iter().map(|limit| finding(&format!("limit, {}", limit.what), limit.outcome.clone())));
    all.extend(engine.limits.iter().map(|limit| finding("limit kept to", limit.clone())));
    all
}

fn cache_state(folder: &Path) -> String {
    match std::fs::metadata(folder) {
        Ok(metadata) if metadata.permissions().readonly() => "not writable".to_string(),
        Ok(metadata) if metadata.is_dir() => {
            let bundles = std::fs::read_dir(folder.join("bundles")).map_or(0, Iterator::count);
            format!("{bundles} compiled program(s)")
        }
        Ok(_) => "not a folder".to_string(),
        Err(_) => "made when it is needed".to_string(),
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> String {
    let present = [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("f16c", std::arch::is_x86_feature_detected!("f16c")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ];
    listed(&present)
}

#[cfg(target_arch = "aarch64")]
fn features() -> String {
    listed(&[("neon", std::arch::is_aarch64_feature_detected!("neon")), ("fp16", std::arch::is_aarch64_feature_detected!("fp16"))])
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> String {
    listed(&[])
}

fn listed(features: &[(&str, bool)]) -> String {
    let present: Vec<_> = features.iter().filter(|(_, present)| *present).map(|(name, _)| *name).collect();
    if present.is_empty() { "none that is used".to_string() } else { present.join(", ") }
}
