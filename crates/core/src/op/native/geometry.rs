//! Cross products, template matching, stereo costs and sets of points.

use super::*;
use aneforge_native::layer;

/// Cross product of two vectors.
pub static CROSS_PRODUCT: GraphOp = GraphOp {
    inputs: &[input("a", HALF), input("b", HALF)],
    constraints: &[rule(
        "C1",
        "a and b have three elements each, on one to four axes",
        |s| ["a", "b"].iter().all(|&input| fits(s, input) && s.shape(input).iter().product::<usize>() == 3),
        Case::refused(&[drawn("a", &[3]), drawn("b", &[4])], &[]),
    )],
    vjp: Vjp::Rule(|b| {
        let (first, second, grad) = (b.input("a"), b.input("b"), b.grad());
        let shaped = |tensor: Tensor, like: &[usize]| tensor.reshape(&like.iter().map(|&extent| extent as i64).collect::<Vec<_>>());
        let (a_shape, b_shape) = (b.site().shape("a").to_vec(), b.site().shape("b").to_vec());
        b.give("a", shaped(second.cross_product(&grad), &a_shape));
        b.give("b", shaped(grad.cross_product(&first), &b_shape));
    }),
    cases: &[
        Case::values(
            "right_handed",
            &[given("a", &[3], &[1.0, 0.0, 0.0]), given("b", &[3], &[0.0, 1.0, 0.0])],
            &[],
            (&[3], &[0.0, 0.0, 1.0]),
            "numpy.cross",
        ),
        Case::shape("a_column", &[drawn("a", &[3, 1]), drawn("b", &[1, 3])], &[], &[3]),
    ],
    ..native("cross_product", "The cross product of two vectors of three elements.", |l, s| {
        let a = l.reshaped(s.value("a")?, &[1, 3, 1, 1])?;
        let b = l.reshaped(s.value("b")?, &[1, 3, 1, 1])?;
        let product = super::layer(l, &layer::CROSS_PRODUCT, &[("x", a.into()), ("z", b.into())])?;
        Ok(vec![l.reshaped(product, &[3])?])
    })
};

