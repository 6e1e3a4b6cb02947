//! Exact batched product of two activations.

use half::f16;

use super::super::matmul::{MatmulShape, Place};
use super::super::types::{Bases, Context, Epilogue, Operand, Shared};
use super::entry::{Entered, WidenPairs, enter, entered_len};
use super::gemm::{Left, product_into};
use super::sink::ExactSink;
use super::weights::ExactWeights;
use super::{MacRules, Subnormals};

/// Buffers of [`matmul`], grown on the first use of a shape and kept.
#[derive(Debug, Default)]
pub struct MatmulScratch {
    workers: Vec<Worker>,
}

#[derive(Debug)]
struct Worker {
    pairs: Vec<f32>,
    row: Vec<f16>,
    weights: ExactWeights,
}

/// `x` (`[m][k]`) times `y` (`[k][n]`) for every entry of the batch, in the engine's arithmetic.
///
/// # Panics
/// If a slice is too short for its strides, or the epilogue has a residual.
#[allow(clippy::too_many_arguments)]
pub fn matmul(
    context: Context<'_>,
    shape: MatmulShape,
    x: Operand<'_>,
    y: Operand<'_>,
    rules: MacRules,
    epilogue: &Epilogue<'_>,
    scratch: &mut MatmulScratch,
    output: &mut [f16],
    place: Place,
) {
    let MatmulShape { batch, m, n, k } = shape;
    x.check("x", batch, m, k);
    y.check("y", batch, k, n);
    assert!(epilogue.residual.is_none(), "matmul: no residual");
    let count = batch[0] * batch[1];
    if count * m * n == 0 {
        return;
    }
    place.check(batch, m, n);
    let level = context.level;
    scratch.workers.retain(|worker| worker.weights.level() == level && worker.weights.rules() == rules);
    while scratch.workers.len() < context.pool.threads() {
        scratch.workers.push(Worker { pairs: Vec::new(), row: Vec::new(), weights: ExactWeights::empty(level, rules) });
    }
    let workers = Shared::new(&mut scratch.workers);
    let result = Shared::new(output);
    // Within a job the pool runs nested regions on the job's own thread; a single matrix runs its
    // regions on all threads.
    context.pool.run(count, &|index, worker| {
        let (outer, inner) = (index / batch[1], index % batch[1]);
        // SAFETY: a worker runs one job at a time.
        let [worker] = (unsafe { workers.slice(worker, 1) }) else { return };
        let right = y.matrix(outer, inner);
        worker.weights.fill(n, k, |column, depth| y.data[right + depth * y.row_stride + column * y.column_stride]);
        worker.pairs.resize(entered_len(m * k).max(worker.pairs.len()), 0.0);
        let drop_subnormals = rules.subnormal_inputs == Subnormals::Zero;
        let entered = gather(context, &x, x.matrix(outer, inner), m, k, drop_subnormals, &mut worker.row, &mut worker.pairs);
        let left = Left { entered, bases: Bases::Strided { start: 0, stride: k, count: m }, pieces: &worker.weights.dense };
        let offset = place.offset + outer * place.batch_strides[0] + inner * place.batch_strides[1];
        let sink = ExactSink::over(epilogue, result, offset, place.row_stride, m, n);
        product_into(context, &left, &worker.weights, sink);
    });
}

#[allow(clippy::too_many_arguments)]
fn gather<'a>(
    context: Context<'_>,
    x: &Operand<'_>,
    matrix: usize,
    m: usize,
    k: usize,
    drop_subnormals: bool,
    row: &mut Vec<f16>,
    pairs: &'a mut [f32],
) -> Entered<'a> {
    enter(context, pairs, m * k, |to| {
        for index in 0..m {
            let at = matrix + index * x.row_stride;
            let from = if x.column_stride == 1 {
                &x.data[at..at + k]
            } else {
                row.clear();
                row.extend((0..k).map(|column| x.data[at + column * x.column_stride]));
                &row[..]
            };
            // SAFETY: one row after the other.
            let to = unsafe { to.slice(2 * index * k, 2 * k) };
            context.level.dispatch(WidenPairs { from, to, drop_subnormals });
        }
    })
}
