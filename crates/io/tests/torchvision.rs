//! ResNet-18 and ViT-B/16 with seeded weights, against torchvision's answers in fp32.
#![cfg(all(feature = "safetensors", feature = "npy"))]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helper functions of tests

mod common;

use aneforge_compile::{CompileOptions, compile};
use aneforge_core::HostArray;
use aneforge_io::{NpyArray, SafeTensors, models};
use aneforge_runtime::{Program, open};
use common::{cosine, folder, relative_distance};
use std::path::Path;
use std::sync::Arc;

const INPUTS: usize = 5;

fn read(path: &Path) -> NpyArray {
    NpyArray::read(path).unwrap_or_else(|error| panic!("{error}"))
}

/// Our logits for each input, from a bundle on disk as any user would have it.
fn logits(fixtures: &Path, name: &str, device: &str) -> Vec<Vec<f32>> {
    let weights = SafeTensors::open(fixtures.join(format!("{name}.safetensors"))).unwrap();
    let model = models::image_classifier(&weights).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle");
    compile(&model.named_outputs(), &CompileOptions::default()).unwrap().write(&bundle).unwrap();
    let executable = open(device).unwrap().load(&Arc::new(Program::open(&bundle).unwrap())).unwrap();
    let run = |index: usize| {
        let image = read(&fixtures.join(format!("input_{index}.npy")));
        let image = HostArray::fp16_from_f32(image.ty.shape.clone(), &image.to_f32()).unwrap();
        let mut output = vec![0; executable.outputs()[0].byte_length()];
        executable.execute(&[image.bytes()], &mut [&mut output]).unwrap();
        NpyArray { ty: executable.outputs()[0].ty.clone(), bytes: output }.to_f32()
    };
    (0..INPUTS).map(run).collect()
}

fn check(name: &str) {
    let Some(fixtures) = folder("ANEFORGE_FIXTURES").map(|fixtures| fixtures.join("torchvision")) else { return };
    let found = logits(&fixtures, name, "cpu");
    let wanted: Vec<_> = (0..INPUTS).map(|index| read(&fixtures.join(format!("{name}_logits_{index}.npy"))).to_f32()).collect();
    let farthest = found.iter().zip(&wanted).map(|(a, b)| relative_distance(a, b)).fold(0.0, f64::max);
    // A classifier with a constant answer would pass the distance; the difference of two answers tells.
    let difference =
        |rows: &[Vec<f32>], i: usize, j: usize| -> Vec<f32> { rows[i].iter().zip(&rows[j]).map(|(a, b)| a - b).collect() };
    let pairs = (0..INPUTS).flat_map(|i| (0..i).map(move |j| (i, j)));
    let lowest = pairs.map(|(i, j)| cosine(&difference(&found, i, j), &difference(&wanted, i, j))).fold(1.0, f64::min);
    println!("{name}: largest relative distance {farthest:.2e}, lowest cosine of differences {lowest:.6}");
    assert!(farthest <= 1e-2 && lowest >= 0.99, "{name}: {farthest} {lowest}");
}

#[test]
fn resnet18_agrees_with_torchvision() {
    check("resnet18");
}

#[test]
fn vit_b_16_agrees_with_torchvision() {
    check("vit_b_16");
}
