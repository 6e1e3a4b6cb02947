//! Where the time of a bundle goes: `cargo bench --bench bundle -- FOLDER DEVICE [runs]` prints each step's best time.

use aneforge_runtime::{Program, open};
use half::f16;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [folder, device, rest @ ..] = arguments.as_slice() else {
        writeln!(std::io::stderr(), "usage: cargo bench --bench bundle -- FOLDER DEVICE [runs]")?;
        return Ok(());
    };
    let runs: usize = rest.first().map_or(Ok(20), |count| count.parse())?;
    let start = Instant::now();
    let program = Arc::new(Program::open(folder)?);
    let executable = open(device)?.load(&program)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "loaded in {:.0} ms", start.elapsed().as_secs_f64() * 1e3)?;
    let value = |index: usize| (((index as f32 * 0.618_034).fract() - 0.5) * 2.0, index);
    let inputs: Vec<Vec<u8>> = executable
        .inputs()
        .iter()
        .map(|port| match port.ty.dtype {
            // Masks are ones: what an unpadded text has.
            aneforge_mil::DType::Fp16 if port.name == "mask" => f16::ONE.to_le_bytes().repeat(port.ty.count()),
            aneforge_mil::DType::Fp16 => (0..port.ty.count()).flat_map(|i| f16::from_f32(value(i).0).to_le_bytes()).collect(),
            _ => vec![1; port.byte_length()],
        })
        .collect();
    let given: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut outputs: Vec<Vec<u8>> = executable.outputs().iter().map(|port| vec![0; port.byte_length()]).collect();
    let mut best = Duration::MAX;
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..runs {
        let mut taken: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let start = Instant::now();
        executable.execute(&given, &mut taken)?;
        best = best.min(start.elapsed());
        let now = executable.profile(&given, &mut taken)?;
        if times.is_empty() {
            times = now;
        } else {
            times.iter_mut().zip(now).for_each(|(best, now)| *best = (*best).min(now));
        }
    }
    let report = executable.report();
    for (step, time) in report.steps.iter().zip(&times) {
        writeln!(out, "{:9.1} us  {:24} {} {:?}", time.as_secs_f64() * 1e6, step.name, step.kernel, step.ops)?;
    }
    writeln!(
        out,
        "best {:.3} ms, steps {:.3} ms, arena {} KiB, constants {} KiB",
        best.as_secs_f64() * 1e3,
        times.iter().sum::<Duration>().as_secs_f64() * 1e3,
        report.arena_bytes / 1024,
        report.constant_bytes / 1024
    )?;
    Ok(())
}
