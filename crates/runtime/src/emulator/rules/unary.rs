//! Element-wise functions of one fp16 number, as tables of all 65,536 results.

use super::curve::{Curve, Tail};
use super::rounding::{half_away, taken};
use half::f16;
use std::f64::consts::{LN_2, LOG2_E, PI, TAU};

/// The result for every fp16 bit pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Table(Vec<f16>);

impl Table {
    /// Tabulates a function of the values as the engine takes them in; results are rounded half away.
    pub fn of(function: impl Fn(f64) -> f64) -> Self {
        Self((0..=u16::MAX).map(|bits| half_away(function(taken(f16::from_bits(bits))))).collect())
    }

    /// The table that these results are; inputs beyond them have no result and stay as they are.
    pub fn of_results(results: &[f16]) -> Self {
        let at = |bits: u16| results.get(usize::from(bits)).copied().unwrap_or(f16::from_bits(bits));
        Self((0..=u16::MAX).map(at).collect())
    }

    /// The result for one number.
    #[inline]
    pub fn at(&self, x: f16) -> f16 {
        self.0[usize::from(x.to_bits())]
    }
}

/// A scalar parameter of an operator, by its MIL keyword.
pub type Parameters<'a> = &'a dyn Fn(&str) -> f64;

/// The engine's table for a MIL operator with its parameters, or `None` where the operator is not a function of one number.
///
/// `mode` is the `mode` argument of `gelu`. Sine and cosine are one curve on every chip; where they have no
/// native form it stands in for the polynomial that takes their place.
pub fn table(op: &str, mode: &str, parameters: Parameters<'_>) -> Option<Table> {
    let alpha = parameters("alpha");
    let beta = parameters("beta");
    // The engine holds constants in fp16, where MIL's default epsilons of log and rsqrt vanish.
    let epsilon = half_away(parameters("epsilon")).to_f64();
    Some(match op {
        "relu" => Table::of(|x| x.max(0.0)),
        "relu6" => Table::of(|x| x.clamp(0.0, 6.0)),
        "abs" => Table::of(f64::abs),
        "sign" => Table::of(|x| if x == 0.0 { 0.0 } else { x.signum() }),
        "floor" => Table::of(f64::floor),
        "ceil" => Table::of(f64::ceil),
        // The native kernel adds one half in fp16 and is wrong from 1024 on (ANEForge 0.4.0); below it rounds half away.
        "round" => Table::of(|x| if x.abs() < 1024.0 { x.round() } else { half_away(x + 0.5_f64.copysign(x)).to_f64().trunc() }),
        "clip" => Table::of(|x| x.max(alpha).min(beta)),
        "threshold" => Table::of(|x| x.max(alpha)),
        "thresholded_relu" => Table::of(|x| if x >= alpha { x } else { 0.0 }),
        "clamped_relu" => Table::of(|x| if x >= 0.0 { x.min(beta) } else { (alpha * x).min(beta) }),
        "leaky_relu" => Table::of(|x| if x >= 0.0 { x } else { alpha * x }),
        "linear_activation" => Table::of(|x| alpha * x + beta),
        "sigmoid_hard" => Table::of(|x| (alpha * x + beta).clamp(0.0, 1.0)),
        "square" => Table::of(|x| x * x),
        "sigmoid" => curve(sigmoid()),
        "tanh" => curve(tanh()),
        "scaled_tanh" => {
            let tanh = tanh();
            Table::of(|x| alpha * tanh.at(beta * x))
        }
        "gelu" => curve(gelu(mode)),
        "silu" => curve(Curve::fit(|x| x / (1.0 + (-x).exp()), -9.938, 8.320, Tail::Constant(0.0), Tail::Argument)),
        "erf" => curve(Curve::fit(erf, -3.0, 3.0, Tail::Constant(-1.0), Tail::Constant(1.0))),
        "atan" => curve(Curve::fit(f64::atan, -8.0, 8.0, Tail::Constant(-PI / 2.0), Tail::Constant(PI / 2.0))),
        "sin" => sine(0.0),
        "cos" => sine(PI / 2.0),
        "exp" => exponential(LOG2_E),
        "exp2" => exponential(1.0),
        "elu" => {
            let exp2 = exp2_fraction();
            Table::of(move |x| if x >= 0.0 { x } else { alpha * (power_of_two(&exp2, x * LOG2_E) - 1.0) })
        }
        // The table collapses to +0 where exp overflows, at +infinity too (ANE guide, chapter 3; ANEForge 0.4.0).
        "softplus" => {
            let fit = Curve::fit(|x| x.exp().ln_1p(), -10.0, 65504_f64.ln(), Tail::Constant(0.0), Tail::Constant(0.0));
            curve(fit)
        }
        "softsign" => Table::of(|x| if x == f64::INFINITY { 0.0 } else { x / (1.0 + x.abs()) }),
        "log" => logarithm(epsilon),
        "sqrt" => root(),
        "rsqrt" => reciprocal_root(epsilon),
        "inverse" => reciprocal(epsilon),
        _ => return None,
    })
}

