//! Sets of points in space: three channels, one place of the width for each point.

use super::build::*;
use super::{Layer, ParamKind};
use aneforge_mil::op::{Arguments, Case, Given, MilOp, int, values};
use aneforge_mil::{Array, DType};

const FOUR_POINTS: Given = given(&[1, 3, 1, 4], &[0.0, 1.0, 5.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0]);

fn are_points(a: &Arguments<'_>, port: &str) -> bool {
    let [batch, channels, height, _] = extents(a, port);
    [batch, channels, height] == [1, 3, 1]
}

/// Squared distance of two points of two sets.
fn distance(a: &Array, i: usize, b: &Array, j: usize) -> f64 {
    let (width, other) = (a.shape()[3], b.shape()[3]);
    (0..3).map(|axis| (a.data[axis * width + i] - b.data[axis * other + j]).powi(2)).sum()
}

/// Points far from each other.
pub static FURTHEST_POINT_SAMPLING: Layer = Layer {
    bottoms: &[&["points"]],
    ..layer(
        MilOp {
            ports: &[x("points"), ints("CentroidCount"), optional_word("DistanceMetric")],
            constraints: &[
                FOUR,
                rule("C2", "points are three channels of one row: [1, 3, 1, count]", |a| are_points(a, "points")),
                rule("C3", "there are 2 to 8192 points (arXiv 2606.22283, chapter 26)", |a| {
                    (2..=8192).contains(&extents(a, "points")[3])
                }),
                rule("C4", "CentroidCount is 2 to 1024 and at most the number of points", |a| {
                    (2..=extents(a, "points")[3].min(1024)).contains(&size(a, "CentroidCount"))
                }),
                rule("C5", "DistanceMetric is L1 or L2; the engine takes L2 either way", |a| {
                    !a.has("DistanceMetric") || is_one_of(a, "DistanceMetric", &["L1", "L2"])
                }),
            ],
            arithmetic: LAYER,
            cases: &[Case::new(
                "starts_at_the_first_point",
                &[("points", FOUR_POINTS), ("CentroidCount", int(&[3.0])), ("DistanceMetric", text("L2"))],
                &[(&[1, 3, 1, 3], &[0.0, 5.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0])],
                BY_HAND,
            )],
            ..unary(
                "FurthestPointSampling",
                "The first point, then again and again the point furthest from all that are chosen, by Euclidean distance.",
                |a| computed(a, DType::Fp16, vec![1, 3, 1, size(a, "CentroidCount") as i128]),
                |a| {
                    let points = a.array("points")?;
                    let chosen = furthest(points, size(a, "CentroidCount"));
                    let width = points.shape()[3];
                    let data = (0..3).flat_map(|axis| chosen.iter().map(move |&place| points.data[axis * width + place])).collect();
                    of(computed(a, DType::Fp16, vec![1, 3, 1, chosen.len() as i128])?, data)
                },
            )
        },
        &[param("CentroidCount", ParamKind::Int), param("DistanceMetric", ParamKind::Word(&["L1", "L2"]))],
    )
};

fn furthest(points: &Array, count: usize) -> Vec<usize> {
    let mut nearest = vec![f64::INFINITY; points.shape()[3]];
    let mut chosen = vec![0];
    while chosen.len() < count {
        let last = chosen[chosen.len() - 1];
        nearest.iter_mut().enumerate().for_each(|(place, nearest)| *nearest = nearest.min(distance(points, place, points, last)));
        // The first of equally far points.
        let best = nearest.iter().enumerate().fold(0, |best, (place, &far)| if far > nearest[best] { place } else { best });
        chosen.push(best);
    }
    chosen
}

/// Which points lie near which.
pub static RADIUS_SEARCH: Layer = Layer {
    bottoms: &[&["centroids", "points"]],
    ..layer(
        MilOp {
            ports: &[x("centroids"), x("points"), real("Radius")],
            constraints: &[
                FOUR,
                rule("C2", "centroids and points are three channels of one row each: [1, 3, 1, count]", |a| {
                    are_points(a, "centroids") && are_points(a, "points")
                }),
                rule("C3", "Radius is positive", |a| a.number("Radius").is_some_and(|radius| radius > 0.0 && radius.is_finite())),
            ],
            arithmetic: LAYER,
            tolerance: 0.0,
            cases: &[Case::new(
                "the_border_belongs_to_the_ball",
                &[
                    ("centroids", given(&[1, 3, 1, 2], &[0.0, 5.0, 0.0, 0.0, 0.0, 0.0])),
                    ("points", FOUR_POINTS),
                    ("Radius", values(DType::Fp32, &[], &[1.0])),
                ],
                &[(&[1, 1, 4, 2], &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0])],
                BY_HAND,
            )],
            ..unary(
                "RadiusSearch",
                "For each point a row that says, by 1 or 0, which centroids it is no further away from than Radius.",
                |a| computed(a, DType::Fp16, vec![1, 1, extents(a, "points")[3] as i128, extents(a, "centroids")[3] as i128]),
                |a| {
                    let (centroids, points) = (a.array("centroids")?, a.array("points")?);
                    let limit = a.number("Radius").unwrap_or(0.0).powi(2);
                    let (rows, columns) = (points.shape()[3], centroids.shape()[3]);
                    let near = |row, column| f64::from(u8::from(distance(points, row, centroids, column) <= limit));
                    let data = (0..rows).flat_map(|row| (0..columns).map(move |column| near(row, column))).collect();
                    of(computed(a, DType::Fp16, vec![1, 1, rows as i128, columns as i128])?, data)
                },
            )
        },
        &[param("Radius", ParamKind::Real)],
    )
};
