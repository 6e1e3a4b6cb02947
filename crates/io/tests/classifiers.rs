//! Which network a file's keys describe, and what is said of files that lack something: on networks a few channels wide.
#![cfg(feature = "safetensors")]
#![allow(clippy::unwrap_used)] // helper functions of tests

mod common;

use aneforge_io::{IoError, SafeTensors, models};
use common::tiny;

/// Tensors that tell which network it is, how deep or how wide: a file without one of these is taken for another.
const TELLING: [&str; 7] =
    ["conv1.weight", "layer1.0.conv3.weight", "conv_proj.weight", "pos_embedding", "mlp.0.weight", "ln_1.weight", "head.weight"];

type Tensors = Vec<(String, Vec<usize>)>;

fn convolution(all: &mut Tensors, name: &str, norm: &str, shape: [usize; 4]) {
    all.push((format!("{name}.weight"), shape.to_vec()));
    for part in ["weight", "bias", "running_mean", "running_var"] {
        all.push((format!("{norm}.{part}"), vec![shape[0]]));
    }
}

/// Four stages of one block each, with basic blocks or bottlenecks.
fn resnet(bottleneck: bool) -> Tensors {
    let mut all = Tensors::new();
    convolution(&mut all, "conv1", "bn1", [4, 3, 7, 7]);
    let mut from = 4;
    for stage in 1..=4 {
        let name = format!("layer{stage}.0");
        let part = |index: usize| (format!("{name}.conv{index}"), format!("{name}.bn{index}"));
        let shapes: &[[usize; 4]] =
            if bottleneck { &[[4, from, 1, 1], [4, 4, 3, 3], [16, 4, 1, 1]] } else { &[[8, from, 3, 3], [8, 8, 3, 3]] };
        for (index, shape) in shapes.iter().enumerate() {
            let (convolution_name, norm) = part(index + 1);
            convolution(&mut all, &convolution_name, &norm, *shape);
        }
        let to = shapes[shapes.len() - 1][0];
        convolution(&mut all, &format!("{name}.downsample.0"), &format!("{name}.downsample.1"), [to, from, 1, 1]);
        from = to;
    }
    all.push(("fc.weight".to_string(), vec![5, from]));
    all.push(("fc.bias".to_string(), vec![5]));
    all
}

/// One layer of width 64, patches of 16 on a 2 x 2 grid.
fn vit() -> Tensors {
    let mut all = Tensors::new();
    let mut add = |name: &str, shape: &[usize]| all.push((name.to_string(), shape.to_vec()));
    add("conv_proj.weight", &[64, 3, 16, 16]);
    add("conv_proj.bias", &[64]);
    add("class_token", &[1, 1, 64]);
    add("encoder.pos_embedding", &[1, 5, 64]);
    let layer = "encoder.layers.encoder_layer_0";
    add(&format!("{layer}.self_attention.in_proj_weight"), &[192, 64]);
    add(&format!("{layer}.self_attention.in_proj_bias"), &[192]);
    for (name, to, from) in [
        (format!("{layer}.self_attention.out_proj"), 64, 64),
        (format!("{layer}.mlp.0"), 128, 64),
        (format!("{layer}.mlp.3"), 64, 128),
    ] {
        add(&format!("{name}.weight"), &[to, from]);
        add(&format!("{name}.bias"), &[to]);
    }
    for name in [format!("{layer}.ln_1"), format!("{layer}.ln_2"), "encoder.ln".to_string()] {
        add(&format!("{name}.weight"), &[64]);
        add(&format!("{name}.bias"), &[64]);
    }
    add("heads.head.weight", &[7, 64]);
    add("heads.head.bias", &[7]);
    all
}

fn open(tensors: &Tensors) -> (tempfile::TempDir, SafeTensors) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, tiny::safetensors(tensors)).unwrap();
    let file = SafeTensors::open(path).unwrap();
    (folder, file)
}

#[test]
fn the_keys_say_which_network_it_is() {
    for (tensors, words, classes) in
        [(resnet(false), "resnet [1, 1, 1, 1]", 5), (resnet(true), "resnet", 5), (vit(), "vit, 1 layers", 7)]
    {
        let (_folder, file) = open(&tensors);
        let model = models::image_classifier(&file).unwrap();
        assert!(model.description.contains(words), "{}", model.description);
        assert_eq!(model.outputs[0].1.shape().unwrap(), [1, classes]);
    }
}

#[test]
fn every_missing_tensor_is_named_whichever_it_is() {
    for whole in [resnet(false), resnet(true), vit()] {
        for (gone, _) in whole.iter().filter(|(name, _)| !TELLING.iter().any(|end| name.ends_with(end))) {
            let (_folder, file) = open(&whole.iter().filter(|(name, _)| name != gone).cloned().collect());
            match models::image_classifier(&file).unwrap_err() {
                models::ModelError::Io(IoError::Missing { missing, .. }) => assert_eq!(&missing, &[gone.as_str()]),
                other => panic!("{gone}: {other}"),
            }
        }
    }
}

#[test]
fn other_files_are_refused_with_a_few_of_their_names() {
    let (_folder, file) = open(&vec![("transformer.wte.weight".to_string(), vec![2, 2])]);
    let error = models::image_classifier(&file).unwrap_err().to_string();
    assert!(error.contains("no model known here") && error.contains("transformer.wte.weight"), "{error}");
}