/// Correlation of an image with a template.
pub static CROSS_CORRELATION: GraphOp = GraphOp {
    inputs: &[input("x", HALF), input("template", HALF)],
    attributes: &[ints("pad", Default::Ints(&[0, 0, 0, 0]))],
    constraints: &[
        rule(
            "C1",
            "x and template are one plane each: [height, width]",
            |s| s.rank("x") == 2 && s.rank("template") == 2,
            Case::refused(&[drawn("x", &[1, 3, 3]), drawn("template", &[2, 2])], &[]),
        ),
        rule(
            "C2",
            "template is at most 15 high and wide: use conv for larger ones",
            |s| s.shape("template").iter().all(|&extent| extent <= 15),
            Case::refused(&[drawn("x", &[2, 20]), drawn("template", &[1, 16])], &[]),
        ),
        rule(
            "C3",
            "pad is [top, bottom, left, right], none negative or as large as the template",
            |s| {
                let template = s.shape("template");
                s.ints("pad").len() == 4
                    && s.ints("pad").iter().enumerate().all(|(at, pad)| (0..template[at / 2] as i64).contains(pad))
            },
            Case::refused(&[drawn("x", &[3, 3]), drawn("template", &[2, 2])], &[("pad", Default::Ints(&[0, 0, 2, 0]))]),
        ),
        rule(
            "C4",
            "template fits into the padded x",
            |s| {
                let pads = s.ints("pad");
                let padded = |axis: usize| s.shape("x")[axis] as i64 + pads[2 * axis] + pads[2 * axis + 1];
                (0..2).all(|axis| s.shape("template")[axis] as i64 <= padded(axis))
            },
            Case::refused(&[drawn("x", &[3, 3]), drawn("template", &[4, 2])], &[]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let (&[height, width], &[top, bottom, left, right]) = (s.shape("template"), s.ints("pad")) else { return };
        let (x, template, grad) = (b.input("x"), b.input("template"), b.grad());
        if b.wants("x") {
            // Each element of x meets the template from its last place to its first.
            let (high, wide) = (height as i64 - 1, width as i64 - 1);
            let around = [high - top, high - bottom, wide - left, wide - right];
            b.give("x", grad.cross_correlation(&template.reverse([0, 1]), around));
        }
        if b.wants("template") {
            let padded = x.pad(&[top, bottom, left, right], 0.0);
            let size = signed(grad.shape().unwrap_or(&[]));
            let met = |tap: usize| padded.slice_by_size(&signed(&[tap / width, tap % width]), &size).reshape(&[1, -1]);
            let met: Vec<Tensor> = (0..height * width).map(met).collect();
            let sums = crate::concat(&met, 0).matmul(&grad.reshape(&[-1, 1]));
            b.give("template", sums.reshape(&signed(&[height, width])));
        }
    }),
    cases: &[
        Case::values(
            "not_flipped",
            &[given("x", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), given("template", &[1, 2], &[1.0, 10.0])],
            &[],
            (&[2, 2], &[21.0, 32.0, 54.0, 65.0]),
            "scipy.signal.correlate2d",
        ),
        Case::shape(
            "padding_that_differs_by_side",
            &[drawn("x", &[4, 3]), drawn("template", &[3, 2])],
            &[("pad", Default::Ints(&[2, 1, 0, 1]))],
            &[5, 3],
        ),
    ],
    ..native("cross_correlation", "The sum of products of a template with every part of x of its size.", |l, s| {
        let (x, template) = (s.value("x")?, s.value("template")?);
        let &[height, width] = s.shape("template") else { return Err(GraphError::NoOutputs) };
        let image = four(l, x)?;
        let flat = l.reshaped(template, &[1, 1, 1, height * width])?;
        let mut arguments = vec![
            ("x", image.into()),
            ("template", flat.into()),
            ("TemplateHeight", int_arg(height)),
            ("TemplateWidth", int_arg(width)),
            ("NumGroups", int_arg(1)),
        ];
        for (port, &pad) in ["PadTop", "PadBot", "PadLeft", "PadRight"].into_iter().zip(s.ints("pad")) {
            arguments.push((port, Arg::Int(DType::Int32, pad)));
        }
        let found = super::layer(l, &layer::CROSS_CORRELATION, &arguments)?;
        let shape = l.shape(found)[2..].to_vec();
        Ok(vec![l.reshaped(found, &shape)?])
    })
};

/// Costs of matching two lines.
pub static COST_VOLUME: GraphOp = GraphOp {
    inputs: &[input("aux", HALF), input("ref", HALF)],
    attributes: &[int("disparity_range", Default::Int(1))],
    constraints: &[
        rule(
            "C1",
            "aux and ref are one line each: [width]",
            |s| s.rank("aux") == 1 && s.rank("ref") == 1,
            Case::refused(&[drawn("aux", &[1, 3]), drawn("ref", &[5])], &[]),
        ),
        rule(
            "C2",
            "disparity_range is at least 0, and ref is at least that much wider than aux: pad it",
            |s| s.size("disparity_range").is_some_and(|range| s.shape("ref")[0] >= s.shape("aux")[0].saturating_add(range)),
            Case::refused(&[drawn("aux", &[3]), drawn("ref", &[3])], &[]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let (width, whole, range) = (s.shape("aux")[0], s.shape("ref")[0], s.size("disparity_range").unwrap_or(0));
        let (aux, other, grad) = (b.input("aux"), b.input("ref"), b.grad());
        let lines: Vec<Tensor> = (0..=range).map(|shift| other.slice_by_size(&signed(&[shift]), &signed(&[width]))).collect();
        let slopes = aux.sub(&crate::stack(&lines, 0)).sign().mul(&grad);
        if b.wants("ref") {
            let back = |shift: usize| {
                let line = slopes.slice_by_size(&signed(&[shift, 0]), &signed(&[1, width])).reshape(&signed(&[width]));
                line.pad(&signed(&[shift, whole - width - shift]), 0.0)
            };
            let sum = (1..=range).fold(back(0), |sum, shift| sum.add(&back(shift)));
            b.give("ref", sum.scale(-1.0));
        }
        b.give("aux", slopes.reduce_sum(0, false));
    }),
    cases: &[
        Case::values(
            "absolute_differences",
            &[given("aux", &[3], &[1.0, 2.0, 3.0]), given("ref", &[4], &[1.0, 5.0, 9.0, 2.0])],
            &[],
            (&[2, 3], &[0.0, 3.0, 6.0, 4.0, 7.0, 1.0]),
            "by hand",
        ),
        Case::shape(
            "a_line_wider_than_needed",
            &[drawn("aux", &[4]), drawn("ref", &[7])],
            &[("disparity_range", Default::Int(2))],
            &[3, 4],
        ),
    ],
    ..native("cost_volume", "The distance of each value of aux from that of ref 0 to disparity_range places further on.", |l, s| {
        let aux = s.value("aux").and_then(|aux| four(l, aux))?;
        let other = s.value("ref").and_then(|other| four(l, other))?;
        let range = s.size("disparity_range").unwrap_or(0);
        let arguments =
            [("aux", aux.into()), ("ref", other.into()), ("DisparityDirection", int_arg(0)), ("DisparityRange", int_arg(range))];
        let costs = super::layer(l, &layer::COST_VOLUME, &arguments)?;
        Ok(vec![l.reshaped(costs, &[range + 1, s.shape("aux")[0]])?])
    })
};

const POINTS: Sample = given("points", &[4, 3], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 3.0, 0.0]);

fn is_cloud(s: &Site<'_>, input: &str) -> bool {
    s.rank(input) == 2 && s.shape(input)[1] == 3
}

/// Points `[count, 3]` as three channels of one row.
fn cloud(l: &mut Lowering, points: ValueId) -> Result<ValueId, GraphError> {
    let count = l.shape(points)[0];
    let moved = l.op("transpose", &[("x", points.into()), ("perm", vec![1i64, 0].into())])?;
    l.reshaped(moved, &[1, 3, 1, count])
}

/// Points far from each other.
pub static FPS: GraphOp = GraphOp {
    inputs: &[input("points", HALF)],
    attributes: &[int("k", Default::Required)],
    constraints: &[
        rule(
            "C1",
            "points are [count, 3]",
            |s| is_cloud(s, "points"),
            Case::refused(&[drawn("points", &[4, 2])], &[("k", Default::Int(2))]),
        ),
        rule(
            "C2",
            "there are 2 to 8192 points",
            |s| (2..=8192).contains(&s.shape("points")[0]),
            Case::refused(&[drawn("points", &[8193, 3])], &[("k", Default::Int(2))]),
        ),
        rule(
            "C3",
            "k is 2 to 1024 and at most the number of points",
            |s| s.size("k").is_some_and(|k| (2..=s.shape("points")[0].min(1024)).contains(&k)),
            Case::refused(&[POINTS], &[("k", Default::Int(5))]),
        ),
    ],
    vjp: Vjp::None("which points are chosen has no derivative; gather them by place to train through them"),
    tolerance: 0.0,
    cases: &[Case::values(
        "starts_at_the_first_point",
        &[POINTS],
        &[("k", Default::Int(3))],
        (&[3, 3], &[0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 3.0, 0.0]),
        "by hand",
    )],
    ..native("fps", "The first point, then again and again the one furthest from all chosen, by Euclidean distance.", |l, s| {
        let points = s.value("points").and_then(|points| cloud(l, points))?;
        let k = s.size("k").unwrap_or(2);
        let arguments = [("points", points.into()), ("CentroidCount", int_arg(k)), ("DistanceMetric", word("L2"))];
        let chosen = super::layer(l, &layer::FURTHEST_POINT_SAMPLING, &arguments)?;
        let flat = l.reshaped(chosen, &[3, k])?;
        Ok(vec![l.op("transpose", &[("x", flat.into()), ("perm", vec![1i64, 0].into())])?])
    })
};

/// Which points lie near which.
pub static RADIUS_SEARCH: GraphOp = GraphOp {
    inputs: &[input("points", HALF), input("centroids", HALF)],
    attributes: &[required_float("radius")],
    constraints: &[
        rule(
            "C1",
            "points and centroids are [count, 3] each",
            |s| is_cloud(s, "points") && is_cloud(s, "centroids"),
            Case::refused(&[POINTS, drawn("centroids", &[3])], &[("radius", Default::Float(1.0))]),
        ),
        rule(
            "C2",
            "radius is positive and finite",
            |s| s.float("radius").is_some_and(|radius| radius > 0.0 && radius.is_finite()),
            Case::refused(&[POINTS, drawn("centroids", &[1, 3])], &[("radius", Default::Float(0.0))]),
        ),
    ],
    vjp: Vjp::None("membership has no derivative"),
    tolerance: 0.0,
    cases: &[Case::values(
        "the_border_belongs_to_the_ball",
        &[POINTS, given("centroids", &[2, 3], &[0.0, 0.0, 0.0, 5.0, 0.0, 0.0])],
        &[("radius", Default::Float(1.0))],
        (&[4, 2], &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
        "by hand",
    )],
    ..native("radius_search", "For each point, by 1 or 0, which centroids it is no further away from than radius.", |l, s| {
        let points = s.value("points").and_then(|points| cloud(l, points))?;
        let centroids = s.value("centroids").and_then(|centroids| cloud(l, centroids))?;
        let radius = Arg::Float(DType::Fp32, s.float("radius").unwrap_or(1.0));
        let found = super::layer(
            l,
            &layer::RADIUS_SEARCH,
            &[("centroids", centroids.into()), ("points", points.into()), ("Radius", radius)],
        )?;
        Ok(vec![l.reshaped(found, &[s.shape("points")[0], s.shape("centroids")[0]])?])
    })
};
