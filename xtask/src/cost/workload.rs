//! What each workload of the benchmarks asks of a machine, as its scripts define it (PyPI aneforge 0.4.0, MIT).

use aneforge_cost::{Format, Kind, Operation, Values, Work};

/// All whole numbers in a text, in order.
fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// Storage of weights, by what the benchmarks call it. `auto` took four bits wherever its gate let it; the strict gate of
/// `int4_default` let none through and fell back to eight.
fn format(dtype: &str) -> Option<Format> {
    Some(match dtype {
        "fp16" => Format::Fp16,
        "int8" | "int8 weights" | "int4_default" => Format::Int8,
        "int4" | "int4_loose" | "int4_forced" | "auto" => Format::Int4,
        "sparse" => Format::Sparse,
        _ => return None,
    })
}

/// The work of a row; `None` where workload, shape or type is unknown.
pub fn work(workload: &str, shape: &str, dtype: &str) -> Option<Work> {
    let format = format(dtype)?;
    let sizes = numbers(shape);
    let starts = |prefix: &str| workload.starts_with(prefix);
    if let Some(operator) = workload.strip_prefix("costmodel ") {
        return single(operator, &sizes);
    }
    if ["GEMM square", "GEMV", "matmul weight-compress"].iter().any(|prefix| starts(prefix)) {
        let &[rows, inner, columns, _] = sizes.as_slice() else { return None };
        return Some(linear(rows, inner, columns, format));
    }
    if starts("GEMM ") {
        let &[rows, inner, columns] = sizes.as_slice() else { return None };
        return Some(linear(rows, inner, columns, format));
    }
    if starts("serving") || starts("encoder block") {
        return serving(workload, *sizes.first()?, format);
    }
    if starts("LLM decode") {
        return decode(&numbers(workload), *sizes.first()?, format);
    }
    named(workload, &sizes).or_else(|| operator(workload, &sizes)).or_else(|| model(workload, format))
}

fn linear(rows: f64, inner: f64, columns: f64, format: Format) -> Work {
    Work::new(rows * inner, rows * columns, vec![Operation::linear(rows, inner, columns, format)])
}

fn on(kind: Kind, elements: f64) -> Work {
    Work::new(elements, elements, vec![Operation::vector(kind, elements)])
}

/// Calibration runs of single operators on one M5 Pro.
fn single(operator: &str, sizes: &[f64]) -> Option<Work> {
    if operator.starts_with("matmul") {
        let &[rows, inner, _, columns] = sizes else { return None };
        return Some(linear(rows, inner, columns, Format::Fp16));
    }
    if operator.starts_with("conv") {
        let &[batch, channels, height, width, kernel, ..] = sizes else { return None };
        let elements = batch * channels * height * width;
        let convolution = Operation::convolution(batch, channels, channels, height * width, kernel);
        return Some(Work::new(elements, elements, vec![convolution]));
    }
    let elements: f64 = sizes.iter().filter(|_| !sizes.is_empty()).product();
    let name = operator.strip_prefix("fused: ")?.split(' ').next()?;
    // The name of l2_norm has a number of its own.
    let elements = if name == "l2_norm" { elements / 2.0 } else { elements };
    let kind = match name {
        "relu" | "gelu" | "sigmoid" | "max_pool" => Kind::Elementwise,
        "softmax" => Kind::Softmax,
        "l2_norm" => Kind::L2Norm,
        "rms_norm" => Kind::RmsNorm,
        "layer_norm" => Kind::LayerNorm,
        "group_norm" => Kind::GroupNorm,
        "pixel_shuffle" => Kind::Movement,
        _ => return None,
    };
    let out = if name == "max_pool" { elements / 4.0 } else { elements };
    Some(Work::new(elements, out, vec![Operation::vector(kind, elements)]))
}

