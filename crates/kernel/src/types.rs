//! Small types that the kernels share: context, row descriptions, epilogues.

use half::f16;

use super::pool::Pool;
use super::simd::Level;

/// Where a kernel runs: on which threads, with which instructions.
#[derive(Debug, Clone, Copy)]
pub struct Context<'p> {
    /// The threads.
    pub pool: &'p Pool,
    /// The instruction set. Packed weights carry their own; this one is for everything else.
    pub level: Level,
}

impl Context<'static> {
    /// The pool of the process and its active level.
    pub fn global() -> Self {
        Self { pool: Pool::global(), level: Level::active() }
    }
}

/// A contiguous piece of the contraction axis: `length` values that start `offset` behind the
/// base of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Distance from the row's base, in values.
    pub offset: usize,
    /// Number of values.
    pub length: usize,
}

/// Where the rows of the left operand begin in the scratch.
#[derive(Debug, Clone, Copy)]
pub enum Bases<'a> {
    /// Row `i` begins at `start + i * stride`.
    Strided {
        /// Begin of the first row.
        start: usize,
        /// Distance between rows.
        stride: usize,
        /// Number of rows.
        count: usize,
    },
    /// Row `i` begins at `list[i]`.
    List(&'a [u32]),
}

impl Bases<'_> {
    /// Number of rows.
    pub fn count(&self) -> usize {
        match self {
            Bases::Strided { count, .. } => *count,
            Bases::List(list) => list.len(),
        }
    }

    /// Begin of row `index`.
    #[inline]
    pub fn base(&self, index: usize) -> usize {
        match self {
            Bases::Strided { start, stride, .. } => start + index * stride,
            Bases::List(list) => list[index] as usize,
        }
    }

    /// The largest begin; 0 where there is no row.
    pub(crate) fn largest(&self) -> usize {
        match self {
            Bases::Strided { start, stride, count } => {
                if *count == 0 {
                    0
                } else {
                    start + (count - 1) * stride
                }
            }
            Bases::List(list) => list.iter().copied().max().unwrap_or(0) as usize,
        }
    }
}

/// The left operand of a matrix product, as rows of an f32 scratch that a layer entry made.
///
/// Row `i` is the concatenation of the runs, each taken behind the row's base. A dense matrix is
/// one run; a convolution over zero-padded NHWC is one run per kernel row.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Where rows begin.
    pub bases: Bases<'a>,
    /// The pieces of every row; their lengths sum to K.
    pub runs: &'a [Run],
}

/// What happens to a value between the sum and the store.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// `max(x, 0)`
    Relu,
    /// `min(max(x, low), high)`
    Clip(f32, f32),
    /// `x / 2 * (1 + erf(x / sqrt 2))`
    Gelu,
    /// The approximation of gelu through tanh.
    GeluTanh,
    /// `x * sigmoid(x)`
    Silu,
    /// `1 / (1 + exp(-x))`
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `x * x`
    Square,
    /// `exp(x)`
    Exp,
    /// Error function.
    Erf,
}

impl Activation {
    /// `Clip(0, 6)`.
    pub const RELU6: Activation = Activation::Clip(0.0, 6.0);
}

/// An fp16 matrix that is added to the result.
#[derive(Debug, Clone, Copy)]
pub struct Residual<'a> {
    /// Values; entry `(row, column)` is at `offset + row * stride + column`.
    pub data: &'a [f16],
    /// Position of entry (0, 0).
    pub offset: usize,
    /// Distance between rows.
    pub stride: usize,
    /// Whether it is added before the activation (a ResNet block) or after it.
    pub before_activation: bool,
}

/// What is applied to a tile of sums before it is stored, in this order: scale, bias,
/// residual and activation (order per [`Residual::before_activation`]).
#[derive(Debug, Clone, Copy, Default)]
pub struct Epilogue<'a> {
    /// One factor for everything.
    pub scale: Option<f32>,
    /// One summand per column. The exact kernels need fp16 values here.
    pub bias: Option<&'a [f32]>,
    /// A matrix to add.
    pub residual: Option<Residual<'a>>,
    /// The function.
    pub activation: Activation,
}

/// Destination of a matrix product: entry `(row, column)` goes to
/// `offset + row * stride + column`.
#[derive(Debug)]
pub struct Output<'a, T> {
    /// The buffer.
    pub data: &'a mut [T],
    /// Position of entry (0, 0).
    pub offset: usize,
    /// Distance between rows.
    pub stride: usize,
}

impl<'a, T> Output<'a, T> {
    /// A dense matrix of `columns` columns at the begin of `data`.
    pub fn dense(data: &'a mut [T], columns: usize) -> Self {
        Self { data, offset: 0, stride: columns }
    }
}

/// A strided view of fp16 activations for a matrix product: entry `(outer, inner, row, column)`
/// is at `offset + outer * outer_stride + inner * inner_stride + row * row_stride +
/// column * column_stride`. Transposes and split heads are strides, not copies.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// The buffer.
    pub data: &'a [f16],
    /// Position of the first entry.
    pub offset: usize,
    /// Distances of the outer and inner batch axis.
    pub batch_strides: [usize; 2],
    /// Distance between rows.
    pub row_stride: usize,
    /// Distance between columns.
    pub column_stride: usize,
}

/// A buffer shared by jobs that write disjoint places.
pub(crate) struct Shared<T> {
    start: *mut T,
    length: usize,
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: users of `slice` promise disjoint places per job.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(data: &mut [T]) -> Self {
        Self { start: data.as_mut_ptr(), length: data.len() }
    }

    pub(crate) fn len(self) -> usize {
        self.length
    }

    /// # Safety
    /// No two jobs that run at the same time may hold overlapping ranges, and the buffer must
    /// outlive the slice.
    #[inline(always)]
    pub(crate) unsafe fn slice<'s>(self, from: usize, length: usize) -> &'s mut [T] {
        assert!(from <= self.length && length <= self.length - from, "range beyond the buffer");
        // SAFETY: in bounds by the assertion, disjoint by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), length) }
    }
}
