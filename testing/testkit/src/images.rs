//! A small set of images in the form of Fashion-MNIST.

use crate::Random;
use std::path::Path;

const SIDE: usize = 28;

/// Writes the four IDX files of a set of `train` and `test` images into `folder`: a pattern for each of ten classes under noise.
///
/// # Panics
/// Where a file cannot be written.
pub fn write_idx(folder: &Path, train: usize, test: usize) {
    let mut random = Random::new(28);
    let pixels = SIDE * SIDE;
    let patterns: Vec<Vec<f64>> = (0..10).map(|_| random.values(pixels, 0.0, 255.0)).collect();
    for (part, count) in [("train", train), ("t10k", test)] {
        let mut images = [&[0, 0, 8, 3][..], &(count as u32).to_be_bytes(), &[0, 0, 0, 28, 0, 0, 0, 28]].concat();
        let mut labels = [&[0, 0, 8, 1][..], &(count as u32).to_be_bytes()].concat();
        for _ in 0..count {
            let label = random.below(10);
            labels.push(label as u8);
            images.extend(patterns[label].iter().map(|value| (0.4 * value + 0.6 * random.between(0.0, 255.0)) as u8));
        }
        std::fs::write(folder.join(format!("{part}-images-idx3-ubyte")), images).expect("written");
        std::fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), labels).expect("written");
    }
}