/// Sweeps over one operator.
fn operator(workload: &str, sizes: &[f64]) -> Option<Work> {
    let starts = |prefix: &str| workload.starts_with(prefix);
    if starts("conv 3x3") {
        let &[batch, channels, height, width, ..] = sizes else { return None };
        let elements = batch * channels * height * width;
        return Some(Work::new(elements, elements, vec![Operation::convolution(batch, channels, channels, height * width, 3.0)]));
    }
    if starts("standalone op") {
        let &[channels, height, width] = sizes else { return None };
        let elements = channels * height * width;
        let operation = match workload.split(' ').next_back()? {
            "conv1x1" => Operation::convolution(1.0, channels, channels, height * width, 1.0),
            "gelu" => Operation::vector(Kind::Elementwise, elements),
            "gelu2" => Operation::vector(Kind::Elementwise, elements).times(2.0),
            _ => return None,
        };
        return Some(Work::new(elements, elements, vec![operation]));
    }
    let &[rows, columns] = sizes else { return None };
    let elements = rows * columns;
    Some(match workload {
        "streaming (relu / x*2)" => on(Kind::Elementwise, elements).with_values(Values::ManyZeros),
        "gelu (light compute)" => on(Kind::Elementwise, elements),
        "softmax" => on(Kind::Softmax, elements).with_values(Values::Subnormal),
        "layer_norm" | "layer_norm vit (197, 768)" => on(Kind::LayerNorm, elements),
        "rms_norm vit (197, 768)" => on(Kind::RmsNorm, elements),
        "reduction (sum)" => Work::new(elements, rows, vec![Operation::vector(Kind::Reduction, elements)]),
        _ => return None,
    })
}

/// Workloads of one size.
fn named(workload: &str, _sizes: &[f64]) -> Option<Work> {
    let starts = |prefix: &str| workload.starts_with(prefix);
    let plane = 32.0 * 32.0;
    if starts("conv single") {
        let convolution = Operation::convolution(1.0, 16.0, 64.0, plane, 3.0);
        let relu = Operation::vector(Kind::Elementwise, 64.0 * plane);
        return Some(Work::new(16.0 * plane, 64.0 * plane, vec![convolution, relu]).with_values(Values::ManyZeros));
    }
    if starts("conv resnet-ish") || starts("conv stack") {
        let operations = vec![
            Operation::convolution(1.0, 64.0, 256.0, plane, 3.0),
            Operation::convolution(1.0, 256.0, 256.0, plane, 3.0).times(15.0),
            Operation::vector(Kind::Elementwise, 256.0 * plane).times(16.0),
        ];
        return Some(Work::new(64.0 * plane, 256.0 * plane, operations).with_values(Values::ManyZeros));
    }
    if starts("attention") {
        let rows = if starts("attention vit") { 197.0 } else { 512.0 };
        return Some(Work::new(rows * 768.0, rows * 768.0, attention(1.0, rows, 768.0, 12.0, Format::Fp16)));
    }
    if starts("group_norm") {
        return Some(on(Kind::GroupNorm, 256.0 * 64.0 * 64.0));
    }
    if starts("layer_norm (197, 768)") {
        return Some(on(Kind::LayerNorm, 197.0 * 768.0));
    }
    if starts("DFT-as-matmul") {
        // Cosines and sines are programs of their own, both timed.
        let product = Operation::linear(1.0, 1024.0, 1024.0, Format::Fp16).times(2.0);
        return Some(Work { dispatches: 2.0, ..Work::new(2048.0, 2048.0, vec![product]) });
    }
    if starts("stencil") {
        let elements = 256.0 * 256.0;
        return Some(Work::new(elements, elements, vec![Operation::convolution(1.0, 1.0, 1.0, elements, 3.0).times(32.0)]));
    }
    if starts("Jacobi") {
        let step = [
            Operation::linear(1.0, 512.0, 512.0, Format::Fp16).times(25.0),
            Operation::vector(Kind::Elementwise, 512.0).times(50.0),
        ];
        return Some(Work::new(1536.0, 512.0, step.to_vec()));
    }
    if starts("gap:attention") || starts("gap:sdpa") {
        let (heads, rows, width) = (12.0, 512.0, 64.0);
        let operations = vec![
            Operation::product(heads, rows, width, rows),
            Operation::vector(Kind::Elementwise, heads * rows * rows),
            Operation::vector(Kind::Softmax, heads * rows * rows),
            Operation::product(heads, rows, rows, width),
        ];
        return Some(Work::new(3.0 * heads * rows * width, heads * rows * width, operations));
    }
    if starts("gap:fused_block") {
        let elements = 4.0 * 256.0 * 4096.0;
        let convolution = Operation::convolution(4.0, 256.0, 256.0, 4096.0, 3.0);
        return Some(Work::new(elements, elements, vec![convolution.times(3.0)]));
    }
    starts("gap:gemv").then(|| linear(1.0, 4096.0, 4096.0, Format::Fp16))
}

