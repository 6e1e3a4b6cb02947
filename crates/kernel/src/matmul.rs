//! Products of two activations: batched matrix product and attention.
//!
//! The right operand is packed into fp16 panels in the scratch on the fly; strides make transposes
//! and split heads free of copies.

use half::f16;

use super::convert::Widen;
use super::epilogue::{Sink, Stored};
use super::gemm::{Split, TileRows, tile_edge};
use super::norm::softmax_row;
use super::simd::{Kernel, Level, Simd};
use super::tile::{MOST_COLUMNS, MOST_ROWS, Steps, Sums, tile};
use super::types::{Context, Epilogue, Operand, Output, Run, Shared};

/// Extents of a batched product: `[.., m, k] x [.., k, n]` over two batch axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatmulShape {
    /// Outer and inner batch extent.
    pub batch: [usize; 2],
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Contraction.
    pub k: usize,
}

/// Where the matrices of a batched result go: entry `(outer, inner, row, column)` is at
/// `offset + outer * batch_strides[0] + inner * batch_strides[1] + row * row_stride + column`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Position of the first entry.
    pub offset: usize,
    /// Distances of the outer and inner batch axis.
    pub batch_strides: [usize; 2],
    /// Distance between rows.
    pub row_stride: usize,
}

impl Place {
    /// A dense `[outer, inner, m, n]` result.
    pub fn dense(shape: &MatmulShape) -> Self {
        let matrix = shape.m * shape.n;
        Self { offset: 0, batch_strides: [shape.batch[1] * matrix, matrix], row_stride: shape.n }
    }

    /// Checks that no two entries share a position: sorted by stride, every axis must step over
    /// all that the smaller ones span.
    pub(crate) fn check(&self, batch: [usize; 2], m: usize, n: usize) {
        let mut axes = [(batch[0], self.batch_strides[0]), (batch[1], self.batch_strides[1]), (m, self.row_stride), (n, 1)];
        axes.sort_by_key(|&(_, stride)| stride);
        let mut span = 1;
        for (count, stride) in axes.into_iter().filter(|&(count, _)| count > 1) {
            assert!(stride >= span, "output: strides overlap");
            span += (count - 1) * stride;
        }
    }
}

impl Operand<'_> {
    /// Position of the first entry of a matrix.
    pub(crate) fn matrix(&self, outer: usize, inner: usize) -> usize {
        self.offset + outer * self.batch_strides[0] + inner * self.batch_strides[1]
    }

    /// Checks that all entries are within the buffer.
    pub(crate) fn check(&self, name: &str, batch: [usize; 2], rows: usize, columns: usize) {
        if batch[0] * batch[1] * rows * columns == 0 {
            return;
        }
        let last = self.matrix(batch[0] - 1, batch[1] - 1) + (rows - 1) * self.row_stride + (columns - 1) * self.column_stride;
        assert!(last < self.data.len(), "{name}: strides reach beyond the buffer");
    }
}

/// f32 values of scratch that [`matmul`] needs.
pub fn scratch_len(level: Level, shape: &MatmulShape) -> usize {
    let [outer, inner] = shape.batch;
    outer * inner * shape.m * shape.k + halves_len(outer * inner * panel_len(level, shape.k, shape.n))
}

/// f32 values that hold `count` fp16 values from a cache line's begin.
fn halves_len(count: usize) -> usize {
    count.div_ceil(2) + LINE
}

/// f32 values of a cache line.
const LINE: usize = 16;

/// The part of a scratch made by [`halves_len`] that starts on a cache line, as fp16.
fn halves(scratch: &mut [f32], count: usize) -> &mut [f16] {
    let skip = (scratch.as_ptr() as usize).wrapping_neg() / 4 % LINE;
    &mut bytemuck::cast_slice_mut(&mut scratch[skip..skip + count.div_ceil(2)])[..count]
}

fn panel_len(level: Level, k: usize, n: usize) -> usize {
    n.next_multiple_of(level.panel_width()) * k
}