fn curve(curve: Curve) -> Table {
    Table::of(|x| curve.at(x))
}

fn sigmoid() -> Curve {
    // Domain of the table `sigmoid_high_precision` (ANE guide, chapter 3).
    Curve::fit(|x| 1.0 / (1.0 + (-x).exp()), -9.938, 8.320, Tail::Constant(0.0), Tail::Constant(1.0))
}

fn tanh() -> Curve {
    Curve::fit(f64::tanh, -3.5, 3.5, Tail::Constant(-1.0), Tail::Constant(1.0))
}

fn gelu(mode: &str) -> Curve {
    // 8.9 wide: the least-squares fit of that width has the published worst error, 0.0052.
    let fit = |function: fn(f64) -> f64| Curve::fit(function, -4.45, 4.45, Tail::Constant(0.0), Tail::Argument);
    match mode {
        "TANH_APPROXIMATION" => fit(|x| 0.5 * x * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())),
        "SIGMOID_APPROXIMATION" => fit(|x| x / (1.0 + (-1.702 * x).exp())),
        _ => fit(|x| 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2))),
    }
}

fn sine(phase: f64) -> Table {
    let fit = Curve::fit(f64::sin, -PI, PI, Tail::Knot, Tail::Knot);
    Table::of(move |x| {
        if x.is_infinite() {
            return 0.0;
        }
        let turned = x + phase;
        fit.at(turned - TAU * (turned / TAU).round())
    })
}

/// `2^f` for `f` in `0..1`.
fn exp2_fraction() -> Curve {
    Curve::fit(f64::exp2, 0.0, 1.0, Tail::Knot, Tail::Knot)
}

fn power_of_two(fraction: &Curve, exponent: f64) -> f64 {
    if exponent.is_infinite() || exponent.abs() > 200.0 {
        return if exponent > 0.0 { f64::INFINITY } else { 0.0 };
    }
    let whole = exponent.floor();
    fraction.at(exponent - whole) * whole.exp2()
}

fn exponential(scale: f64) -> Table {
    let fraction = exp2_fraction();
    Table::of(move |x| power_of_two(&fraction, x * scale))
}

fn logarithm(epsilon: f64) -> Table {
    let mantissa = Curve::fit(f64::log2, 1.0, 2.0, Tail::Knot, Tail::Knot);
    Table::of(move |x| {
        let x = x + epsilon;
        match x {
            _ if x < 0.0 => 0.0,
            // The engine's sentinel for log(+0) (ANE guide, chapter 3).
            0.0 => -45440.0,
            _ if x.is_infinite() => f64::INFINITY,
            _ => {
                let exponent = x.log2().floor();
                (exponent + mantissa.at(x / exponent.exp2())) * LN_2
            }
        }
    })
}

fn root() -> Table {
    let mantissa = Curve::fit(f64::sqrt, 1.0, 4.0, Tail::Knot, Tail::Knot);
    Table::of(move |x| match x {
        _ if x <= 0.0 => 0.0,
        _ if x.is_infinite() => f64::INFINITY,
        _ => {
            let exponent = (x.log2() / 2.0).floor();
            mantissa.at(x / (2.0 * exponent).exp2()) * exponent.exp2()
        }
    })
}

fn reciprocal_root(epsilon: f64) -> Table {
    let mantissa = Curve::fit(|x| 1.0 / x.sqrt(), 1.0, 4.0, Tail::Knot, Tail::Knot);
    Table::of(move |x| {
        let x = x + epsilon;
        match x {
            _ if x < 0.0 => 0.0,
            // The sign of zero is lost before the reciprocal (ANE guide, chapter 3).
            0.0 => f64::INFINITY,
            _ if x.is_infinite() => 0.0,
            _ => {
                let exponent = (x.log2() / 2.0).floor();
                mantissa.at(x / (2.0 * exponent).exp2()) * (-exponent).exp2()
            }
        }
    })
}

