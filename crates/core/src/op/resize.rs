//! Maps at another size.

use super::*;

const THREE: &str = "x has 3 to 5 axes, of which the last two are resized: reshape it";
const FLAT: &[Sample] = &[drawn("x", &[4, 4])];
const TARGETS: &[AttributeSpec] = &[int("target_size_height", Default::Required), int("target_size_width", Default::Required)];
const SMALL: &[(&str, Default)] = &[("target_size_height", Default::Int(2)), ("target_size_width", Default::Int(2))];

fn targets_positive(s: &Site<'_>) -> bool {
    (1..1 << 20).contains(&s.int("target_size_height")) && (1..1 << 20).contains(&s.int("target_size_width"))
}

const TARGET_RULES: &[Constraint] = &[
    rule("C1", THREE, |s| s.rank("x") >= 3, Case::refused(FLAT, SMALL)),
    rule(
        "C2",
        "target sizes are positive",
        targets_positive,
        Case::refused(
            &[drawn("x", &[1, 1, 2, 2])],
            &[("target_size_height", Default::Int(0)), ("target_size_width", Default::Int(2))],
        ),
    ),
];

const fn resizing(name: &'static str, summary: &'static str) -> GraphOp {
    GraphOp { vjp: Vjp::Rule(separable_gradient), ..direct(name, summary) }
}

/// Rows and columns are resized one after the other, each by a matrix; the gradient goes through their transposes.
fn separable_gradient(b: &mut Backward<'_>) {
    let s = b.site();
    let Some(&[rows, columns]) = s.shape("x").last_chunk::<2>() else { return };
    let matrices = axis_matrix(&s, rows, true).and_then(|down| Ok((down, axis_matrix(&s, columns, false)?)));
    let (dtype, graph) = (s.dtype("x"), b.graph());
    let grad = match matrices {
        Ok((down, across)) => {
            let matrix = |array: &Array| graph.values(dtype, array.shape(), &array.data);
            // Both are [old extent, new extent].
            matrix(&down).matmul(&b.grad()).matmul_with(&matrix(&across), false, true)
        }
        Err(error) => graph.failed(error),
    };
    b.give("x", grad);
}

/// How much each old place of one axis counts for each new one: the operator itself applied to the unit vectors, the other axis
/// left at extent 1.
fn axis_matrix(s: &Site<'_>, extent: usize, height: bool) -> Result<Array, GraphError> {
    let other = if height { "_width" } else { "_height" };
    let attributes: Vec<(&str, Attribute)> =
        s.op.attributes
            .iter()
            .zip(s.attributes)
            .map(|(spec, value)| match value {
                Attribute::Int(_) if spec.name.ends_with(other) => (spec.name, Attribute::Int(1)),
                Attribute::Float(_) if spec.name.ends_with(other) => (spec.name, Attribute::Float(1.0)),
                value => (spec.name, value.clone()),
            })
            .collect();
    let graph = Graph::new();
    let shape = if height { [extent, extent, 1] } else { [extent, 1, extent] };
    let x = graph.input("x", DType::Fp32, &shape);
    let y = graph.apply_one(s.op, &[Argument::One(&x)], &attributes);
    let body = crate::lower(&[("y".to_string(), y)], crate::Target::Generic)?;
    let mut unit = vec![0.0; extent * extent];
    unit.iter_mut().step_by(extent + 1).for_each(|value| *value = 1.0);
    let mut results = crate::evaluate(&body, &[Array::new(DType::Fp32, shape, unit)])
        .map_err(|error| GraphError::NotDifferentiable { op: s.op.name, reason: error.to_string() })?;
    let Some(result) = results.pop() else { return Err(GraphError::NoOutputs) };
    let columns = result.data.len() / extent;
    Ok(Array::new(DType::Fp32, [extent, columns], result.data))
}

