//! `aneforge doctor`

mod report;

use crate::failure::Failure;
use crate::output;
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
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Finding {
    what: &'static str,
    found: String,
}

/// Apple's frameworks that reach the engine, looked for by path and never loaded.
const FRAMEWORKS: &[(&str, &str)] = &[
    ("Espresso (e5rt)", "/System/Library/PrivateFrameworks/Espresso.framework"),
    ("AppleNeuralEngine", "/System/Library/PrivateFrameworks/AppleNeuralEngine.framework"),
    ("ANECompiler", "/System/Library/PrivateFrameworks/ANECompiler.framework"),
];

/// Looks around and tells.
pub fn run(options: &Options) -> Result<(), Failure> {
    // A device that is not here is told before anything is written.
    let device = match (&options.report, &options.device) {
        (None, None) => None,
        (_, name) => Some(aneforge::open(name.as_deref().unwrap_or("ane"))?),
    };
    let findings = findings();
    if let (Some(path), Some(device)) = (&options.report, &device) {
        report::write(path, &**device, &findings)?;
    }
    if options.json {
        #[derive(Serialize)]
        struct Findings<'a> {
            findings: &'a [Finding],
        }
        return output::json(&Findings { findings: &findings });
    }
    let rows: Vec<_> = findings.into_iter().map(|finding| vec![finding.what.to_string(), finding.found]).collect();
    output::data(&output::table(&rows, &[]))
}

fn findings() -> Vec<Finding> {
    let cache = aneforge::io::cache::cache_folder();
    let mut findings = vec![
        Finding { what: "version", found: env!("CARGO_PKG_VERSION").to_string() },
        Finding { what: "system", found: format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH) },
        Finding { what: "processor features", found: features() },
        Finding { what: "threads", found: std::thread::available_parallelism().map_or("unknown".to_string(), |n| n.to_string()) },
        Finding { what: "cache", found: format!("{} ({})", cache.display(), cache_state(&cache)) },
    ];
    findings.extend(FRAMEWORKS.iter().map(|(what, path)| Finding { what, found: presence(path) }));
    findings.extend(
        aneforge::devices()
            .into_iter()
            .filter(|info| info.name == "ane" || info.name == "auto")
            .map(|info| Finding { what: if info.name == "ane" { "device ane" } else { "device auto" }, found: info.description }),
    );
    findings
}

fn presence(path: &str) -> String {
    if Path::new(path).is_dir() { "present".to_string() } else { format!("not present ({path})") }
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