/// Attention with its four projections, on `batch` sequences.
fn attention(batch: f64, rows: f64, width: f64, heads: f64, format: Format) -> Vec<Operation> {
    let (all, scores) = (batch * rows, batch * heads * rows * rows);
    vec![
        Operation::linear(all, width, width, format).times(4.0),
        Operation::vector(Kind::Movement, all * width).times(4.0),
        Operation::product(batch * heads, rows, width / heads, rows),
        Operation::vector(Kind::Elementwise, scores),
        Operation::vector(Kind::Softmax, scores),
        Operation::product(batch * heads, rows, rows, width / heads),
    ]
}

/// A transformer's block, norms first.
fn block(batch: f64, rows: f64, width: f64, heads: f64, inner: f64, format: Format) -> Vec<Operation> {
    let all = batch * rows;
    let mut operations = attention(batch, rows, width, heads, format);
    operations.extend([
        Operation::vector(Kind::LayerNorm, all * width).times(2.0),
        Operation::vector(Kind::Elementwise, all * width).times(2.0),
        Operation::linear(all, width, inner, format),
        Operation::vector(Kind::Elementwise, all * inner),
        Operation::linear(all, inner, width, format),
    ]);
    operations
}

/// The sweep over batch sizes.
fn serving(workload: &str, batch: f64, format: Format) -> Option<Work> {
    let kind = workload.strip_prefix("serving ").unwrap_or(workload);
    let tokens = batch * 128.0;
    if kind.starts_with("vision") {
        let plane = 32.0 * 32.0;
        let operations = vec![
            Operation::convolution(batch, 16.0, 64.0, plane, 3.0),
            Operation::convolution(batch, 64.0, 64.0, plane, 3.0).times(5.0),
            Operation::vector(Kind::Elementwise, batch * 64.0 * plane).times(6.0),
            Operation::vector(Kind::Reduction, batch * 64.0 * plane),
            Operation::linear(batch, 64.0, 100.0, format),
        ];
        return Some(Work::new(batch * 16.0 * plane, batch * 100.0, operations));
    }
    if kind.starts_with("gemm") {
        return Some(linear(tokens, 1024.0, 1024.0, format));
    }
    let operations = if kind.starts_with("attention") {
        attention(batch, 128.0, 768.0, 12.0, format)
    } else if kind.starts_with("encoder") {
        block(batch, 128.0, 768.0, 12.0, 3072.0, format)
    } else {
        return None;
    };
    Some(Work::new(tokens * 768.0, tokens * 768.0, operations))
}

