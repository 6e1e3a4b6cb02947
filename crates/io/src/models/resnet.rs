//! The ResNet family in torchvision's key layout, batch norms folded into the convolutions before them.

use super::{Model, ModelError};
use crate::{IoError, Loader, SafeTensors, Values};
use aneforge_core::{DType, Graph, Tensor, Window};
use aneforge_mil::{Weight, WeightError};

/// Name of the program's input: fp16 `[1, 3, 224, 224]`, normalised as the weights expect.
pub const IMAGE: &str = "image";
/// Name of the program's output: fp16 `[1, classes]`.
pub const LOGITS: &str = "logits";

/// Height and width of the image.
const SIDE: usize = 224;
/// torchvision's `BatchNorm2d` default, which its ResNets keep.
const EPSILON: f64 = 1e-5;
/// Stages after the stem; each but the first halves height and width.
const STAGES: usize = 4;

/// Builds the network that the file's keys describe: 18 and 34 layers with basic blocks, 50 and more with bottlenecks.
///
/// # Errors
/// [`ModelError`] that lists all tensors that are missing, or names the one that has another shape.
pub fn build(graph: &Graph, weights: &SafeTensors) -> Result<Model, ModelError> {
    let bottleneck = weights.info("layer1.0.conv3.weight").is_some();
    let mut net = Net { weights, loader: Loader::new(weights), bottleneck };
    let image = graph.input(IMAGE, DType::Fp16, &[1, 3, SIDE, SIDE]);
    let mut x = net.convolution(&image, "conv1", "bn1", 2)?.relu();
    x = x.max_pool(&Window::square(3).stride(2).padding(1));
    let mut blocks = Vec::new();
    for stage in 1..=STAGES {
        let count = (0..).take_while(|block| weights.info(&format!("layer{stage}.{block}.conv1.weight")).is_some()).count();
        for block in 0..count.max(1) {
            let stride = if stage > 1 && block == 0 { 2 } else { 1 };
            x = net.block(&x, &format!("layer{stage}.{block}"), stride)?;
        }
        blocks.push(count);
    }
    let features = x.check()?.shape()?[1];
    // Either tells; where both are missing, the loader says so.
    let rows = |name: &str| weights.info(name).and_then(|info| info.ty.shape.first().copied());
    let classes = rows("fc.weight").or_else(|| rows("fc.bias")).unwrap_or(1);
    let pooled = x.reduce_mean([2, 3], true).reshape(&[1, features as i64]);
    let logits = super::layers::linear(&mut net.loader, &pooled, "fc", features, classes)?;
    net.loader.finish()?;
    Model::new(format!("resnet {blocks:?}"), vec![(LOGITS, logits)])
}

struct Net<'a> {
    weights: &'a SafeTensors,
    loader: Loader<'a>,
    /// Blocks of three convolutions, not two.
    bottleneck: bool,
}

impl Net<'_> {
    /// Two 3x3 convolutions, or 1x1, 3x3, 1x1, around a shortcut.
    fn block(&mut self, x: &Tensor, name: &str, stride: usize) -> Result<Tensor, ModelError> {
        let convolution = |net: &mut Self, x: &Tensor, index: usize, stride: usize| {
            net.convolution(x, &format!("{name}.conv{index}"), &format!("{name}.bn{index}"), stride)
        };
        let inner = if self.bottleneck {
            // torchvision strides the 3x3 convolution, not the 1x1 before it.
            let narrow = convolution(self, x, 1, 1)?.relu();
            let mixed = convolution(self, &narrow, 2, stride)?.relu();
            convolution(self, &mixed, 3, 1)?
        } else {
            let first = convolution(self, x, 1, stride)?.relu();
            convolution(self, &first, 2, 1)?
        };
        let shortcut = if inner.shape()? == x.shape()? {
            x.clone()
        } else {
            self.convolution(x, &format!("{name}.downsample.0"), &format!("{name}.downsample.1"), stride)?
        };
        Ok((&inner + &shortcut).relu())
    }

    /// A convolution without a bias of its own and the batch norm behind it, as one convolution with a bias.
    fn convolution(&mut self, x: &Tensor, name: &str, norm: &str, stride: usize) -> Result<Tensor, ModelError> {
        let from = x.shape()?[1];
        let key = format!("{name}.weight");
        let (to, kernel) = match self.weights.info(&key).map(|info| info.ty.shape.as_slice()) {
            Some(&[to, _, height, _]) => (to, height),
            // Missing or of another rank: the loader says so; the extents only keep the graph legal until then.
            _ => (self.weights.info(&format!("{norm}.weight")).map_or(from, |info| info.ty.count()), 1),
        };
        let shape = [to, from, kernel, kernel];
        let weight = self.folded(&shape, &key, &shape, norm, to)?;
        let bias = self.folded_bias(norm, to)?;
        let (weight, bias) = (x.graph().weight(weight), x.graph().weight(bias));
        let window = Window::default().stride(stride as i64).padding(kernel as i64 / 2);
        Ok(x.conv(&weight, Some(&bias), &window))
    }

    fn folded(&mut self, shape: &[usize], key: &str, stored: &[usize], norm: &str, channels: usize) -> Result<Weight, IoError> {
        let (gamma, variance) = (format!("{norm}.weight"), format!("{norm}.running_var"));
        let per_channel = [channels];
        let parts: [(&str, &[usize]); 3] = [(key, stored), (&gamma, &per_channel), (&variance, &per_channel)];
        let inner: usize = shape[1..].iter().product();
        self.loader.computed(shape, &parts, move |parts, sink| scale_rows(&parts[0], &parts[1], &parts[2], inner, sink))
    }

    fn folded_bias(&mut self, norm: &str, channels: usize) -> Result<Weight, IoError> {
        let names = ["weight", "bias", "running_mean", "running_var"].map(|part| format!("{norm}.{part}"));
        let per_channel = [channels];
        let parts: Vec<(&str, &[usize])> = names.iter().map(|name| (name.as_str(), &per_channel[..])).collect();
        self.loader.computed(&per_channel, &parts, move |parts, sink| {
            let [gamma, beta, mean, variance] = parts else { return Ok(()) };
            (0..channels).try_for_each(|channel| {
                let factor = gamma.get(channel) / (variance.get(channel) + EPSILON).sqrt();
                sink(beta.get(channel) - mean.get(channel) * factor)
            })
        })
    }
}

/// Each output channel's weights times gamma / sqrt(variance + epsilon), in f64 with one rounding at the end.
fn scale_rows(
    weight: &Values,
    gamma: &Values,
    variance: &Values,
    inner: usize,
    sink: &mut dyn FnMut(f64) -> Result<(), WeightError>,
) -> Result<(), WeightError> {
    for channel in 0..gamma.len() {
        let factor = gamma.get(channel) / (variance.get(channel) + EPSILON).sqrt();
        for index in channel * inner..(channel + 1) * inner {
            sink(weight.get(index) * factor)?;
        }
    }
    Ok(())
}