/// Bilinear enlargement.
pub static UPSAMPLE_BILINEAR: GraphOp = GraphOp {
    attributes: &[float("scale_factor_height", 2.0), float("scale_factor_width", 2.0), flag("align_corners", false)],
    constraints: &[
        rule("C1", THREE, |s| s.rank("x") >= 3, Case::refused(FLAT, &[])),
        rule(
            "C2",
            "scale factors are positive, finite and leave at least one row and one column",
            |s| {
                let leaves = |name: &str, from_end: usize| {
                    let extent = s.shape("x")[s.rank("x") - from_end] as f64;
                    s.float(name).is_some_and(|factor| factor.is_finite() && (1.0..1e6).contains(&(factor * extent).floor()))
                };
                leaves("scale_factor_height", 2) && leaves("scale_factor_width", 1)
            },
            Case::refused(&[drawn("x", &[1, 1, 2, 2])], &[("scale_factor_width", Default::Float(0.25))]),
        ),
    ],
    lower: |l, s| {
        let factor = |name| Arg::Float(DType::Fp32, s.float(name).unwrap_or(1.0));
        l.ops(
            "upsample_bilinear",
            &[
                ("x", s.value("x")?.into()),
                ("scale_factor_height", factor("scale_factor_height")),
                ("scale_factor_width", factor("scale_factor_width")),
                ("align_corners", s.flag("align_corners").into()),
            ],
        )
    },
    cases: &[
        Case::values(
            "corners_stay",
            &[given("x", &[1, 1, 2], &[0.0, 9.0])],
            &[("scale_factor_height", Default::Float(1.0)), ("align_corners", Default::Flag(true))],
            (&[1, 1, 4], &[0.0, 3.0, 6.0, 9.0]),
            "by hand",
        ),
        Case::values(
            "centres_of_pixels",
            &[given("x", &[1, 1, 2], &[0.0, 10.0])],
            &[("scale_factor_height", Default::Float(1.0))],
            (&[1, 1, 4], &[0.0, 2.5, 7.5, 10.0]),
            "by hand",
        ),
        Case::shape(
            "another_factor_per_axis",
            &[drawn("x", &[1, 2, 3, 4])],
            &[("scale_factor_height", Default::Float(3.0))],
            &[1, 2, 9, 8],
        ),
    ],
    ..resizing("upsample_bilinear", "x enlarged by factors, each pixel blended from its four neighbours.")
};

/// Bilinear resizing.
pub static RESIZE_BILINEAR: GraphOp = GraphOp {
    attributes: &[
        int("target_size_height", Default::Required),
        int("target_size_width", Default::Required),
        word(
            "sampling_mode",
            &["DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS"],
            "DEFAULT",
        ),
    ],
    constraints: TARGET_RULES,
    cases: &[
        Case::values(
            "asymmetric_by_default",
            &[given("x", &[1, 1, 2], &[0.0, 10.0])],
            &[("target_size_height", Default::Int(1)), ("target_size_width", Default::Int(5))],
            (&[1, 1, 5], &[0.0, 4.0, 8.0, 10.0, 10.0]),
            "coremltools 9.0, documentation of resize_bilinear",
        ),
        Case::values(
            "aligned_corners",
            &[given("x", &[1, 1, 2], &[0.0, 10.0])],
            &[
                ("target_size_height", Default::Int(1)),
                ("target_size_width", Default::Int(5)),
                ("sampling_mode", Default::Text("STRICT_ALIGN_CORNERS")),
            ],
            (&[1, 1, 5], &[0.0, 2.5, 5.0, 7.5, 10.0]),
            "coremltools 9.0, documentation of resize_bilinear",
        ),
        Case::shape(
            "larger_and_smaller",
            &[drawn("x", &[2, 2, 3, 6])],
            &[
                ("target_size_height", Default::Int(5)),
                ("target_size_width", Default::Int(4)),
                ("sampling_mode", Default::Text("UNALIGN_CORNERS")),
            ],
            &[2, 2, 5, 4],
        ),
    ],
    ..resizing("resize_bilinear", "x at another size, each pixel blended from its four neighbours.")
};

/// Resizing without blending.
pub static RESIZE_NEAREST_NEIGHBOR: GraphOp = GraphOp {
    attributes: TARGETS,
    constraints: TARGET_RULES,
    tolerance: 0.0,
    cases: &[
        Case::values(
            "floor_of_the_scaled_place",
            &[given("x", &[1, 1, 3], &[1.0, 2.0, 3.0])],
            &[("target_size_height", Default::Int(1)), ("target_size_width", Default::Int(5))],
            (&[1, 1, 5], &[1.0, 1.0, 2.0, 2.0, 3.0]),
            "by hand",
        ),
        Case::shape(
            "larger_and_smaller",
            &[drawn("x", &[2, 2, 3, 6])],
            &[("target_size_height", Default::Int(5)), ("target_size_width", Default::Int(4))],
            &[2, 2, 5, 4],
        ),
    ],
    ..resizing("resize_nearest_neighbor", "x at another size, each pixel from the one at the floor of its scaled place.")
};

pub(super) const ALL: &[&GraphOp] = &[&UPSAMPLE_BILINEAR, &RESIZE_BILINEAR, &RESIZE_NEAREST_NEIGHBOR];