/// `x` (`[m][k]`) times `y` (`[k][n]`) for every entry of the batch.
///
/// A bias has `n` values; a residual is not supported here.
///
/// # Panics
/// If a slice is too short for its strides, the scratch for [`scratch_len`], or the epilogue has
/// a residual.
#[allow(clippy::too_many_arguments)]
pub fn matmul(
    context: Context<'_>,
    shape: MatmulShape,
    x: Operand<'_>,
    y: Operand<'_>,
    epilogue: &Epilogue<'_>,
    scratch: &mut [f32],
    output: &mut [f16],
    place: Place,
) {
    let MatmulShape { batch, m, n, k } = shape;
    x.check("x", batch, m, k);
    y.check("y", batch, k, n);
    assert!(epilogue.residual.is_none(), "matmul: no residual");
    place.check(batch, m, n);
    let level = context.level;
    let count = batch[0] * batch[1];
    if count * m * n == 0 {
        return;
    }
    let (left, right) = scratch[..scratch_len(level, &shape)].split_at_mut(count * m * k);
    let panels = n.div_ceil(level.panel_width());
    let size = k * level.panel_width();
    let right = halves(right, count * panels * size);
    {
        let (left, right) = (Shared::new(left), Shared::new(right));
        // Rows in blocks of about as many values as a panel has.
        let rows = (32 * 1024 / k.max(1)).max(1).next_multiple_of(WIDE_ROWS).min(m);
        let blocks = m.div_ceil(rows);
        context.pool.run(count * (panels + blocks), &|job, _| {
            let (index, part) = (job / (panels + blocks), job % (panels + blocks));
            let (outer, inner) = (index / batch[1], index % batch[1]);
            if part >= panels {
                let first = (part - panels) * rows;
                let range = first..m.min(first + rows);
                // SAFETY: one job per block.
                let to = unsafe { left.slice((index * m + first) * k, range.len() * k) };
                widen_rows(level, &x, x.matrix(outer, inner), range, k, to);
            } else {
                // SAFETY: one job per panel.
                let to = unsafe { right.slice((index * panels + part) * size, size) };
                pack_panel(level, &y, y.matrix(outer, inner), part, n, k, to);
            }
        });
    }
    let (left, right) = (&*left, &*right);
    let split = Split::new(m, panels, level.dispatch(TileRows), 4 * k, context.pool.threads().div_ceil(count));
    let sinks = Shared::new(output);
    let per = split.jobs();
    context.pool.run(count * per, &|job, _| {
        let index = job / per;
        let (outer, inner) = (index / batch[1], index % batch[1]);
        let offset = place.offset + outer * place.batch_strides[0] + inner * place.batch_strides[1];
        let sink = Sink::over(epilogue, sinks, offset, place.row_stride, m, n);
        let (rows, panel_range) = split.job(job % per);
        level.dispatch(PanelBlock {
            level,
            x: &left[index * m * k..(index + 1) * m * k],
            stride: k,
            panels: &right[index * panels * size..(index + 1) * panels * size],
            k,
            rows,
            panel_range,
            sink,
        });
    });
}

/// Rows of a turned operand that are widened together.
const WIDE_ROWS: usize = 16;

/// Widens rows of an operand into a dense f32 matrix.
pub(crate) fn widen_rows(
    level: Level,
    operand: &Operand<'_>,
    matrix: usize,
    rows: std::ops::Range<usize>,
    columns: usize,
    to: &mut [f32],
) {
    if operand.column_stride == 1 {
        for (row, to) in rows.zip(to.chunks_exact_mut(columns.max(1))) {
            let at = matrix + row * operand.row_stride;
            level.dispatch(Widen { from: &operand.data[at..at + columns], to });
        }
        return;
    }
    // Neighbours of a column are widened together; where they stand apart, they are gathered first.
    let mut halves = [f16::ZERO; WIDE_ROWS * WIDE_ROWS];
    let mut wide = [0.0; WIDE_ROWS * WIDE_ROWS];
    for (first, to) in rows.clone().step_by(WIDE_ROWS).zip(to.chunks_mut(WIDE_ROWS * columns.max(1))) {
        let count = WIDE_ROWS.min(rows.end - first);
        for start in (0..columns).step_by(WIDE_ROWS) {
            let length = WIDE_ROWS.min(columns - start);
            for (column, block) in halves.chunks_exact_mut(WIDE_ROWS).enumerate().take(length) {
                let at = matrix + first * operand.row_stride + (start + column) * operand.column_stride;
                if operand.row_stride == 1 {
                    block[..count].copy_from_slice(&operand.data[at..at + count]);
                } else {
                    for (row, value) in block[..count].iter_mut().enumerate() {
                        *value = operand.data[at + row * operand.row_stride];
                    }
                }
            }
            level.dispatch(Widen { from: &halves, to: &mut wide });
            for (row, to) in to.chunks_exact_mut(columns).enumerate() {
                for (column, value) in to[start..start + length].iter_mut().enumerate() {
                    *value = wide[column * WIDE_ROWS + row];
                }
            }
        }
    }
}