fn reciprocal(epsilon: f64) -> Table {
    let mantissa = Curve::fit(|x| 1.0 / x, 1.0, 2.0, Tail::Knot, Tail::Knot);
    Table::of(move |x| {
        let x = x + epsilon;
        match x {
            0.0 => f64::INFINITY,
            _ if x.is_infinite() => 0.0_f64.copysign(x),
            _ => {
                let exponent = x.abs().log2().floor();
                (mantissa.at(x.abs() / exponent.exp2()) * (-exponent).exp2()).copysign(x)
            }
        }
    })
}

/// The error function, from its Taylor series and, further out, the continued fraction of its complement; good to about 1e-15.
fn erf(x: f64) -> f64 {
    let z = x.abs();
    let value = if z < 2.5 {
        let (mut term, mut sum) = (z, z);
        for n in 1..80 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / PI.sqrt()
    } else {
        let mut fraction = 0.0;
        for n in (1..60).rev() {
            fraction = f64::from(n) / 2.0 / (z + fraction);
        }
        1.0 - (-z * z).exp() / (PI.sqrt() * (z + fraction))
    };
    value.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(op: &str) -> Table {
        table(op, "EXACT", &|name| if name == "beta" { 1.0 } else { 0.0 }).expect("operator has a table")
    }

    fn worst(op: &str, function: impl Fn(f64) -> f64) -> f64 {
        let table = of(op);
        (0..=u16::MAX)
            .map(f16::from_bits)
            .filter(|x| x.is_finite() && x.to_f64().abs() <= 10.0)
            .map(|x| (table.at(x).to_f64() - function(x.to_f64())).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn curves_stay_within_a_few_times_the_published_worst_errors() {
        // Published on an M1 (ANE guide, chapter 3): sigmoid 0.0034, tanh 0.0017, gelu 0.0059.
        assert!(worst("sigmoid", |x| 1.0 / (1.0 + (-x).exp())) < 0.0034);
        assert!(worst("tanh", f64::tanh) < 2.0 * 0.0017);
        assert!(worst("gelu", |x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt()))) < 0.0059);
    }

    #[test]
    fn gelu_of_zero_is_negative_as_on_the_engine() {
        assert!(of("gelu").at(f16::ZERO).to_f64() < 0.0);
    }

    #[test]
    fn reduced_functions_are_good_to_about_one_fp16_unit() {
        type Function = fn(f64) -> f64;
        let cases: [(&str, Function); 5] =
            [("exp", f64::exp), ("sqrt", f64::sqrt), ("rsqrt", |x| 1.0 / x.sqrt()), ("inverse", |x| 1.0 / x), ("exp2", f64::exp2)];
        for (op, function) in cases {
            let table = of(op);
            for bits in 0..=u16::MAX {
                let x = f16::from_bits(bits);
                let exact = function(x.to_f64());
                if x.is_finite() && exact.is_finite() && exact.abs() > 6.2e-5 && exact.abs() < 65000.0 {
                    let relative = (table.at(x).to_f64() - exact).abs() / exact.abs();
                    assert!(relative < 1.2e-3, "{op}({x}) is off by {relative}");
                }
            }
        }
    }

    #[test]
    fn special_values_follow_the_guide() {
        let inf = f16::INFINITY;
        let at = |op: &str, x: f16| of(op).at(x).to_f64();
        for op in ["sigmoid", "tanh", "erf"] {
            assert_eq!(at(op, f16::NAN), 1.0, "{op}(NaN)");
        }
        assert_eq!(at("relu", f16::NAN), f64::INFINITY);
        assert_eq!(at("exp", f16::NAN), f64::INFINITY);
        assert_eq!(at("exp", f16::from_f64(11.1)), f64::INFINITY);
        for op in ["sqrt", "rsqrt", "log"] {
            assert_eq!(at(op, f16::NEG_ONE), 0.0, "{op}(-1)");
        }
        assert_eq!(at("inverse", f16::NEG_ZERO), f64::INFINITY);
        assert_eq!(at("rsqrt", f16::NEG_ZERO), f64::INFINITY);
        assert_eq!(at("softplus", inf), 0.0);
        assert_eq!(at("softsign", inf), 0.0);
        assert_eq!(at("log", f16::ZERO), -45440.0);
        assert_eq!(of("square").at(f16::from_f64(256.0)), inf);
    }
}
