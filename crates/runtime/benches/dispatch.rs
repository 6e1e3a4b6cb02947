//! What a call costs when nothing is computed: a tiny program on `null`, and the same on `cpu`.

use aneforge_mil::NoBlobs;
use aneforge_runtime::{Program, open};
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

const TEXT: &str = r#"program(1.3)
[buildInfo = dict<string, string>({})]
{
    func main<ios18>(tensor<fp16, [1, 8]> x) {
        tensor<fp16, [1, 8]> y = relu(x = x)[name = string("y")];
    } -> (y);
}
"#;
const CALLS: u32 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let program = Arc::new(Program::from_text("tiny", TEXT, &NoBlobs)?);
    let mut out = std::io::stdout().lock();
    for device in ["null", "cpu", "emulator:m1"] {
        let executable = open(device)?.load(&program)?;
        let (input, mut output) = ([0u8; 16], [0u8; 16]);
        let mut best = f64::INFINITY;
        for _ in 0..20 {
            let start = Instant::now();
            for _ in 0..CALLS {
                executable.execute(&[&input], &mut [&mut output])?;
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
        }
        writeln!(out, "{device:12} {best:8.1} ns per call")?;
    }
    Ok(())
}
