//! Our side: a model on a device behind the line protocol.

use crate::encoder;
use crate::side::{Result, Side, answer, path};
use aneforge::io::models::{self, Model, bert};
use aneforge::io::{ModelFolder, SafeTensors};
use aneforge::{CompileOptions, Graph, IntoProgram, Program, Target, compile, open};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What [`serve`] takes in the place of a bundle to lower an encoder.
pub const ENCODER: &str = "encoder";

/// Our side of a model's comparison, or nothing where its weights are not at hand. The program is compiled here, so that the
/// serving process holds what running takes and nothing else.
pub fn side(model: &str, device: &str, folder: &Path) -> Result<Option<Side>> {
    let Some(weights) = weights(model) else { return Ok(None) };
    let bundle = folder.join(format!("{model} {}", device.replace(':', " ")));
    compile_to(model, weights, device, &bundle)?;
    Side::ours(&["serve".into(), bundle.into(), device.into()]).map(Some)
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