/// Packs columns `part * width ..` of a `[k][n]` operand into a `[k][width]` panel.
pub(crate) fn pack_panel(level: Level, operand: &Operand<'_>, matrix: usize, part: usize, n: usize, k: usize, to: &mut [f16]) {
    let width = level.panel_width();
    let first = part * width;
    let count = width.min(n - first);
    if count < width {
        to.fill(f16::ZERO);
    }
    if operand.column_stride == 1 {
        for (depth, to) in to.chunks_exact_mut(width).enumerate() {
            let at = matrix + depth * operand.row_stride + first;
            to[..count].copy_from_slice(&operand.data[at..at + count]);
        }
        return;
    }
    // Blocks of depths keep the destination in the first cache while its columns are filled.
    const DEPTHS: usize = 64;
    for start in (0..k).step_by(DEPTHS) {
        let length = DEPTHS.min(k - start);
        let block = &mut to[start * width..(start + length) * width];
        for column in 0..count {
            let at = matrix + (first + column) * operand.column_stride + start * operand.row_stride;
            for depth in 0..length {
                block[depth * width + column] = operand.data[at + depth * operand.row_stride];
            }
        }
    }
}

/// Tiles of a dense f32 matrix times fp16 panels.
struct PanelBlock<'a, T> {
    level: Level,
    x: &'a [f32],
    stride: usize,
    panels: &'a [f16],
    k: usize,
    rows: std::ops::Range<usize>,
    panel_range: std::ops::Range<usize>,
    sink: Sink<'a, T>,
}

impl<T: Stored> Kernel for PanelBlock<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = 2 * S::LANES;
        let rows = self.rows.len();
        if rows == 0 {
            return;
        }
        assert!((self.rows.end - 1) * self.stride + self.k <= self.x.len(), "rows: beyond the scratch");
        let tiles = rows.div_ceil(S::ROWS);
        let runs = [Run { offset: 0, length: self.k }];
        let steps = Steps { first: 0, end: self.k, goes_on: false };
        let mut sums = Sums([0.0; MOST_ROWS * MOST_COLUMNS]);
        for panel in self.panel_range {
            let weights = &self.panels[panel * width * self.k..(panel + 1) * width * self.k];
            for index in 0..tiles {
                let first = self.rows.start + tile_edge(rows, tiles, index);
                let count = self.rows.start + tile_edge(rows, tiles, index + 1) - first;
                let mut x = [self.x.as_ptr(); MOST_ROWS];
                for (r, pointer) in x.iter_mut().enumerate().take(count) {
                    // SAFETY: within `x` by the assertion above.
                    *pointer = unsafe { pointer.add((first + r) * self.stride) };
                }
                // SAFETY: the assertion covers the rows, the panel has k steps.
                unsafe { tile(self.level, count, &x, &runs, weights.as_ptr().cast::<u16>(), steps, &mut sums) };
                for r in 0..count {
                    // SAFETY: jobs have disjoint tiles of the sink's matrix.
                    unsafe { self.sink.finish(s, first + r, panel * width, sums.0.as_ptr().add(r * width)) };
                }
            }
        }
    }
}

/// Extents of multi-head attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// Sequences.
    pub batch: usize,
    /// Heads.
    pub heads: usize,
    /// Rows of q.
    pub queries: usize,
    /// Rows of k and v.
    pub keys: usize,
    /// Columns of q and k.
    pub width: usize,
    /// Columns of v.
    pub value_width: usize,
}

/// Query rows of one job.
const QUERIES: usize = 56;

impl AttentionShape {
    fn key_panels(&self, level: Level) -> usize {
        panel_len(level, self.width, self.keys)
    }

    fn value_panels(&self, level: Level) -> usize {
        panel_len(level, self.keys, self.value_width)
    }

    fn per_worker(&self) -> usize {
        QUERIES * (self.width + self.keys)
    }
}

/// f32 values of scratch that [`attention`] needs.
pub fn attention_scratch_len(level: Level, threads: usize, shape: &AttentionShape) -> usize {
    let panels = shape.key_panels(level) + shape.value_panels(level);
    halves_len(shape.batch * shape.heads * panels) + threads * shape.per_worker()
}

