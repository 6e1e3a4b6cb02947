//! Functions that no engine has, over every fp16 number of their domains, each step rounded to fp16: within the bounds that their
//! records state.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[path = "support/rounded.rs"]
mod rounded;

use aneforge_core::{Array, DType, Graph, Target, Tensor, lower};
use half::f16;

/// Every finite fp16 number within two ends.
fn numbers(low: f64, high: f64) -> Vec<f64> {
    let all = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f64());
    all.filter(|value| value.is_finite() && (low..=high).contains(value)).collect()
}

fn results(inputs: &[&[f64]], build: impl Fn(&[Tensor]) -> Tensor) -> Vec<f64> {
    let graph = Graph::new();
    let tensors: Vec<Tensor> =
        inputs.iter().enumerate().map(|(index, values)| graph.input(&format!("x{index}"), DType::Fp16, &[values.len()])).collect();
    let body = lower(&[("y".to_string(), build(&tensors))], Target::Generic).unwrap();
    let arrays: Vec<Array> = inputs.iter().map(|values| Array::new(DType::Fp16, [values.len()], values.to_vec())).collect();
    rounded::run(&body, &arrays)
}

/// The worst error, relative to the exact value where that is above `least`, else to `least`, and where it is.
fn worst(got: &[f64], exact: impl Fn(usize) -> f64, least: f64) -> (f64, usize) {
    let error = |(at, got): (usize, &f64)| {
        let exact = exact(at);
        let relative = (got - exact).abs() / exact.abs().max(least);
        // Past the largest fp16 number infinity is right.
        (
            if exact.abs() >= 65504.0 && got.is_infinite() {
                0.0
            } else if relative.is_nan() {
                f64::INFINITY
            } else {
                relative
            },
            at,
        )
    };
    got.iter().enumerate().map(error).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

#[test]
fn functions_of_one_value_stay_within_their_bounds() {
    type Function = (&'static str, f64, f64, f64, f64, fn(&Tensor) -> Tensor, fn(f64) -> f64);
    // Below fp16's normal numbers an error relative to the value says nothing: the least normal number takes its place.
    let least = 2f64.powi(-14);
    let functions: [Function; 7] = [
        ("asin", -1.0, 1.0, 3e-3, least, Tensor::asin, f64::asin),
        ("acos", -1.0, 1.0, 2e-3, 1.0, Tensor::acos, f64::acos),
        ("sinh", -65504.0, 65504.0, 3e-3, least, Tensor::sinh, f64::sinh),
        ("cosh", -65504.0, 65504.0, 3e-3, least, Tensor::cosh, f64::cosh),
        ("asinh", -65504.0, 65504.0, 3e-3, least, Tensor::asinh, f64::asinh),
        ("acosh", 1.0, 65504.0, 3e-3, least, Tensor::acosh, f64::acosh),
        ("atanh", -0.9995, 0.9995, 3e-3, least, Tensor::atanh, f64::atanh),
    ];
    let mut faults = Vec::new();
    for (name, low, high, bound, least, build, exact) in functions {
        let values = numbers(low, high);
        let (error, at) = worst(&results(&[&values], |x| build(&x[0])), |at| exact(values[at]), least);
        println!("{name}: {error:.2e} of {bound:.0e} at {}", values[at]);
        if error > bound {
            faults.push(format!("{name}({}): {error:.3e} > {bound:e}", values[at]));
        }
    }
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn the_angle_of_a_point_stays_within_its_bound() {
    let some: Vec<f64> = numbers(-65504.0, 65504.0).into_iter().step_by(211).collect();
    let (mut y, mut x) = (Vec::new(), Vec::new());
    for &a in &some {
        for &b in &some {
            y.push(a);
            x.push(b);
        }
    }
    let got = results(&[&y, &x], |point| point[0].atan2(&point[1]));
    let exact = |at: usize| if x[at] == 0.0 && y[at] == 0.0 { 0.0 } else { y[at].atan2(x[at]) };
    let (error, at) = worst(&got, exact, 1.0);
    println!("atan2: {error:.2e} at {}, {}", y[at], x[at]);
    assert!(error <= 3e-3, "atan2({}, {}): {}", y[at], x[at], got[at]);
}

#[test]
fn remainders_of_whole_numbers_are_exact_and_others_are_off_by_the_rounding_of_a_product() {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for a in (-2048..=2048).step_by(7) {
        for b in [-2048, -301, -64, -7, -1, 1, 2, 3, 10, 97, 2000] {
            let product = f64::from(b) * (f64::from(a) / f64::from(b)).floor();
            if f16::from_f64(product).to_f64() == product {
                x.push(f64::from(a));
                y.push(f64::from(b));
            }
        }
    }
    let exact = |x: f64, y: f64| x - y * (x / y).floor();
    for (at, got) in results(&[&x, &y], |pair| pair[0].modulo(&pair[1])).into_iter().enumerate() {
        assert_eq!(got, exact(x[at], y[at]), "{} mod {}", x[at], y[at]);
    }
    let (x, y): (Vec<f64>, Vec<f64>) =
        (0..4000).map(|index| (f64::from(index) * 0.37 - 700.0, 0.3 + f64::from(index % 61) * 0.11)).unzip();
    let round = |values: &[f64]| values.iter().map(|&value| f16::from_f64(value).to_f64()).collect::<Vec<_>>();
    let (x, y) = (round(&x), round(&y));
    for (at, got) in results(&[&x, &y], |pair| pair[0].modulo(&pair[1])).into_iter().enumerate() {
        // Half a unit in the last place of the product, and remainders on both sides of a multiple are neighbours.
        let slack = x[at].abs() * 2f64.powi(-11) + y[at] * 2f64.powi(-10);
        let distance = (got - exact(x[at], y[at])).abs();
        assert!(distance.min(y[at] - distance) <= slack, "{} mod {}: {got}", x[at], y[at]);
    }
}

#[test]
fn positions_in_fp16_are_those_of_integers_ties_and_all() {
    let rows = [vec![0.5, 2.0, 2.0, -1.0], vec![65504.0, f64::NEG_INFINITY, 65504.0, 0.0], vec![-0.0, 0.0, -0.0, 0.0]];
    for row in rows {
        for largest in [true, false] {
            let [whole, float] = [false, true].map(|fp16| {
                results(&[&row], |x| match (largest, fp16) {
                    (true, false) => x[0].reduce_argmax(0, false),
                    (true, true) => x[0].reduce_argmax_fp16(0, false),
                    (false, false) => x[0].reduce_argmin(0, false),
                    (false, true) => x[0].reduce_argmin_fp16(0, false),
                })
            });
            assert_eq!(whole, float, "{row:?}");
        }
    }
}
