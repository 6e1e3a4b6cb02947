//! Our side: a model on a device behind the line protocol.

use crate::side::Side;
use crate::{Result, encoder, path};
use aneforge::io::models::{self, Model, bert};
use aneforge::io::{ModelFolder, SafeTensors};
use aneforge::{CompileOptions, Graph, IntoProgram, Program, Target, compile, open};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What [`serve`] takes in the place of a bundle to lower an encoder.
pub const ENCODER: &str = "encoder";

/// Our side of a model's comparison, or nothing where its weights are not at hand. The program is compiled here, so that the
/// serving process holds what running takes and nothing else.
pub fn side(model: &str, device: &str, folder: &Path) -> Result<Option<Side>> {
    let Some(weights) = weights(model) else { return Ok(None) };
    let bundle = folder.join(format!("{model} {}", device.replace(':', " ")));
    compile_to(model, weights, device, &bundle)?;
    Side::ours(&bundle, device).map(Some)
}

fn weights(model: &str) -> Option<PathBuf> {
    match model {
        "minilm_128" => path("ANEFORGE_MINILM"),
        other => path("ANEFORGE_FIXTURES").map(|folder| folder.join("torchvision").join(format!("{other}.safetensors"))),
    }
}

/// Serves a bundle on a device, or the lowering of an encoder, until the input ends.
pub fn serve(bundle: &str, device: &str) -> Result<()> {
    if bundle == ENCODER {
        let weights = encoder::Weights::random()?;
        let folder = tempfile::tempdir()?;
        let bundle = folder.path().join("bundle");
        return answer(|| {
            let time = encoder::to_files(&weights, &bundle);
            // Outside of the time: the other side does not write over older files either.
            std::fs::remove_dir_all(&bundle)?;
            time
        });
    }
    let executable = open(device)?.load(&Arc::new(Program::open(bundle)?))?;
    // Word embeddings and images alike are small numbers around zero; masks are ones.
    let inputs: Vec<Vec<u8>> = executable.inputs().iter().map(|port| input(&port.name, port.ty.count())).collect();
    let buffers: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut outputs: Vec<Vec<u8>> = executable.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
    answer(|| {
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let start = Instant::now();
        executable.execute(&buffers, &mut slices)?;
        Ok(start.elapsed())
    })
}

fn input(name: &str, count: usize) -> Vec<u8> {
    let value = |index: usize| {
        if name == bert::MASK {
            1.0
        } else {
            ((index as f32 * 0.618_034).fract() - 0.5) * if name == bert::WORDS { 0.2 } else { 3.0 }
        }
    };
    (0..count).flat_map(|index| half::f16::from_f32(value(index)).to_le_bytes()).collect()
}

fn compile_to(model: &str, weights: PathBuf, device: &str, bundle: &Path) -> Result<()> {
    let built: Model = if model == "minilm_128" {
        let folder = ModelFolder::open(weights)?;
        let config = bert::BertConfig::read(folder.config())?;
        bert::build(&folder, &config, 1, 128)?
    } else {
        models::image_classifier(&SafeTensors::open(weights)?)?
    };
    let target: Target = device.strip_prefix("emulator:").unwrap_or("generic").parse()?;
    compile(&built.named_outputs(), &CompileOptions { target, ..CompileOptions::default() })?.write(bundle)?;
    Ok(())
}

/// The protocol: `ready`, then the time of each run asked for, then the peak memory.
fn answer(mut run: impl FnMut() -> Result<Duration>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        if line?.trim() != "run" {
            break;
        }
        writeln!(out, "ms {:.4}", run()?.as_secs_f64() * 1e3)?;
        out.flush()?;
    }
    writeln!(out, "peak_rss_kib {}", peak_kibibytes())?;
    Ok(())
}

/// From the kernel's accounts; 0 where there are none to read.
fn peak_kibibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// What a call costs when nothing is computed, the best of several thousand calls.
pub fn dispatch_nanoseconds() -> Result<f64> {
    const CALLS: u32 = 10_000;
    let graph = Graph::new();
    let x = graph.input("x", aneforge::DType::Fp16, &[1, 8]);
    let program = compile(&[("y", &x.relu())], &CompileOptions::default())?.into_program()?;
    let executable = open("null")?.load(&program)?;
    let (input, mut output) = ([0u8; 16], [0u8; 16]);
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        for _ in 0..CALLS {
            executable.execute(&[&input], &mut [&mut output])?;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    }
    Ok(best)
}
