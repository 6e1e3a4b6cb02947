//! Borders.

use super::normalization::wide;
use super::shape::moving;
use super::*;

/// The border along one axis added back to the elements that it repeats: mirrored without the edge, or the edge alone.
fn fold_border(grad: &Tensor, axis: usize, extent: i64, pad: &[i64], mirrored: bool) -> Tensor {
    let (before, after) = (pad.first().copied().unwrap_or(0), pad.get(1).copied().unwrap_or(0));
    let Ok(shape) = grad.shape() else { return grad.clone() };
    let part = |from: i64, count: i64| {
        let (mut begin, mut size) = (vec![0; shape.len()], wide(shape));
        (begin[axis], size[axis]) = (from, count);
        grad.slice_by_size(&begin, &size)
    };
    let placed = |part: Tensor, front: i64, behind: i64| {
        let mut pad = vec![0; 2 * shape.len()];
        (pad[2 * axis], pad[2 * axis + 1]) = (front, behind);
        part.pad(&pad, 0.0)
    };
    let mut sum = part(before, extent);
    for (from, count, at_front) in [(0, before, true), (before + extent, after, false)] {
        if count == 0 {
            continue;
        }
        let border = part(from, count);
        let (border, gap, rest) = if mirrored {
            (border.reverse(axis as i64), 1, extent - 1 - count)
        } else {
            (border.reduce_sum(axis as i64, true), 0, extent - 1)
        };
        sum = sum.add(&if at_front { placed(border, gap, rest) } else { placed(border, rest, gap) });
    }
    sum
}

/// A border.
pub static PAD: GraphOp = GraphOp {
    inputs: &[input("x", NUMBERS)],
    attributes: &[
        ints("pad", Default::Required),
        word("mode", &["constant", "reflect", "replicate"], "constant"),
        float("constant_val", 0.0),
    ],
    constraints: &[
        rule(
            "C1",
            "pad has two integers per axis of x, before and after, none negative: use slice_by_size to cut",
            |s| s.ints("pad").len() == 2 * s.rank("x") && s.ints("pad").iter().all(|&pad| (0..1 << 24).contains(&pad)),
            Case::refused(&[drawn("x", &[2, 3])], &[("pad", Default::Ints(&[0, 0, -1, 0]))]),
        ),
        rule(
            "C2",
            "mode reflect pads less than the axis is long, replicate at most that: pad several times",
            |s| {
                let slack = match s.text("mode") {
                    "reflect" => 1,
                    "replicate" => 0,
                    _ => return true,
                };
                s.shape("x")
                    .iter()
                    .zip(s.ints("pad").chunks_exact(2))
                    .all(|(&extent, pad)| pad.iter().all(|&pad| pad + slack <= extent as i64))
            },
            Case::refused(&[drawn("x", &[2, 3])], &[("pad", Default::Ints(&[0, 0, 3, 0])), ("mode", Default::Text("reflect"))]),
        ),
    ],
    cases: &[
        Case::values(
            "one_to_the_right",
            &[given("x", &[2, 2], &[1.0, 2.0, 3.0, 4.0])],
            &[("pad", Default::Ints(&[0, 0, 0, 1])), ("constant_val", Default::Float(9.0))],
            (&[2, 3], &[1.0, 2.0, 9.0, 3.0, 4.0, 9.0]),
            "by hand",
        ),
        Case::values(
            "mirrored_without_the_edge",
            &[given("x", &[1, 3], &[1.0, 2.0, 3.0])],
            &[("pad", Default::Ints(&[0, 0, 2, 1])), ("mode", Default::Text("reflect"))],
            (&[1, 6], &[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]),
            "by hand",
        ),
        Case::values(
            "the_edge_again",
            &[given("x", &[2, 2], &[1.0, 2.0, 3.0, 4.0])],
            &[("pad", Default::Ints(&[1, 0, 1, 2])), ("mode", Default::Text("replicate"))],
            (&[3, 5], &[1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0]),
            "by hand",
        ),
    ],
    ..moving("pad", "x with a border.", |b| {
        let s = b.site();
        let grad = match s.text("mode") {
            "constant" => {
                let begin: Vec<i64> = s.ints("pad").iter().step_by(2).copied().collect();
                b.grad().slice_by_size(&begin, &wide(s.shape("x")))
            }
            mode => {
                let axes = s.shape("x").iter().zip(s.ints("pad").chunks_exact(2)).enumerate();
                axes.fold(b.grad(), |grad, (axis, (&extent, pad))| fold_border(&grad, axis, extent as i64, pad, mode == "reflect"))
            }
        };
        b.give("x", grad);
    })
};

pub(super) const ALL: &[&GraphOp] = &[&PAD];
