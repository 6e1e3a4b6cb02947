//! Normalisations and scaled arithmetic.

use super::*;
use aneforge_native::layer;

const SIDES: &[&str] = &["Width", "Height"];

/// Values of a line moved to the interval from 0 to 1.
pub static MINMAX_NORM: GraphOp = GraphOp {
    attributes: &[super::super::word("dimension", SIDES, "Width"), float("eps", 1e-4)],
    constraints: &[
        rule("C1", AXES, |s| fits(s, "x"), Case::refused(&[drawn("x", &[1, 1, 1, 1, 2])], &[])),
        rule(
            "C2",
            "eps is at least 2^-24, the smallest fp16 number: lines of equal values would divide by nothing",
            |s| s.float("eps").is_some_and(|eps| (2f64.powi(-24)..=65504.0).contains(&eps)),
            Case::refused(&[drawn("x", &[1, 2])], &[("eps", Default::Float(1e-9))]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let (shape, eps) = (s.shape("x"), s.float("eps").unwrap_or(1e-4));
        let axis = if s.text("dimension") == "Height" { 2 } else { 3 };
        let four = signed(&padded(shape));
        let [x, y, grad] = [b.input("x"), b.output(), b.grad()].map(|tensor| tensor.reshape(&four));
        let (least, greatest) = (x.reduce_min(axis, true), x.reduce_max(axis, true));
        let (sum, along) = (grad.reduce_sum(axis, true), grad.mul(&y).reduce_sum(axis, true));
        // What moves an end goes to the elements there; ties share it evenly.
        let at = |end: &Tensor, moved: &Tensor| {
            let (hit, zero) = (x.equal(end), x.constant_like(0.0));
            let ties = hit.select(&x.constant_like(1.0), &zero).reduce_sum(axis, true);
            hit.select(&moved.real_div(&ties), &zero)
        };
        let all = grad.add(&at(&least, &along.sub(&sum))).sub(&at(&greatest, &along));
        let all = all.real_div(&greatest.sub(&least).adds(eps)).reshape(&signed(shape));
        b.give("x", all);
    }),
    cases: &[
        Case::values(
            "eps_is_added_to_the_span",
            &[given("x", &[1, 3], &[0.0, 1.0, 3.0])],
            &[("eps", Default::Float(1.0))],
            (&[1, 3], &[0.0, 0.25, 0.75]),
            "by hand",
        ),
        Case::shape(
            "a_line_has_no_height",
            &[drawn("x", &[3])],
            &[("dimension", Default::Text("Height")), ("eps", Default::Float(1.0))],
            &[3],
        ),
        Case::shape("along_the_height", &[drawn("x", &[1, 2, 3, 4])], &[("dimension", Default::Text("Height"))], &[1, 2, 3, 4]),
    ],
    ..native("minmax_norm", "(x - least) / (greatest - least + eps) along the last axis or the one before it.", |l, s| {
        let x = s.value("x").and_then(|x| four(l, x))?;
        let epsilon = Arg::Float(DType::Fp16, s.float("eps").unwrap_or(1e-4));
        let normal = super::layer(
            l,
            &layer::MIN_MAX_NORMALIZATION,
            &[("x", x.into()), ("Dimension", word(s.text("dimension"))), ("Epsilon", epsilon)],
        )?;
        Ok(vec![l.reshaped(normal, s.shape("x"))?])
    })
};

/// Division by a power of the energy of all channels.
pub static LRN: GraphOp = GraphOp {
    attributes: &[float("alpha", 1.0), float("beta", 0.75), float("k", 1.0)],
    constraints: &[
        rule(
            "C1",
            "x has four axes [batch, channels, height, width]",
            |s| s.rank("x") == 4,
            Case::refused(&[drawn("x", &[2, 3])], &[]),
        ),
        rule(
            "C2",
            "there are at most 15 channels: use local_response_norm for more",
            |s| s.shape("x")[1] <= 15,
            Case::refused(&[drawn("x", &[1, 16, 1, 1])], &[]),
        ),
        rule(
            "C3",
            "k is positive and alpha not negative, and alpha times the channels fits fp16",
            |s| {
                let alpha = s.float("alpha").unwrap_or(-1.0);
                s.float("k").is_some_and(|k| k > 0.0) && alpha >= 0.0 && alpha * s.shape("x")[1] as f64 <= 65504.0
            },
            Case::refused(&[drawn("x", &[1, 2, 1, 1])], &[("k", Default::Float(0.0))]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let s = b.site();
        let [alpha, beta, k] = [("alpha", 1.0), ("beta", 0.75), ("k", 1.0)].map(|(name, usual)| s.float(name).unwrap_or(usual));
        let (x, grad) = (b.input("x"), b.grad());
        let energy = x.square().reduce_sum(1, true).scale(alpha).adds(k);
        let scaled = grad.mul(&energy.pow(&energy.constant_like(-beta)));
        let along = scaled.mul(&x).reduce_sum(1, true).real_div(&energy);
        b.give("x", scaled.sub(&x.mul(&along).scale(2.0 * alpha * beta)));
    }),
    cases: &[
        Case::values(
            "the_energy_of_all_channels_counts",
            &[given("x", &[1, 3, 1, 1], &[1.0, 2.0, 2.0])],
            &[("alpha", Default::Float(0.3333333333333333)), ("beta", Default::Float(0.5))],
            (&[1, 3, 1, 1], &[0.5, 1.0, 1.0]),
            "by hand",
        ),
        Case::shape("each_pixel_by_itself", &[drawn("x", &[2, 3, 2, 2])], &[("alpha", Default::Float(0.5))], &[2, 3, 2, 2]),
    ],
    ..native("lrn", "x / (k + alpha * sum of squares over all channels)^beta.", |l, s| {
        let channels = s.shape("x")[1];
        let number = |name: &str| s.float(name).unwrap_or(1.0);
        let arguments = [
            ("x", s.value("x")?.into()),
            ("Type", word("Channel")),
            ("KernelWidth", int_arg(1)),
            ("KernelHeight", int_arg(1)),
            ("KernelChannel", int_arg(channels)),
            // The layer divides by the number of channels.
            ("Alpha", Arg::Float(DType::Fp16, number("alpha") * channels as f64)),
            ("Beta", Arg::Float(DType::Fp32, number("beta"))),
            ("K", Arg::Float(DType::Fp32, number("k"))),
        ];
        Ok(vec![super::layer(l, &layer::LOCAL_RESPONSE_NORMALIZATION, &arguments)?])
    })
};

const KINDS: &[&str] = &["Add", "Mult", "Min", "Max"];

/// Arithmetic and a factor.
pub static SCALED_ELEMENTWISE: GraphOp = GraphOp {
    inputs: &[input("x", HALF), input("z", HALF)],
    attributes: &[super::super::word("op", KINDS, "Add"), float("scale", 1.0)],
    constraints: &[
        rule(
            "C1",
            "x and z have the same shape, of one to four axes: broadcast one of them",
            |s| fits(s, "x") && s.shape("x") == s.shape("z"),
            Case::refused(&[drawn("x", &[2]), drawn("z", &[3])], &[]),
        ),
        rule(
            "C2",
            "scale is 1 for Mult, which ignores it: scale one factor",
            |s| s.text("op") != "Mult" || s.float("scale") == Some(1.0),
            Case::refused(&[drawn("x", &[2]), drawn("z", &[2])], &[("op", Default::Text("Mult")), ("scale", Default::Float(2.0))]),
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let (x, z, grad) = (b.input("x"), b.input("z"), b.grad());
        let scaled = grad.scale(b.site().float("scale").unwrap_or(1.0));
        let nothing = b.graph().values(DType::Fp16, &[], &[0.0]);
        let (of_x, of_z) = match b.site().text("op") {
            "Mult" => (&grad * &z, &grad * &x),
            "Min" => (x.less(&z).select(&scaled, &nothing), x.less(&z).select(&nothing, &scaled)),
            "Max" => (z.less(&x).select(&scaled, &nothing), z.less(&x).select(&nothing, &scaled)),
            _ => (scaled.clone(), scaled),
        };
        b.give("x", of_x);
        b.give("z", of_z);
    }),
    cases: &[
        Case::values(
            "the_sum_is_scaled",
            &[given("x", &[2], &[1.0, 5.0]), given("z", &[2], &[3.0, -1.0])],
            &[("scale", Default::Float(0.5))],
            (&[2], &[2.0, 2.0]),
            "by hand",
        ),
        Case::shape("products", &[drawn("x", &[2, 3]), drawn("z", &[2, 3])], &[("op", Default::Text("Mult"))], &[2, 3]),
        Case::shape(
            "the_larger",
            &[drawn("x", &[4]), drawn("z", &[4])],
            &[("op", Default::Text("Max")), ("scale", Default::Float(2.0))],
            &[4],
        ),
        Case::shape("the_smaller", &[drawn("x", &[4]), drawn("z", &[4])], &[("op", Default::Text("Min"))], &[4]),
    ],
    ..native("scaled_elementwise", "scale times the sum, product, smaller or larger of x and z.", |l, s| {
        let x = s.value("x").and_then(|x| four(l, x))?;
        let z = s.value("z").and_then(|z| four(l, z))?;
        let scale = Arg::Float(DType::Fp16, s.float("scale").unwrap_or(1.0));
        let arguments = [("x", x.into()), ("z", z.into()), ("Type", word(s.text("op"))), ("Scale", scale)];
        let made = super::layer(l, &layer::SCALED_ELEMENT_WISE, &arguments)?;
        Ok(vec![l.reshaped(made, s.shape("x"))?])
    })
};
