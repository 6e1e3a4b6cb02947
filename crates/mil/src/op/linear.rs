//! Matrix products.

use super::broadcast::{SAME_DTYPE, broadcast};
use super::family::{PRODUCTS, PRODUCTS_TOO, base, rule};
use super::general::result;
use super::{
    Arguments, BOOL, Case, Default, FLOATS, MilOp, NUMBERS, OpError, TEXT, constant, flag, given, optional_weight, sample, tensor,
    text, variadic, weight,
};
use crate::{Array, DType, TensorType, strides};
use rayon::prelude::*;

const BY_HAND: &str = "by hand";
const X23: super::Given = given(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

pub(super) const OPS: &[MilOp] = &[
    MilOp {
        ports: &[
            tensor("x", NUMBERS),
            tensor("y", NUMBERS),
            constant("transpose_x", BOOL, Default::Flag(false)),
            constant("transpose_y", BOOL, Default::Flag(false)),
        ],
        constraints: &[
            SAME_DTYPE,
            rule("C2", "x and y have at least one axis: use mul for scalars", |a| {
                !a.shape("x").is_empty() && !a.shape("y").is_empty()
            }),
            rule("C3", "the last axis of x and the second last of y (after the transpositions) have the same extent", |a| {
                let (x, y) = (side(a, "x"), side(a, "y"));
                x.inner() == y.inner()
            }),
            rule("C4", "the axes before the last two broadcast", |a| {
                broadcast(&[side(a, "x").batch, side(a, "y").batch]).is_some()
            }),
        ],
        arithmetic: PRODUCTS,
        published_error: Some(3e-4),
        cases: &[
            Case::new(
                "two_by_three_times_three_by_two",
                &[("x", X23), ("y", given(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 2.0, -1.0]))],
                &[(&[2, 2], &[7.0, -1.0, 16.0, -1.0])],
                BY_HAND,
            ),
            Case::new(
                "weight_stored_by_output_row",
                &[("x", X23), ("y", given(&[2, 3], &[1.0, 0.0, 2.0, 0.0, 1.0, -1.0])), ("transpose_y", flag(true))],
                &[(&[2, 2], &[7.0, -1.0, 16.0, -1.0])],
                BY_HAND,
            ),
            Case::new(
                "gram_matrix_of_columns",
                &[
                    ("x", given(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
                    ("y", given(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
                    ("transpose_x", flag(true)),
                ],
                &[(&[2, 2], &[10.0, 14.0, 14.0, 20.0])],
                BY_HAND,
            ),
            Case::new(
                "vector_on_the_left",
                &[("x", given(&[3], &[1.0, 2.0, 3.0])), ("y", given(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 2.0, -1.0]))],
                &[(&[2], &[7.0, -1.0])],
                BY_HAND,
            ),
            Case::oracle(
                "heads_of_attention",
                &[("x", sample(&[1, 2, 5, 4], 1)), ("y", sample(&[1, 2, 6, 4], 2)), ("transpose_y", flag(true))],
            ),
            Case::oracle("batches_broadcast", &[("x", sample(&[3, 1, 2, 4], 3)), ("y", sample(&[2, 4, 5], 4))]),
            Case::oracle("longer_than_one_block", &[("x", sample(&[20, 150], 5)), ("y", sample(&[150, 7], 6))]),
        ],
        ..base("matmul", "Matrix product over the last two axes, the others broadcast.", infer_matmul, matmul)
    },
    MilOp {
        ports: &[tensor("x", FLOATS), weight("weight", FLOATS), optional_weight("bias", FLOATS)],
        constraints: &[
            rule("C1", "x has 1 to 4 axes: reshape it", |a| (1..5).contains(&a.shape("x").len())),
            rule("C2", "x, weight and bias have the same element type: cast them", |a| {
                let same = |port| a.get(port).zip(a.get("x")).is_none_or(|(other, x)| other.ty.dtype == x.ty.dtype);
                same("weight") && same("bias")
            }),
            rule("C3", "weight has shape [out, in] and the last axis of x has extent in", |a| {
                a.shape("weight").len() == 2 && a.shape("weight").last() == a.shape("x").last()
            }),
            rule("C4", "bias has shape [out]", |a| !a.has("bias") || a.shape("bias") == a.shape("weight").get(..1).unwrap_or(&[])),
        ],
        arithmetic: PRODUCTS,
        cases: &[
            Case::new(
                "rows_of_weight_are_outputs",
                &[("x", X23), ("weight", given(&[2, 3], &[1.0, 0.0, 2.0, 0.0, 1.0, -1.0])), ("bias", given(&[2], &[0.5, 10.0]))],
                &[(&[2, 2], &[7.5, 9.0, 16.5, 9.0])],
                BY_HAND,
            ),
            Case::oracle("without_bias", &[("x", sample(&[2, 3, 4], 1)), ("weight", sample(&[5, 4], 2))]),
        ],
        ..base(
            "linear",
            "x times the transposed weight plus bias.",
            |a| {
                let mut shape = a.ty("x")?.shape.clone();
                if let (Some(last), Some(&out)) = (shape.last_mut(), a.ty("weight")?.shape.first()) {
                    *last = out;
                }
                result(a, a.ty("x")?.dtype, shape)
            },
            |a| {
                let (x, weight) = (a.array("x")?, a.array("weight")?);
                let (out, inner) = (weight.ty.shape[0], weight.ty.shape[1]);
                let mut shape = x.ty.shape.clone();
                shape.pop();
                shape.push(out);
                let rows = x.data.len() / inner;
                let mut data = vec![0.0; rows * out];
                product(&x.data, &weight.transposed(&[1, 0]).data, &mut data, inner, out);
                if a.has("bias") {
                    let bias = a.array("bias")?;
                    data.iter_mut().zip(bias.data.iter().cycle()).for_each(|(y, bias)| *y += bias);
                }
                Ok(vec![Array::new(x.ty.dtype, shape, data)])
            },
        )
    },
    MilOp {
        ports: &[variadic("values", FLOATS), constant("equation", TEXT, Default::Required)],
        constraints: &[
            rule("C1", "two values, and an equation like nchw,nwhu->nchu with one letter per axis of each", |a| terms(a).is_some()),
            rule("C2", "a letter stands for one extent, every letter of the result occurs in an operand", |a| {
                terms(a).is_none_or(|terms| extents(a, &terms).is_some())
            }),
        ],
        arithmetic: PRODUCTS_TOO,
        published_error: Some(2e-4),
        cases: &[
            Case::new(
                "matrix_product",
                &[
                    ("values", given(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])),
                    ("values", given(&[1, 2, 2, 1], &[1.0, 10.0, 100.0, 1000.0])),
                    ("equation", text("nchw,nwhu->nchu")),
                ],
                &[(&[1, 1, 2, 1], &[201.0, 4030.0])],
                BY_HAND,
            ),
            Case::oracle(
                "batched_over_height",
                &[
                    ("values", sample(&[2, 3, 4, 5], 1)),
                    ("values", sample(&[2, 5, 4, 6], 2)),
                    ("equation", text("nchw,nwhu->nchu")),
                ],
            ),
        ],
        ..base("einsum", "Sum of products over the letters that the result does not name.", infer_einsum, einsum)
    },
];

/// One operand of a product as matrices.
struct Side<'a> {
    batch: &'a [usize],
    /// Extents of the last two axes as stored; a vector is a row on the left and a column on the right.
    stored: [usize; 2],
    transpose: bool,
    left: bool,
    vector: bool,
}

impl Side<'_> {
    fn matrix(&self) -> [usize; 2] {
        if self.transpose { [self.stored[1], self.stored[0]] } else { self.stored }
    }

    fn inner(&self) -> usize {
        self.matrix()[usize::from(self.left)]
    }

    fn outer(&self) -> usize {
        self.matrix()[usize::from(!self.left)]
    }
}

