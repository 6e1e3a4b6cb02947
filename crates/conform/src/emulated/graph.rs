//! The workloads' programs as tensor graphs.

use std::sync::Arc;

use aneforge_core::{DType, Graph, Heads, Tensor, Weight, WeightError, Window, mha};

use crate::case::{Affine, EncoderBlock, HalfTensor, Program, Projection, RowOperation};

/// What the published norms add to a variance or mean square.
const EPSILON: f64 = 1e-5;

/// The program's result. Faults of the graph travel in the tensor and come out when it is compiled.
///
/// # Errors
/// [`WeightError`] where a constant does not fill its shape.
pub(super) fn build(program: &Program, inputs: &[HalfTensor]) -> Result<Tensor, WeightError> {
    let graph = Graph::new();
    let ports: Vec<Tensor> =
        inputs.iter().enumerate().map(|(index, input)| graph.input(&format!("x{index}"), DType::Fp16, &input.shape)).collect();
    let x = &ports[0];
    Ok(match program {
        Program::Linear { weights } => x.linear(&constant(&graph, weights)?, None),
        Program::Convolutions { layers, relu } => convolutions(&graph, x, layers, *relu)?,
        Program::Jacobi { weights, iterations } => {
            let weights = constant(&graph, weights)?;
            (0..*iterations).fold(x.clone(), |x, _| ports[1].sub(&x.linear(&weights, None)).mul(&ports[2]))
        }
        Program::Row { operation, gain, bias } => {
            let optional = |tensor: &Option<HalfTensor>| tensor.as_ref().map(|tensor| constant(&graph, tensor)).transpose();
            let (gain, bias) = (optional(gain)?, optional(bias)?);
            match operation {
                RowOperation::Relu => x.relu(),
                RowOperation::Gelu => x.gelu("EXACT"),
                RowOperation::Sum => x.reduce_sum(-1, true),
                RowOperation::Softmax => x.softmax(-1),
                RowOperation::LayerNorm => x.layer_norm(-1, gain.as_ref(), bias.as_ref(), EPSILON),
                RowOperation::RmsNorm => x.rms_norm(-1, gain.as_ref(), EPSILON),
            }
        }
        Program::Attention { projections, heads } => attention(&graph, x, projections, *heads)?,
        Program::Encoder(block) => encoder(&graph, x, block)?,
        Program::Classifier { layers, weights } => {
            let maps = convolutions(&graph, x, layers, true)?;
            maps.reduce_mean([2, 3], false).linear(&constant(&graph, weights)?, None)
        }
        Program::GroupNorm { groups, affine } => {
            let (gain, bias) = pair(&graph, affine)?;
            x.group_norm(*groups as i64, Some(&gain), Some(&bias), EPSILON)
        }
    })
}

fn encoder(graph: &Graph, x: &Tensor, block: &EncoderBlock) -> Result<Tensor, WeightError> {
    let [before_attention, before_mlp] = &block.norms;
    let [widen, narrow] = &block.mlp;
    let norm = |x: &Tensor, affine: &Affine| {
        let (gain, bias) = pair(graph, affine)?;
        Ok::<Tensor, WeightError>(x.layer_norm(-1, Some(&gain), Some(&bias), EPSILON))
    };
    let project = |x: &Tensor, projection: &Projection| {
        Ok::<Tensor, WeightError>(x.linear(&constant(graph, &projection.weights)?, Some(&constant(graph, &projection.bias)?)))
    };
    let x = x.add(&attention(graph, &norm(x, before_attention)?, &block.projections, 12)?);
    let inner = project(&norm(&x, before_mlp)?, widen)?.gelu("EXACT");
    Ok(x.add(&project(&inner, narrow)?))
}

fn pair(graph: &Graph, affine: &Affine) -> Result<(Tensor, Tensor), WeightError> {
    Ok((constant(graph, &affine.gain)?, constant(graph, &affine.bias)?))
}

fn convolutions(graph: &Graph, x: &Tensor, layers: &[Arc<HalfTensor>], relu: bool) -> Result<Tensor, WeightError> {
    let window = Window::default().padding(1);
    let mut result = x.clone();
    let mut last: Option<(&Arc<HalfTensor>, Tensor)> = None;
    for layer in layers {
        let kernels = match &last {
            Some((held, kernels)) if Arc::ptr_eq(held, layer) => kernels.clone(),
            _ => constant(graph, layer)?,
        };
        result = result.conv(&kernels, None, &window);
        if relu {
            result = result.relu();
        }
        last = Some((layer, kernels));
    }
    Ok(result)
}

fn attention(graph: &Graph, x: &Tensor, projections: &[Projection], heads: usize) -> Result<Tensor, WeightError> {
    let tensors: Vec<(Tensor, Tensor)> = projections
        .iter()
        .map(|projection| Ok((constant(graph, &projection.weights)?, constant(graph, &projection.bias)?)))
        .collect::<Result<_, WeightError>>()?;
    let pair = |index: usize| (&tensors[index].0, Some(&tensors[index].1));
    Ok(mha(x, x, &Heads { query: pair(0), key: pair(1), value: pair(2), output: pair(3), heads }, None))
}

fn constant(graph: &Graph, tensor: &HalfTensor) -> Result<Tensor, WeightError> {
    Ok(graph.weight(Weight::from_fp16(tensor.shape.clone(), &tensor.values)?))
}
