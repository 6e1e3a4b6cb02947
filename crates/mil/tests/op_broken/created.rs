//! Tensors made from attributes.

use super::{Broken, f32s, t};
use aneforge_mil::DType::{Fp32, Int32};
use aneforge_mil::op::{float, int, ints, number, values};

pub const BROKEN: &[Broken] = &[
    ("band_part", "C1", &[("x", t(&[3]))]),
    ("fill", "C1", &[("shape", ints(&[1], &[2.0])), ("value", t(&[1]))]),
    ("fill", "C2", &[("shape", ints(&[2], &[2.0, 0.0]))]),
    ("fill", "C2", &[("shape", int(&[2.0]))]),
    ("fill_like", "C1", &[("ref_tensor", t(&[2])), ("value", t(&[2]))]),
    ("non_zero", "C1", &[("x", values(Int32, &[2], &[0.0, 0.0]))]),
    ("non_zero", "C1", &[("x", float(&[1.0]))]),
    ("one_hot", "C1", &[("indices", ints(&[1], &[0.0])), ("one_hot_vector_size", int(&[2.0])), ("axis", int(&[2.0]))]),
    ("one_hot", "C2", &[("indices", ints(&[1], &[0.0])), ("one_hot_vector_size", int(&[0.0]))]),
    ("one_hot", "C3", &[("indices", ints(&[1], &[0.0])), ("one_hot_vector_size", int(&[2.0])), ("on_value", float(&[1.0]))]),
    ("range_1d", "C1", &[("end", float(&[4.0])), ("start", float(&[0.0])), ("step", number(Fp32, &[1.0]))]),
    ("range_1d", "C1", &[("end", t(&[1])), ("start", float(&[0.0])), ("step", float(&[1.0]))]),
    ("range_1d", "C2", &[("end", float(&[4.0])), ("start", float(&[0.0])), ("step", float(&[-1.0]))]),
    ("range_1d", "C2", &[("end", float(&[4.0])), ("start", float(&[0.0])), ("step", float(&[0.0]))]),
    ("shape", "C1", &[("x", f32s(&[]))]),
];