fn side<'a>(a: &Arguments<'a>, port: &str) -> Side<'a> {
    let left = port == "x";
    let transpose = a.flag(if left { "transpose_x" } else { "transpose_y" });
    match *a.shape(port) {
        [] => Side { batch: &[], stored: [1, 1], transpose, left, vector: false },
        [extent] => Side { batch: &[], stored: if left { [1, extent] } else { [extent, 1] }, transpose: false, left, vector: true },
        [ref batch @ .., rows, columns] => Side { batch, stored: [rows, columns], transpose, left, vector: false },
    }
}

fn infer_matmul(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let dtype = a.ty("x")?.dtype;
    let (x, y) = (side(a, "x"), side(a, "y"));
    let mut shape = broadcast(&[x.batch, y.batch]).unwrap_or_else(|| vec![0]);
    shape.extend((!x.vector).then(|| x.outer()));
    shape.extend((!y.vector).then(|| y.outer()));
    result(a, dtype, shape)
}

fn matmul(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let ty = infer_matmul(a)?.remove(0);
    let (x, y) = (side(a, "x"), side(a, "y"));
    let batch = broadcast(&[x.batch, y.batch]).unwrap_or_default();
    let (x_data, y_data) = (matrices(a.array("x")?, &x, &batch), matrices(a.array("y")?, &y, &batch));
    let (rows, inner, columns) = (x.outer(), x.inner(), y.outer());
    let mut data = vec![0.0; ty.count()];
    for ((x, y), out) in x_data.chunks(rows * inner).zip(y_data.chunks(inner * columns)).zip(data.chunks_mut(rows * columns)) {
        product(x, y, out, inner, columns);
    }
    Ok(vec![Array { ty, data }])
}