/// One step of a decoder; its caches of keys and values are inputs.
fn decode(sizes: &[f64], batch: f64, format: Format) -> Option<Work> {
    let &[width, layers, heads, inner, words, cached] = sizes else { return None };
    let caches = layers * 2.0 * batch * cached * width;
    let mut operations: Vec<Operation> = [
        Operation::vector(Kind::RmsNorm, batch * width).times(2.0),
        Operation::linear(batch, width, width, format).times(4.0),
        Operation::product(batch * heads, 1.0, width / heads, cached),
        Operation::vector(Kind::Softmax, batch * heads * (cached + 1.0)),
        Operation::product(batch * heads, 1.0, cached, width / heads),
        Operation::vector(Kind::Elementwise, batch * width).times(3.0),
        Operation::linear(batch, width, inner, format).times(2.0),
        Operation::vector(Kind::Elementwise, batch * inner).times(2.0),
        Operation::linear(batch, inner, width, format),
    ]
    .into_iter()
    .map(|operation| {
        let count = operation.count * layers;
        operation.times(count)
    })
    .collect();
    operations.push(Operation::vector(Kind::RmsNorm, batch * width));
    // The head stands in tiles of 16384 words.
    let tiles = (words / 16384.0).floor();
    operations.push(Operation::linear(batch, width, 16384.0, format).times(tiles));
    operations.push(Operation::linear(batch, width, words - tiles * 16384.0, format));
    Some(Work::new(batch * width + caches, batch * words + layers * 2.0 * batch * width, operations))
}

/// Whole models.
fn model(workload: &str, format: Format) -> Option<Work> {
    let pixels = 3.0 * 224.0 * 224.0;
    if workload.starts_with("ViT-B/16") || workload.contains("vit_b16") {
        let mut operations: Vec<Operation> = block(1.0, 197.0, 768.0, 12.0, 3072.0, format)
            .into_iter()
            .map(|operation| {
                let count = operation.count * 12.0;
                operation.times(count)
            })
            .collect();
        operations.push(Operation::convolution(1.0, 768.0, 768.0, 196.0, 1.0));
        operations.push(Operation::vector(Kind::LayerNorm, 197.0 * 768.0));
        operations.push(Operation::linear(1.0, 768.0, 1000.0, Format::Fp16));
        return Some(Work::new(pixels, 1000.0, operations));
    }
    if workload.contains("minilm_l6") {
        let layers = block(1.0, 128.0, 384.0, 12.0, 1536.0, format).into_iter();
        let operations = layers.map(|operation| {
            let count = operation.count * 6.0;
            operation.times(count)
        });
        return Some(Work::new(128.0 * 384.0, 384.0, operations.collect()));
    }
    (workload.starts_with("ResNet-18") || workload.contains("resnet18"))
        .then(|| Work::new(pixels, 1000.0, residual_network(format)))
}

/// ResNet-18 on 224x224 pixels.
fn residual_network(format: Format) -> Vec<Operation> {
    let convolution = |inputs: f64, outputs: f64, plane: f64, kernel: f64| Operation {
        format,
        ..Operation::convolution(1.0, inputs, outputs, plane, kernel)
    };
    let elementwise = |elements: f64| Operation::vector(Kind::Elementwise, elements);
    let mut operations =
        vec![convolution(3.0, 64.0, 112.0 * 112.0, 7.0), elementwise(64.0 * 112.0 * 112.0), elementwise(64.0 * 56.0 * 56.0)];
    let (mut channels, mut side) = (64.0, 56.0);
    for (outputs, stride) in
        [(64.0, 1.0), (64.0, 1.0), (128.0, 2.0), (128.0, 1.0), (256.0, 2.0), (256.0, 1.0), (512.0, 2.0), (512.0, 1.0)]
    {
        side /= stride;
        let plane = side * side;
        operations.push(convolution(channels, outputs, plane, 3.0));
        operations.push(convolution(outputs, outputs, plane, 3.0));
        operations.push(elementwise(outputs * plane).times(3.0));
        if stride > 1.0 {
            operations.push(convolution(channels, outputs, plane, 1.0));
        }
        channels = outputs;
    }
    operations.push(Operation::vector(Kind::Reduction, 512.0 * 49.0));
    operations.push(Operation::linear(1.0, 512.0, 1000.0, format));
    operations
}
