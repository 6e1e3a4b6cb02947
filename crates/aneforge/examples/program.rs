//! A small network, its program, and what three devices make of it: `cargo run --release --example program`.

use aneforge::{CompileOptions, DType, Graph, HostArray, Program, compile, open};
use std::error::Error;
use std::sync::Arc;

#[allow(clippy::print_stdout)] // an example talks to people
fn main() -> Result<(), Box<dyn Error>> {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 8]);
    let weight = graph.constant(&HostArray::from_f32([4, 8], &std::array::from_fn::<f32, 32, _>(|i| (i as f32).sin()))?);
    let y = x.linear(&weight, None).gelu("EXACT");

    let compiled = compile(&[("y", &y)], &CompileOptions::default())?;
    let folder = std::env::temp_dir().join("aneforge-example");
    compiled.write(&folder)?;
    println!("{}", std::fs::read_to_string(folder.join("model.mil"))?);

    let program = Arc::new(Program::open(&folder)?);
    let x = HostArray::fp16_from_f32([1, 8], &[0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8])?;
    for name in ["reference", "cpu", "emulator:m1"] {
        let y = open(name)?.load(&program)?.run(&[&x])?;
        println!("{name:12} {:?}", y[0].to_f32());
    }
    Ok(())
}