/// `softmax(scale * q k^T + mask) v` for every sequence and head. The batch axes of the operands
/// and of the place are sequence and head; `mask` is `[queries][keys]`, added to the scaled
/// scores.
///
/// # Panics
/// If a slice is too short for its strides or the scratch for [`attention_scratch_len`].
#[allow(clippy::too_many_arguments)]
pub fn attention(
    context: Context<'_>,
    shape: AttentionShape,
    q: Operand<'_>,
    k: Operand<'_>,
    v: Operand<'_>,
    scale: f32,
    mask: Option<Operand<'_>>,
    scratch: &mut [f32],
    output: &mut [f16],
    place: Place,
) {
    let AttentionShape { batch, heads, queries, keys, width, value_width } = shape;
    let axes = [batch, heads];
    q.check("q", axes, queries, width);
    k.check("k", axes, keys, width);
    v.check("v", axes, keys, value_width);
    if let Some(mask) = &mask {
        mask.check("mask", axes, queries, keys);
    }
    place.check(axes, queries, value_width);
    let level = context.level;
    let count = batch * heads;
    if count * queries * value_width == 0 || keys == 0 {
        return;
    }
    // k^T is k with its strides exchanged.
    let transposed = Operand { row_stride: k.column_stride, column_stride: k.row_stride, ..k };
    let (key_size, value_size) = (shape.key_panels(level), shape.value_panels(level));
    let needed = attention_scratch_len(level, context.pool.threads(), &shape);
    let (packed, own) = scratch[..needed].split_at_mut(halves_len(count * (key_size + value_size)));
    let packed = halves(packed, count * (key_size + value_size));
    let panel_width = level.panel_width();
    let (key_panels, value_panels) = (keys.div_ceil(panel_width), value_width.div_ceil(panel_width));
    {
        let packed = Shared::new(packed);
        let per = key_panels + value_panels;
        context.pool.run(count * per, &|job, _| {
            let (index, part) = (job / per, job % per);
            let (outer, inner) = (index / heads, index % heads);
            let start = index * (key_size + value_size);
            if part < key_panels {
                let size = width * panel_width;
                // SAFETY: one job per panel.
                let to = unsafe { packed.slice(start + part * size, size) };
                pack_panel(level, &transposed, transposed.matrix(outer, inner), part, keys, width, to);
            } else {
                let (part, size) = (part - key_panels, keys * panel_width);
                // SAFETY: one job per panel.
                let to = unsafe { packed.slice(start + key_size + part * size, size) };
                pack_panel(level, &v, v.matrix(outer, inner), part, value_width, keys, to);
            }
        });
    }
    let packed = &*packed;
    let (own, result) = (Shared::new(own), Shared::new(output));
    let blocks = queries.div_ceil(QUERIES);
    context.pool.run(count * blocks, &|job, worker| {
        let (index, block) = (job / blocks, job % blocks);
        let (outer, inner) = (index / heads, index % heads);
        let rows = tile_edge(queries, blocks, block)..tile_edge(queries, blocks, block + 1);
        // SAFETY: a worker runs one job at a time.
        let own = unsafe { own.slice(worker * shape.per_worker(), shape.per_worker()) };
        let (wide_q, scores) = own.split_at_mut(QUERIES * width);
        widen_rows(level, &q, q.matrix(outer, inner), rows.clone(), width, wide_q);
        let start = index * (key_size + value_size);
        let plain = Epilogue { scale: Some(scale), ..Epilogue::default() };
        let sink = Sink::new(&plain, Output::dense(&mut *scores, keys), rows.len(), keys);
        level.dispatch(PanelBlock {
            level,
            x: wide_q,
            stride: width,
            panels: &packed[start..start + key_size],
            k: width,
            rows: 0..rows.len(),
            panel_range: 0..key_panels,
            sink,
        });
        for (row, scores) in rows.clone().zip(scores.chunks_exact_mut(keys)) {
            if let Some(mask) = &mask {
                let at = mask.matrix(outer, inner) + row * mask.row_stride;
                for (key, score) in scores.iter_mut().enumerate() {
                    *score += mask.data[at + key * mask.column_stride].to_f32();
                }
            }
            softmax_row(level, scores);
        }
        let offset = place.offset + outer * place.batch_strides[0] + inner * place.batch_strides[1] + rows.start * place.row_stride;
        let plain = Epilogue::default();
        let sink = Sink::over(&plain, result, offset, place.row_stride, rows.len(), value_width);
        level.dispatch(PanelBlock {
            level,
            x: scores,
            stride: keys,
            panels: &packed[start + key_size..start + key_size + value_size],
            k: keys,
            rows: 0..rows.len(),
            panel_range: 0..value_panels,
            sink,
        });
    });
}
