//! The work of a program: each operation of a body as what it costs.

use crate::work::{Format, Kind, Operation as Work1, Work};
use aneforge_mil::{Body, Constant, DType, Operand, Operation, ValueId};

/// An operation of a body and what it asks of the engine.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its place in the body.
    pub index: usize,
    /// The operator.
    pub op: &'static str,
    /// SSA name of its first result.
    pub name: String,
    /// The work, of attention in one operation three pieces.
    pub work: Vec<Work1>,
}

/// Every operation that takes time, in order.
pub fn items(body: &Body) -> Vec<Item> {
    let constant = constants(body);
    let counter = Counter { body, constant: &constant };
    let mut items = Vec::new();
    for (index, operation) in body.operations.iter().enumerate() {
        let Some(&output) = operation.outputs.first() else { continue };
        // What depends on constants alone is computed before the engine sees the program.
        if constant[output.index()] {
            continue;
        }
        let work = counter.work(operation, output);
        if work.iter().all(|work| work.kind == Kind::Free) {
            continue;
        }
        items.push(Item { index, op: operation.op.name, name: body.value(output).name.clone(), work });
    }
    items
}

/// A call of the program: `dispatches` of them run one after the other.
pub fn work(body: &Body, items: &[Item], dispatches: usize) -> Work {
    let elements = |ids: &mut dyn Iterator<Item = ValueId>| ids.map(|id| body.ty(id).count() as f64).sum();
    Work {
        dispatches: dispatches as f64,
        ..Work::new(
            elements(&mut body.inputs.iter().copied()),
            elements(&mut body.outputs.iter().map(|output| output.value)),
            items.iter().flat_map(|item| item.work.iter().cloned()).collect(),
        )
    }
}

/// Which values depend on nothing but constants.
fn constants(body: &Body) -> Vec<bool> {
    let mut constant: Vec<bool> =
        body.values.iter().map(|value| matches!(value.kind, aneforge_mil::ValueKind::Constant(_))).collect();
    for operation in &body.operations {
        let all = operation.arguments.iter().flat_map(Operand::values).all(|id| constant[id.index()]);
        for output in &operation.outputs {
            constant[output.index()] = all;
        }
    }
    constant
}

struct Counter<'a> {
    body: &'a Body,
    constant: &'a [bool],
}

