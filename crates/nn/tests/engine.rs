//! Training on the engine's device, with the library that stands in for Apple's frameworks: the same steps as on the emulator of its
//! chip, bit for bit, by both routes.
#![allow(clippy::unwrap_used)]

mod common;

use aneforge_core::Tensor;
use aneforge_nn::{Linear, Optimizer, Outcome, Parameters, Pass, Recipe, ResidentTrainer, StepReport, Training, loss};
use aneforge_runtime::Device;
use aneforge_runtime::ane::{Ane, AneOptions, AneRoute, CachePlace, Source};
use aneforge_testkit::fake;
use common::{BATCH, CLASSES, Data, Net, SIDE, ports, run, sampler};
use serde_json::json;
use std::sync::Arc;

const STEPS: usize = 4;

/// Dense layers.
struct Dense(Linear, Linear);

impl Dense {
    fn new(parameters: &mut Parameters) -> Self {
        let mut root = parameters.root();
        let first = Linear::new(&mut root.scope("first"), SIDE * SIDE, 24, true).unwrap();
        Self(first, Linear::new(&mut root.scope("second"), 24, CLASSES, true).unwrap())
    }

    fn logits(&self, pass: &Pass, images: &Tensor) -> Tensor {
        self.1.apply(pass, &self.0.apply(pass, &images.reshape(&[BATCH as i64, -1])).relu())
    }
}

fn state(trainer: &mut ResidentTrainer) -> Vec<(String, Vec<u8>)> {
    let names: Vec<String> = trainer.slot_names().map(str::to_string).collect();
    names.into_iter().map(|name| (name.clone(), trainer.slot(&name).unwrap().into_bytes())).collect()
}

/// Reports, all state, and what the trained weights answer on the device.
type Trained = (Vec<StepReport>, Vec<(String, Vec<u8>)>, Vec<u8>);

type Logits<'a> = &'a dyn Fn(&Pass, &Tensor) -> Tensor;

fn train(training: &Training<'_>, logits: Logits<'_>) -> Trained {
    let mut trainer =
        training.resident().unwrap_or_else(|error| panic!("{error}\n{}", fake::control(&json!({ "get": "diagnostics" }))));
    let set_up = trainer.traffic().state_bytes;
    let reports = run(&mut trainer, &Data::new(), &mut sampler(), STEPS);
    let forward = |pass: &Pass, inputs: &[Tensor]| vec![("logits".to_string(), logits(pass, &inputs[0]))];
    let mut evaluator = trainer.evaluator(training.parameters, &ports()[..1], &forward, false).unwrap();
    let places: Vec<usize> = (0..BATCH).collect();
    let logits = evaluator.run(&Data::new().batch(&places)[..1]).unwrap().remove(0).into_bytes();
    let traffic = trainer.traffic();
    assert_eq!((traffic.dispatches, traffic.state_bytes), (STEPS as u64, set_up), "one dispatch a step, no state on the host");
    (reports, state(&mut trainer), logits)
}

/// Trains on the engine by each route and on the emulator of its chip, and compares all that comes out.
fn equal_the_emulators(parameters: &Parameters, logits: Logits<'_>, routes: &[(&str, AneRoute)]) {
    let recipe = Recipe { clip: Some(1.0), ..Recipe::new(Optimizer::adam(), 0.01) };
    let model = |pass: &Pass, batch: &[Tensor]| Outcome::from(loss::cross_entropy(&logits(pass, &batch[0]), &batch[1], 0.0));
    for (chip, route) in routes.iter().copied() {
        fake::control(&json!({ "reset": true }));
        fake::set(json!({ "chip": chip }));
        let cache = tempfile::tempdir().unwrap();
        let cache = CachePlace::Folder(cache.path().to_path_buf());
        let options = AneOptions { source: Source::Library(fake::library()), cache, route, ..AneOptions::default() };
        let engine: Arc<dyn Device> = Arc::new(Ane::open(options).unwrap());
        let (recipe, ports) = (&recipe, &ports());
        let training = Training { parameters, recipe, ports, model: &model, device: &engine, target: None };
        let ours = train(&training, logits);
        let emulator = aneforge_runtime::open(&format!("emulator:{chip}")).unwrap();
        let emulated = train(&Training { device: &emulator, target: Some(engine.target()), ..training }, logits);
        assert!(ours.0.iter().all(|report| report.kept), "{chip} {route:?}: {:?}", ours.0);
        assert_eq!(ours.0, emulated.0, "{chip} {route:?}: reports");
        for (ours, emulated) in ours.1.iter().zip(&emulated.1) {
            assert!(ours == emulated, "{chip} {route:?}: {} differs", ours.0);
        }
        assert_eq!(ours.2, emulated.2, "{chip} {route:?}: answers of the trained weights");
        assert_eq!(fake::counters()["violations"], json!([]));
    }
}

#[test]
fn steps_of_dense_layers_through_the_engines_routes_equal_the_emulators() {
    let mut parameters = Parameters::new(9);
    let net = Dense::new(&mut parameters);
    let routes = [("m1", AneRoute::E5rt), ("m5", AneRoute::E5rt), ("m1", AneRoute::InMemory)];
    equal_the_emulators(&parameters, &|pass, images| net.logits(pass, images), &routes);
}

/// Weights that come in at run time are convolved image by image, with batch norm and pooling and all their gradients. A model in
/// memory takes constant weights of convolutions alone.
#[test]
fn steps_of_convolutions_over_a_batch_through_e5rt_equal_the_emulators() {
    let mut parameters = Parameters::new(9);
    let net = Net::new(&mut parameters).unwrap();
    equal_the_emulators(&parameters, &|pass, images| net.logits(pass, images), &[("m1", AneRoute::E5rt), ("m5", AneRoute::E5rt)]);
}
