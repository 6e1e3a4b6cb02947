//! Running sums and products along an axis.

use super::*;

/// Longest run that one triangular matrix sums; longer ones are summed block by block.
const BLOCK: usize = 256;

const AXIS: Constraint = rule(
    "C1",
    "axis is an axis of x",
    |s| s.axis("axis", s.rank("x")).is_some(),
    Case::refused(&[drawn("x", &[2, 3])], &[("axis", Default::Int(2))]),
);

/// Running sum.
pub static CUMSUM: GraphOp = GraphOp {
    attributes: &[int("axis", Default::Int(-1)), flag("exclusive", false), flag("reverse", false)],
    constraints: &[AXIS],
    lower: lower_cumsum,
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let grad = b.grad().cumsum(s.int("axis"), s.flag("exclusive"), !s.flag("reverse"));
        b.give("x", grad);
    }),
    cases: &[
        Case::values(
            "along_rows",
            &[given("x", &[2, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0])],
            &[],
            (&[2, 3], &[1.0, -1.0, 2.0, 4.0, 9.0, 3.0]),
            "numpy.cumsum",
        ),
        Case::values(
            "down_columns_from_the_end_without_itself",
            &[given("x", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
            &[("axis", Default::Int(0)), ("exclusive", Default::Flag(true)), ("reverse", Default::Flag(true))],
            (&[3, 2], &[8.0, 10.0, 5.0, 6.0, 0.0, 0.0]),
            "numpy.cumsum of the reversed array, shifted by one",
        ),
        Case::shape("longer_than_a_block", &[drawn("x", &[300, 2])], &[("axis", Default::Int(0))], &[300, 2]),
    ],
    ..direct("cumsum", "The running sum of x along axis, as a product with a triangular matrix of ones.")
};

/// `[n, n]` of ones where column `j` counts for row `i`.
fn triangle(l: &mut Lowering, dtype: DType, n: usize, exclusive: bool, reverse: bool) -> Result<ValueId, GraphError> {
    let counts = |row: usize, column: usize| {
        let (row, column) = if reverse { (n - 1 - row, n - 1 - column) } else { (row, column) };
        column < row || (column == row && !exclusive)
    };
    let ones: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(counts(at / n, at % n)))).collect();
    l.constant("triangle", TensorType::new(dtype, [n, n]), &ones)
}

/// Blocks are summed by one small matrix, the sums of earlier blocks by another: work and weights grow with the square root.
fn lower_cumsum(l: &mut Lowering, s: &Site<'_>) -> Result<Vec<ValueId>, GraphError> {
    let (x, shape, dtype) = (s.value("x")?, s.shape("x").to_vec(), s.dtype("x"));
    let (exclusive, reverse) = (s.flag("exclusive"), s.flag("reverse"));
    let axis = s.axis("axis", shape.len()).unwrap_or(0);
    let extent = shape[axis];
    let (outer, inner) = (shape[..axis].iter().product::<usize>(), shape[axis + 1..].iter().product::<usize>());
    if extent <= BLOCK {
        let rows = l.reshaped(x, &[outer, extent, inner])?;
        let sums = triangle(l, dtype, extent, exclusive, reverse)?;
        let y = l.op("matmul", &[("x", sums.into()), ("y", rows.into())])?;
        return Ok(vec![l.reshaped(y, &shape)?]);
    }
    let blocks = extent.div_ceil(BLOCK);
    let missing = blocks * BLOCK - extent;
    let rows = l.reshaped(x, &[outer, extent, inner])?;
    let pad = vec![0, 0, 0, missing as i64, 0, 0];
    let rows =
        if missing == 0 { rows } else { l.op("pad", &[("x", rows.into()), ("pad", pad.into()), ("mode", "constant".into())])? };
    let rows = l.reshaped(rows, &[outer, blocks, BLOCK, inner])?;
    let sums = triangle(l, dtype, BLOCK, exclusive, reverse)?;
    let within = l.op("matmul", &[("x", sums.into()), ("y", rows.into())])?;
    let totals = l.op("reduce_sum", &[("x", rows.into()), ("axes", vec![2i64].into()), ("keep_dims", false.into())])?;
    let sums = triangle(l, dtype, blocks, true, reverse)?;
    let before = l.op("matmul", &[("x", sums.into()), ("y", totals.into())])?;
    let before = l.reshaped(before, &[outer, blocks, 1, inner])?;
    let y = l.op("add", &[("x", within.into()), ("y", before.into())])?;
    let mut y = l.reshaped(y, &[outer, blocks * BLOCK, inner])?;
    if missing > 0 {
        let size = [outer, extent, inner];
        y = l.op("slice_by_size", &[("x", y.into()), ("begin", vec![0i64, 0, 0].into()), ("size", size.as_slice().into())])?;
    }
    Ok(vec![l.reshaped(y, &shape)?])
}