impl Counter<'_> {
    fn work(&self, operation: &Operation, output: ValueId) -> Vec<Work1> {
        let results = self.count(output);
        let first = operation.arguments.iter().flat_map(Operand::values).next().map_or(results, |&id| self.count(id));
        let vector = |kind| vec![Work1::vector(kind, first.max(results))];
        match operation.op.name {
            "linear" | "matmul" => self.product(operation, output).into_iter().collect(),
            "conv" | "conv_transpose" => self.convolution(operation, output).into_iter().collect(),
            "scaled_dot_product_attention" => self.attention(operation, output),
            "softmax" => vector(Kind::Softmax),
            "layer_norm" => vector(Kind::LayerNorm),
            "instance_norm" | "local_response_norm" => vector(Kind::GroupNorm),
            "l2_norm" => vector(Kind::L2Norm),
            // A normalisation may stand written out; its cost is that of the whole, counted at the reduction that it is built on.
            name if name.starts_with("reduce_") => vector(self.written_out(output).unwrap_or(Kind::Reduction)),
            "transpose" | "concat" | "split" | "stack" | "tile" | "pad" | "gather" | "gather_nd" | "gather_along_axis"
            | "reverse" | "slice_by_index" | "slice_by_size" | "slice_update" | "pixel_shuffle" | "pixel_unshuffle"
            | "space_to_depth" | "depth_to_space" | "space_to_batch" | "batch_to_space" | "scatter" | "scatter_nd"
            | "scatter_along_axis" => vec![Work1::vector(Kind::Movement, results)],
            "reshape" | "expand_dims" | "squeeze" | "flatten2d" | "identity" | "shape" | "fill" | "range_1d" => vector(Kind::Free),
            _ if operation.op.expands_weight() => vector(Kind::Free),
            _ => vector(Kind::Elementwise),
        }
    }

    fn count(&self, id: ValueId) -> f64 {
        self.body.ty(id).count() as f64
    }

    fn operand(&self, operation: &Operation, port: &str) -> Option<ValueId> {
        let index = operation.op.port(port)?;
        operation.arguments.get(index)?.values().first().copied()
    }

    fn flag(&self, operation: &Operation, port: &str) -> bool {
        let constant = self.operand(operation, port).and_then(|id| self.body.constant(id));
        matches!(constant, Some(Constant::Values(values)) if values.first().is_some_and(|value| *value != 0.0))
    }

    fn product(&self, operation: &Operation, output: ValueId) -> Option<Work1> {
        let x = self.operand(operation, "x")?;
        let y = self.operand(operation, "y").or_else(|| self.operand(operation, "weight"))?;
        let shape = &self.body.ty(x).shape;
        let back = if self.flag(operation, "transpose_x") { 2 } else { 1 };
        let inner = *shape.get(shape.len().checked_sub(back)?)? as f64;
        Some(self.multiplied(Kind::Product, x, y, output, self.count(output) * inner))
    }

    fn convolution(&self, operation: &Operation, output: ValueId) -> Option<Work1> {
        let (x, weight) = (self.operand(operation, "x")?, self.operand(operation, "weight")?);
        let kernel = &self.body.ty(weight).shape;
        let volume: f64 = kernel.iter().skip(2).map(|&extent| extent as f64).product();
        let channels = *kernel.get(1)? as f64;
        // Of a transposed convolution every input element meets the kernel, of the other every output element.
        let places = if operation.op.name == "conv" { self.count(output) } else { self.count(x) };
        let kind = if volume > 1.0 { Kind::Convolution } else { Kind::Product };
        Some(self.multiplied(kind, x, weight, output, places * channels * volume))
    }

    fn multiplied(&self, kind: Kind, x: ValueId, y: ValueId, output: ValueId, multiplications: f64) -> Work1 {
        let weight = [x, y].into_iter().find(|id| self.constant[id.index()]);
        let moved: f64 = [x, y].into_iter().filter(|id| Some(*id) != weight).map(|id| 2.0 * self.count(id)).sum();
        Work1 {
            kind,
            count: 1.0,
            flops: 2.0 * multiplications,
            weight_bytes: weight.map_or(0.0, |id| 2.0 * self.count(id)),
            format: weight.map_or(Format::Fp16, |id| self.format(id)),
            input_bytes: moved,
            output_bytes: 2.0 * self.count(output),
            elements: 0.0,
        }
    }

    fn attention(&self, operation: &Operation, output: ValueId) -> Vec<Work1> {
        let ports = ["query", "key"].map(|port| self.operand(operation, port));
        let [Some(query), Some(key)] = ports else { return Vec::new() };
        let (query_shape, key_shape) = (&self.body.ty(query).shape, &self.body.ty(key).shape);
        let [.., rows, width] = query_shape.as_slice() else { return Vec::new() };
        let [.., keys, _] = key_shape.as_slice() else { return Vec::new() };
        let (rows, width, keys) = (*rows as f64, *width as f64, *keys as f64);
        let heads = self.count(query) / (rows * width).max(1.0);
        let values = self.count(output) / (heads * rows).max(1.0);
        vec![
            Work1::product(heads, rows, width, keys),
            Work1::vector(Kind::Softmax, heads * rows * keys),
            Work1::product(heads, rows, keys, values),
        ]
    }

    /// How a weight is stored, told by the operation that unpacks it.
    fn format(&self, weight: ValueId) -> Format {
        let Some(operation) = self.body.producer(weight) else { return Format::Fp16 };
        let dtype = |port: &str| self.operand(operation, port).map(|id| self.body.ty(id).dtype);
        let is_small = |dtype: Option<DType>| matches!(dtype, Some(DType::Int4 | DType::UInt4));
        match operation.op.name {
            "constexpr_affine_dequantize" => Format::Int8,
            "constexpr_sparse_to_dense" => Format::Sparse,
            "constexpr_blockwise_shift_scale" if is_small(dtype("data")) => Format::Int4,
            "constexpr_blockwise_shift_scale" => Format::Int8,
            "constexpr_lut_to_dense" => {
                let entries = self.operand(operation, "lut").and_then(|id| {
                    let shape = &self.body.ty(id).shape;
                    shape.get(shape.len().checked_sub(2)?).copied()
                });
                if entries.is_some_and(|entries| entries > 16) { Format::Int8 } else { Format::Int4 }
            }
            // Shapes may change between the unpacking and the use.
            "reshape" | "transpose" | "expand_dims" | "squeeze" => {
                self.operand(operation, "x").map_or(Format::Fp16, |id| self.format(id))
            }
            _ => Format::Fp16,
        }
    }

    /// The normalisation that a reduction is the core of: a mean of squares whose root divides.
    fn written_out(&self, reduced: ValueId) -> Option<Kind> {
        let reduction = self.body.producer(reduced)?;
        let source = self.operand(reduction, "x")?;
        let squares = match self.body.producer(source) {
            Some(square) => match square.op.name {
                "square" => self.operand(square, "x"),
                "mul" => self.operand(square, "x").filter(|x| self.operand(square, "y") == Some(*x)),
                _ => None,
            },
            None => None,
        };
        let is_square = matches!(reduction.op.name, "reduce_sum_square" | "reduce_l2_norm");
        let x = squares.or(Some(source).filter(|_| is_square))?;
        if !self.leads_to_root(reduced) {
            return None;
        }
        let centred = self.body.producer(x).filter(|operation| operation.op.name == "sub");
        let mean = centred.and_then(|sub| self.operand(sub, "y")).and_then(|id| self.body.producer(id));
        let has_mean = mean.is_some_and(|mean| mean.op.name.starts_with("reduce_"));
        Some(if has_mean { Kind::LayerNorm } else { Kind::RmsNorm })
    }

    /// Whether a root is taken of a value, perhaps after numbers were added and multiplied.
    fn leads_to_root(&self, value: ValueId) -> bool {
        let mut at = value;
        for _ in 0..4 {
            let reads = |operation: &&Operation| operation.arguments.iter().flat_map(Operand::values).any(|id| *id == at);
            let Some(reader) = self.body.operations.iter().find(reads) else { return false };
            match (reader.op.name, reader.outputs.first()) {
                ("rsqrt" | "sqrt" | "pow", _) => return true,
                ("add" | "mul" | "maximum" | "real_div", Some(&next)) => at = next,
                _ => return false,
            }
        }
        false
    }
}
