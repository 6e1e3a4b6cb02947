//! What a call asks of a machine, counted and without a chip: operations, bytes, elements.

/// What an operation is to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A matrix product, and a convolution whose kernel is one element: measured alike once the dispatch is taken off.
    Product,
    /// A convolution with a larger kernel.
    Convolution,
    /// An operation on one or two elements at a time, tables of functions included.
    Elementwise,
    /// Softmax.
    Softmax,
    /// Layer normalisation, however many operations it is written in.
    LayerNorm,
    /// Root mean square normalisation.
    RmsNorm,
    /// Group, instance and batch normalisation over planes.
    GroupNorm,
    /// Division by the Euclidean length.
    L2Norm,
    /// Sums, means and extrema over axes, and pooling over whole planes.
    Reduction,
    /// Elements moved: transposes, gathers, joins.
    Movement,
    /// A new shape for the same bytes, or a constant made larger: no time of its own.
    Free,
}

/// How the numbers of a weight are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Two bytes each.
    #[default]
    Fp16,
    /// One byte each with a scale.
    Int8,
    /// Four bits each, an index into a palette or with scales.
    Int4,
    /// A mask of one bit each and the values that are not zero.
    Sparse,
}

/// What the numbers look like that a call hands back. Conversion of fp16 in software takes longer where it meets zeros among other
/// numbers, or numbers below 2^-14.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// Mostly normal numbers.
    #[default]
    Ordinary,
    /// About half of them zero, as after relu.
    ManyZeros,
    /// Many of them subnormal, as after a softmax over thousands.
    Subnormal,
}

/// One operation, or several alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// What it is.
    pub kind: Kind,
    /// How many of them.
    pub count: f64,
    /// Multiplications and additions, two per product.
    pub flops: f64,
    /// Bytes of the weight if it were fp16; 0 where both operands are activations.
    pub weight_bytes: f64,
    /// How the weight is stored.
    pub format: Format,
    /// Bytes of the activation that comes in.
    pub input_bytes: f64,
    /// Bytes of the result.
    pub output_bytes: f64,
    /// Elements that an operation without a product works on.
    pub elements: f64,
}

/// One call of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Dispatches that one call makes.
    pub dispatches: f64,
    /// Elements that the host copies in.
    pub elements_in: f64,
    /// Elements that it copies out.
    pub elements_out: f64,
    /// What the elements copied out look like.
    pub values: Values,
    /// What the engine does between.
    pub operations: Vec<Operation>,
}

impl Operation {
    /// `[rows, inner] x [inner, columns]` with the right side as a weight.
    pub fn linear(rows: f64, inner: f64, columns: f64, format: Format) -> Self {
        Self {
            kind: Kind::Product,
            count: 1.0,
            flops: 2.0 * rows * inner * columns,
            weight_bytes: 2.0 * inner * columns,
            format,
            input_bytes: 2.0 * rows * inner,
            output_bytes: 2.0 * rows * columns,
            elements: 0.0,
        }
    }

    /// `batch` products `[rows, inner] x [inner, columns]` of two activations.
    pub fn product(batch: f64, rows: f64, inner: f64, columns: f64) -> Self {
        Self {
            weight_bytes: 0.0,
            flops: 2.0 * batch * rows * inner * columns,
            input_bytes: 2.0 * batch * (rows * inner + inner * columns),
            output_bytes: 2.0 * batch * rows * columns,
            ..Self::linear(rows, inner, columns, Format::Fp16)
        }
    }

    /// A convolution from `inputs` channels to `[batch, outputs, height, width]` with a square kernel, stride 1.
    pub fn convolution(batch: f64, inputs: f64, outputs: f64, plane: f64, kernel: f64) -> Self {
        Self {
            kind: if kernel > 1.0 { Kind::Convolution } else { Kind::Product },
            count: 1.0,
            flops: 2.0 * batch * inputs * outputs * kernel * kernel * plane,
            weight_bytes: 2.0 * inputs * outputs * kernel * kernel,
            format: Format::Fp16,
            input_bytes: 2.0 * batch * inputs * plane,
            output_bytes: 2.0 * batch * outputs * plane,
            elements: 0.0,
        }
    }

    /// An operation without a product on that many elements.
    pub fn vector(kind: Kind, elements: f64) -> Self {
        let bytes = 2.0 * elements;
        Self {
            kind,
            count: 1.0,
            flops: 0.0,
            weight_bytes: 0.0,
            format: Format::Fp16,
            input_bytes: bytes,
            output_bytes: bytes,
            elements,
        }
    }

    /// The same operation, so many times.
    pub fn times(self, count: f64) -> Self {
        Self { count, ..self }
    }

    /// Whether it multiplies matrices.
    pub fn is_product(&self) -> bool {
        matches!(self.kind, Kind::Product | Kind::Convolution)
    }

    /// Operations of arithmetic per byte that has to be moved for it, the x axis of a roofline.
    pub fn intensity(&self) -> f64 {
        let bytes = self.weight_bytes + self.input_bytes + self.output_bytes;
        if bytes > 0.0 { self.flops.max(self.elements) / bytes } else { 0.0 }
    }
}

impl Work {
    /// One dispatch with these operations.
    pub fn new(elements_in: f64, elements_out: f64, operations: Vec<Operation>) -> Self {
        Self { dispatches: 1.0, elements_in, elements_out, values: Values::Ordinary, operations }
    }

    /// The same call with results of another kind.
    pub fn with_values(self, values: Values) -> Self {
        Self { values, ..self }
    }

    /// Operations of arithmetic in all products.
    pub fn flops(&self) -> f64 {
        self.operations.iter().map(|operation| operation.flops * operation.count).sum()
    }
}