/// All matrices of one operand, dense, transposition done, batch broadcast.
fn matrices(array: &Array, side: &Side<'_>, batch: &[usize]) -> Vec<f64> {
    let [rows, columns] = side.stored;
    let mut shape = side.batch.to_vec();
    shape.extend([rows, columns]);
    let stored = array.clone().reshaped(shape);
    let rank = stored.ty.rank();
    let mut axes: Vec<_> = (0..rank).collect();
    if side.transpose {
        axes.swap(rank - 2, rank - 1);
    }
    let mut full = batch.to_vec();
    full.extend(side.matrix());
    stored.transposed(&axes).broadcast_to(&full).data
}

/// `out += x y` for row-major `x [rows, inner]` and `y [inner, columns]`, each sum in the order of the inner axis.
fn product(x: &[f64], y: &[f64], out: &mut [f64], inner: usize, columns: usize) {
    // A band of rows shares each block of y while that is in cache.
    const BAND: usize = 16;
    const BLOCK: usize = 64;
    out.par_chunks_mut(BAND * columns).zip(x.par_chunks(BAND * inner)).for_each(|(out, x)| {
        for from in (0..inner).step_by(BLOCK) {
            let to = (from + BLOCK).min(inner);
            for (out, x) in out.chunks_mut(columns).zip(x.chunks(inner)) {
                for (k, &x) in x.iter().enumerate().take(to).skip(from) {
                    out.iter_mut().zip(&y[k * columns..]).for_each(|(out, y)| *out += x * y);
                }
            }
        }
    });
}

/// The letters of both operands and of the result.
fn terms<'a>(a: &Arguments<'a>) -> Option<[&'a str; 3]> {
    let (operands, result) = a.text("equation")?.split_once("->")?;
    let (first, second) = operands.split_once(',')?;
    let terms = [first.trim(), second.trim(), result.trim()];
    let plain = |term: &str| {
        term.bytes().enumerate().all(|(index, letter)| letter.is_ascii_lowercase() && !term.as_bytes()[..index].contains(&letter))
    };
    let [x, y] = a.all("values") else { return None };
    (terms.iter().all(|term| plain(term)) && first.trim().len() == x.ty.rank() && second.trim().len() == y.ty.rank())
        .then_some(terms)
}

/// Extent of each letter, in order of appearance.
fn extents(a: &Arguments<'_>, terms: &[&str; 3]) -> Option<Vec<(u8, usize)>> {
    let mut known: Vec<(u8, usize)> = Vec::new();
    for (term, value) in terms.iter().zip(a.all("values")) {
        for (letter, &extent) in term.bytes().zip(&value.ty.shape) {
            match known.iter().find(|entry| entry.0 == letter) {
                Some(entry) if entry.1 != extent => return None,
                Some(_) => {}
                None => known.push((letter, extent)),
            }
        }
    }
    terms[2].bytes().all(|letter| known.iter().any(|entry| entry.0 == letter)).then_some(known)
}

fn infer_einsum(a: &Arguments<'_>) -> Result<Vec<TensorType>, OpError> {
    let dtype = a.all("values").first().map_or(DType::Fp16, |value| value.ty.dtype);
    let shape = terms(a).and_then(|terms| {
        let known = extents(a, &terms)?;
        terms[2].bytes().map(|letter| known.iter().find(|entry| entry.0 == letter).map(|entry| entry.1)).collect()
    });
    result(a, dtype, shape.unwrap_or_else(|| vec![0]))
}

fn einsum(a: &Arguments<'_>) -> Result<Vec<Array>, OpError> {
    let ty = infer_einsum(a)?.remove(0);
    let (Some(terms), [x, y]) = (terms(a), a.all("values")) else { return Err(a.missing("equation")) };
    let (Some(x), Some(y)) = (&x.value, &y.value) else { return Err(a.missing("values")) };
    let mut letters = extents(a, &terms).unwrap_or_default();
    // Letters of the result first and in its order, so that the result is written in order.
    letters.sort_by_key(|entry| terms[2].bytes().position(|letter| letter == entry.0).unwrap_or(usize::MAX));
    let steps = |term: &str, shape: &[usize]| -> Vec<usize> {
        let strides = strides(shape);
        letters.iter().map(|entry| term.bytes().position(|letter| letter == entry.0).map_or(0, |axis| strides[axis])).collect()
    };
    let (x_steps, y_steps) = (steps(terms[0], &x.ty.shape), steps(terms[1], &y.ty.shape));
    let kept = terms[2].len();
    let offsets = |mut index: usize, range: std::ops::Range<usize>| {
        let mut offsets = (0, 0);
        for letter in range.rev() {
            let position = index % letters[letter].1;
            index /= letters[letter].1;
            offsets = (offsets.0 + position * x_steps[letter], offsets.1 + position * y_steps[letter]);
        }
        offsets
    };
    let summed = letters[kept..].iter().map(|entry| entry.1).product::<usize>();
    let element = |index: usize| {
        let at = offsets(index, 0..kept);
        let term = |k: usize| {
            let more = offsets(k, kept..letters.len());
            x.data[at.0 + more.0] * y.data[at.1 + more.1]
        };
        (0..summed).map(term).sum()
    };
    let data = (0..ty.count()).map(element).collect();
    Ok(vec![Array { ty, data }])
}
