//! Sentences to vectors: `cargo run --release --example embed -- FOLDER "a cat" "a kitten" "stocks fell"`.

use aneforge::io::{EmbedOptions, Embedder};
use std::error::Error;

#[allow(clippy::print_stdout)] // an example talks to people
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: embed FOLDER SENTENCE...")?;
    let sentences: Vec<String> = arguments.collect();

    let embedder = Embedder::open(folder, aneforge::open("auto")?, EmbedOptions::default())?;
    let answer = embedder.embed(&sentences)?;
    for (sentence, row) in sentences.iter().zip(&answer.rows) {
        let similarity: f32 = row.iter().zip(&answer.rows[0]).map(|(a, b)| a * b).sum();
        println!("{similarity:.3}  {sentence}");
    }
    println!("on {}, {:.1} ms per sentence", answer.device, answer.milliseconds_per_text());
    Ok(())
}
