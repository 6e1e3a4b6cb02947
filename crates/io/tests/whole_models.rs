//! Whole models through the stand-in for Apple's frameworks: the bits of the emulator of the same chip for the same program.
#![cfg(all(feature = "tokenizers", feature = "npy"))]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helper functions of tests

mod common;

use aneforge_compile::{CompileOptions, compile};
use aneforge_core::{HostArray, TensorType};
use aneforge_io::{EmbedOptions, Embedder, NpyArray, SafeTensors, models};
use aneforge_mil::{Array, DType};
use aneforge_runtime::ane::{Ane, AneOptions, AneRoute, CachePlace, Source};
use aneforge_runtime::{Device, Program, open};
use aneforge_testkit::fake;
use common::{cosine, folder};
use std::path::Path;
use std::sync::Arc;

/// Every route, under the rules of one source and under those that no source speaks against.
const WAYS: [(AneRoute, &str, &str); 4] = [
    (AneRoute::E5rt, "m1", "strict"),
    (AneRoute::E5rt, "m5", "agreed"),
    (AneRoute::InMemory, "m1", "strict"),
    (AneRoute::InMemory, "m5", "agreed"),
];

/// The engine that the stand-in is after these settings.
fn engine(route: AneRoute, chip: &str, profile: &str, cache: &Path) -> Ane {
    fake::control(&serde_json::json!({ "reset": true }));
    fake::set(serde_json::json!({ "chip": chip, "profile": profile }));
    let cache = CachePlace::Folder(cache.to_path_buf());
    let options = AneOptions { source: Source::Library(fake::library()), route, cache, ..AneOptions::default() };
    Ane::open(options).unwrap_or_else(|error| panic!("{error}"))
}

/// Loads a bundle on both devices, runs both once and gives the first output after comparing all bits.
fn compared(engine: &Ane, chip: &str, bundle: &Path, image: Option<HostArray>) -> Vec<f32> {
    let program = Arc::new(Program::open(bundle).unwrap());
    let own = engine.load(&program).unwrap_or_else(|error| panic!("{} of {chip}: {error}", engine.name()));
    let emulated = open(&format!("emulator:{chip}")).unwrap().load(&program).unwrap();
    let drawn = |ty: &TensorType, seed| HostArray::from_array(&Array::seeded(ty.clone(), seed, (-1.0, 1.0))).unwrap();
    let inputs: Vec<HostArray> = match image {
        Some(image) => vec![image],
        // Words are drawn; every token of the mask is there.
        None => own
            .inputs()
            .iter()
            .zip(1..)
            .map(|(port, seed)| match port.name.contains("mask") {
                true => HostArray::fp16_from_f32(port.ty.shape.clone(), &vec![1.0; port.ty.count()]).unwrap(),
                false => drawn(&port.ty, seed),
            })
            .collect(),
    };
    let inputs: Vec<&HostArray> = inputs.iter().collect();
    let (got, wanted) = (own.run(&inputs).unwrap(), emulated.run(&inputs).unwrap());
    assert!(got.iter().map(HostArray::bytes).eq(wanted.iter().map(HostArray::bytes)), "{} of {chip}: other bits", engine.name());
    assert_eq!(fake::counters()["violations"], serde_json::json!([]), "{} of {chip}", engine.name());
    let first = got[0].to_array().data;
    assert!(first.iter().any(|&value| value != 0.0) && first.iter().all(|value| value.is_finite()));
    first.iter().map(|&value| value as f32).collect()
}

#[test]
fn minilm_through_every_route_is_the_emulators() {
    let Some(model) = folder("ANEFORGE_MINILM") else { return };
    for (route, chip, profile) in WAYS {
        let cache = tempfile::tempdir().unwrap();
        let engine = engine(route, chip, profile, cache.path());
        let options =
            EmbedOptions { target: Some(engine.target()), cache: Some(cache.path().join("bundles")), ..EmbedOptions::default() };
        let embedder = Embedder::open(&model, open("null").unwrap(), options).unwrap();
        compared(&engine, chip, &embedder.bundle(16).unwrap(), None);
    }
}

#[test]
fn resnet18_through_every_route_is_the_emulators_and_near_torchvision() {
    let Some(fixtures) = folder("ANEFORGE_FIXTURES").map(|fixtures| fixtures.join("torchvision")) else { return };
    let read = |name: &str| NpyArray::read(fixtures.join(name)).unwrap();
    let (image, wanted) = (read("input_0.npy"), read("resnet18_logits_0.npy").to_f32());
    let image = HostArray::fp16_from_f32(image.ty.shape.clone(), &image.to_f32()).unwrap();
    assert_eq!(image.ty().dtype, DType::Fp16);
    let weights = SafeTensors::open(fixtures.join("resnet18.safetensors")).unwrap();
    let model = models::image_classifier(&weights).unwrap();
    for (route, chip, profile) in WAYS {
        let cache = tempfile::tempdir().unwrap();
        let engine = engine(route, chip, profile, cache.path());
        let options = CompileOptions { target: engine.target(), ..CompileOptions::default() };
        let bundle = cache.path().join("bundle");
        compile(&model.named_outputs(), &options).unwrap().write(&bundle).unwrap();
        let logits = compared(&engine, chip, &bundle, Some(image.clone()));
        let near = cosine(&logits, &wanted);
        println!("{chip} {profile} {route:?}: cosine {near:.6}");
        assert!(near > 0.99, "{chip} {profile} {route:?}: {near}");
    }
}