/// Product over axes.
pub static REDUCE_PROD: GraphOp = GraphOp {
    attributes: reduction::ATTRIBUTES,
    constraints: reduction::RULES,
    cases: reduction::CASES,
    domain: domain(0.5, 1.5, &[]),
    tolerance: 1e-2,
    lower: |l, s| {
        let mut y = s.value("x")?;
        let axes = s.axes("axes", s.rank("x")).unwrap_or_default();
        for &axis in &axes {
            y = product_along(l, y, axis)?;
        }
        if !s.flag("keep_dims") {
            let shape: Vec<usize> =
                s.shape("x").iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, &extent)| extent).collect();
            y = l.reshaped(y, &shape)?;
        }
        Ok(vec![y])
    },
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let axes = s.axes("axes", s.rank("x")).unwrap_or_default();
        let grad = product_gradient(&b.input("x"), &reduction::kept(b, &b.grad()), &axes);
        b.give("x", grad);
    }),
    ..direct("reduce_prod", "The product over axes, in halves multiplied with each other; one rounding per halving.")
};

/// The first and second half of an axis, and the element in the middle of an odd one.
fn halves(shape: &[usize], axis: usize) -> Vec<(Vec<usize>, Vec<usize>)> {
    let half = shape[axis] / 2;
    let part = |begin: usize, extent: usize| {
        let (mut from, mut size) = (vec![0; shape.len()], shape.to_vec());
        (from[axis], size[axis]) = (begin, extent);
        (from, size)
    };
    let mut parts = vec![part(0, half), part(half, half)];
    if shape[axis] % 2 == 1 {
        parts.push(part(2 * half, 1));
    }
    parts
}

fn product_along(l: &mut Lowering, mut y: ValueId, axis: usize) -> Result<ValueId, GraphError> {
    while l.shape(y)[axis] > 1 {
        let mut parts = Vec::new();
        for (begin, size) in halves(l.shape(y), axis) {
            let arguments = [("x", y.into()), ("begin", begin.as_slice().into()), ("size", size.as_slice().into())];
            parts.push(l.op("slice_by_size", &arguments)?);
        }
        y = l.op("mul", &[("x", parts[0].into()), ("y", parts[1].into())])?;
        if let Some(&odd) = parts.get(2) {
            y = if l.shape(y)[axis] == 1 {
                l.op("mul", &[("x", y.into()), ("y", odd.into())])?
            } else {
                l.op("concat", &[("values", vec![y, odd].into()), ("axis", (axis as i64).into()), ("interleave", false.into())])?
            };
        }
    }
    Ok(y)
}

/// Each halving backwards: a half's gradient is the result's times the other half. No division, so zeros are no exception.
fn product_gradient(x: &Tensor, grad: &Tensor, axes: &[usize]) -> Tensor {
    let Some((&axis, rest)) = axes.split_first() else { return grad.clone() };
    let Ok(shape) = x.shape() else { return x.clone() };
    if shape[axis] == 1 {
        return product_gradient(x, grad, rest);
    }
    let wide = |values: &[usize]| values.iter().map(|&value| value as i64).collect::<Vec<_>>();
    let parts: Vec<Tensor> = halves(shape, axis).iter().map(|(begin, size)| x.slice_by_size(&wide(begin), &wide(size))).collect();
    let mut halved = parts[0].mul(&parts[1]);
    if let Some(odd) = parts.get(2) {
        halved = crate::concat(&[halved, odd.clone()], axis as i64);
    }
    let inner = product_gradient(&halved, grad, axes);
    let Ok(inner_shape) = inner.shape() else { return inner };
    let (mut begin, mut size) = (vec![0; inner_shape.len()], wide(inner_shape));
    size[axis] = (shape[axis] / 2) as i64;
    let pair = inner.slice_by_size(&begin, &size);
    let mut gradients = vec![pair.mul(&parts[1]), pair.mul(&parts[0])];
    if parts.len() == 3 {
        begin[axis] = size[axis];
        size[axis] = 1;
        gradients.push(inner.slice_by_size(&begin, &size));
    }
    crate::concat(&gradients, axis as i64)
}

pub(super) const ALL: &[&GraphOp] = &[&CUMSUM, &REDUCE_PROD];
