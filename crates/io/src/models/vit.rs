//! Vision transformers in torchvision's key layout: pre-norm encoder layers over image patches and a class token.

use super::layers;
use super::resnet::{IMAGE, LOGITS};
use super::{Model, ModelError};
use crate::{IoError, Loader, SafeTensors};
use aneforge_core::{DType, Graph, Tensor, Window, concat};
use aneforge_mil::Weight;

/// torchvision's choice for all its vision transformers.
const EPSILON: f64 = 1e-6;
/// Features per attention head in every published size (B/16, B/32, L/16, L/32); the file does not say.
const HEAD_WIDTH: usize = 64;
const CHANNELS: usize = 3;

/// Extents that the file's tensors tell.
#[derive(Clone, Copy)]
struct Sizes {
    width: usize,
    patch: usize,
    /// Patches along a side.
    grid: usize,
    inner: usize,
    layers: usize,
    classes: usize,
}

/// Builds the network whose sizes the file's tensors tell. Input [`IMAGE`], output [`LOGITS`].
///
/// # Errors
/// [`ModelError`] that lists all tensors that are missing, or names the one that has another shape.
pub fn build(graph: &Graph, weights: &SafeTensors) -> Result<Model, ModelError> {
    let sizes = Sizes::read(weights)?;
    let Sizes { width, patch, grid, layers: count, .. } = sizes;
    let mut loader = Loader::new(weights);
    let image = graph.input(IMAGE, DType::Fp16, &[1, CHANNELS, grid * patch, grid * patch]);
    let patches = patches(&mut loader, &image, &sizes)?;
    let class = graph.weight(loader.weight("class_token", &[1, 1, width])?);
    let tokens = grid * grid + 1;
    let places = graph.weight(loader.weight("encoder.pos_embedding", &[1, tokens, width])?);
    let mut x = concat(&[class, patches], 1) + places;
    for index in 0..count {
        x = layer(&mut loader, &x, &sizes, &format!("encoder.layers.encoder_layer_{index}"))?;
    }
    // Normalising works token by token, so the class token alone is enough.
    let class = x.slice_by_size(&[0, 0, 0], &[1, 1, width as i64]).reshape(&[1, width as i64]);
    let class = layers::layer_norm(&mut loader, &class, "encoder.ln", width, EPSILON)?;
    let logits = layers::linear(&mut loader, &class, "heads.head", width, sizes.classes)?;
    loader.finish()?;
    Model::new(format!("vit, {count} layers of width {width}, patches of {patch}"), vec![(LOGITS, logits)])
}

impl Sizes {
    fn read(weights: &SafeTensors) -> Result<Self, IoError> {
        let shape = |name: &str, rank: usize| match weights.info(name).map(|info| info.ty.shape.clone()) {
            None => Err(IoError::Missing { path: weights.path().to_path_buf(), missing: vec![name.to_string()] }),
            Some(shape) if shape.len() != rank || shape.contains(&0) => {
                Err(IoError::tensor(weights.path(), name, format!("has shape {shape:?}, expected {rank} axes, none empty")))
            }
            Some(shape) => Ok(shape),
        };
        let projection = shape("conv_proj.weight", 4)?;
        let places = shape("encoder.pos_embedding", 3)?;
        let inner = shape("encoder.layers.encoder_layer_0.mlp.0.weight", 2)?[0];
        let classes = shape("heads.head.weight", 2)?[0];
        let layer = |index: &usize| weights.info(&format!("encoder.layers.encoder_layer_{index}.ln_1.weight")).is_some();
        let (width, patch) = (projection[0], projection[3]);
        let grid = (places[1] - 1).isqrt();
        if grid == 0 || grid * grid + 1 != places[1] {
            let problem = format!("has shape {places:?}, expected a square number of patches and one class token");
            return Err(IoError::tensor(weights.path(), "encoder.pos_embedding", problem));
        }
        if !width.is_multiple_of(HEAD_WIDTH) {
            let problem = format!("has {width} features, expected a multiple of {HEAD_WIDTH} (one head)");
            return Err(IoError::tensor(weights.path(), "conv_proj.weight", problem));
        }
        Ok(Self { width, patch, grid, inner, layers: (0..).take_while(layer).count(), classes })
    }
}

/// Patch embeddings `[1, grid * grid, width]`.
///
/// A convolution whose stride equals its kernel does not compile for the engine; the same sum as a 1x1 convolution over
/// `space_to_depth` does (aneforge 0.4.0).
fn patches(loader: &mut Loader<'_>, image: &Tensor, sizes: &Sizes) -> Result<Tensor, IoError> {
    let Sizes { width, patch, grid, .. } = *sizes;
    let area = patch * patch;
    let stored = [width, CHANNELS, patch, patch];
    let parts: [(&str, &[usize]); 1] = [("conv_proj.weight", &stored)];
    // space_to_depth puts a pixel's channels side by side, pixel after pixel; the stored kernel has whole channels in a row.
    let weight: Weight = loader.computed(&[width, CHANNELS * area, 1, 1], &parts, move |parts, sink| {
        for output in 0..width {
            for pixel in 0..area {
                for channel in 0..CHANNELS {
                    sink(parts[0].get((output * CHANNELS + channel) * area + pixel))?;
                }
            }
        }
        Ok(())
    })?;
    let weight = image.graph().weight(weight);
    let bias = image.graph().weight(loader.weight("conv_proj.bias", &[width])?);
    let embedded = image.space_to_depth(patch as i64).conv(&weight, Some(&bias), &Window::default());
    Ok(embedded.reshape(&[1, width as i64, (grid * grid) as i64]).transpose(&[0, 2, 1]))
}

/// Attention and feed-forward part, each over its normalised input and added to it.
fn layer(loader: &mut Loader<'_>, x: &Tensor, sizes: &Sizes, name: &str) -> Result<Tensor, ModelError> {
    let Sizes { width, inner, .. } = *sizes;
    let normal = layers::layer_norm(loader, x, &format!("{name}.ln_1"), width, EPSILON)?;
    let [query, key, value] = projections(loader, &normal, width, &format!("{name}.self_attention"))?;
    let mixed = layers::attention(width / HEAD_WIDTH, [&query, &key, &value], None)?;
    let x = x + &layers::linear(loader, &mixed, &format!("{name}.self_attention.out_proj"), width, width)?;
    let normal = layers::layer_norm(loader, &x, &format!("{name}.ln_2"), width, EPSILON)?;
    let grown = layers::linear(loader, &normal, &format!("{name}.mlp.0"), width, inner)?.gelu("EXACT");
    Ok(&x + &layers::linear(loader, &grown, &format!("{name}.mlp.3"), inner, width)?)
}

/// Query, key and value out of the one matrix and bias that hold all three.
fn projections(loader: &mut Loader<'_>, x: &Tensor, width: usize, name: &str) -> Result<[Tensor; 3], IoError> {
    let (matrix, bias) = (format!("{name}.in_proj_weight"), format!("{name}.in_proj_bias"));
    let mut part = |index: usize| -> Result<Tensor, IoError> {
        let weight = loader.rows(&matrix, &[3 * width, width], index * width, width)?;
        let bias = loader.rows(&bias, &[3 * width], index * width, width)?;
        Ok(x.linear(&x.graph().weight(weight), Some(&x.graph().weight(bias))))
    };
    Ok([part(0)?, part(1)?, part(2)?])
}
