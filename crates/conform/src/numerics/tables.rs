//! The functions of one number that a device is asked for on every fp16 input.

use super::question::Part;

/// A shape of 65,536 elements that every route takes: channels before the width, 2 kB a row.
pub(super) const SHAPE: [usize; 4] = [1, 64, 1, 1024];

/// A function: operator and its arguments beside x.
pub(super) type Function = (&'static str, Vec<(&'static str, Part)>);

/// Every function that is asked for. Those with parameters are asked with the values that models use; epsilon is 0, as frameworks
/// that add their own write it, and MIL's default where fp16 can hold it.
pub(super) fn functions() -> Vec<Function> {
    let plain = [
        "relu", "relu6", "silu", "sigmoid", "tanh", "erf", "exp", "exp2", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan",
        "sinh", "cosh", "atanh", "softplus", "softsign", "square", "abs", "sign", "floor", "ceil", "round",
    ];
    let number = |name: &'static str, value: f64| (name, Part::Number(value));
    let mut all: Vec<Function> = plain.into_iter().map(|op| (op, Vec::new())).collect();
    for mode in ["EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"] {
        all.push(("gelu", vec![("mode", Part::Text(mode))]));
    }
    for op in ["log", "rsqrt", "inverse"] {
        all.push((op, vec![number("epsilon", 0.0)]));
    }
    all.push(("inverse", vec![number("epsilon", 1e-4)]));
    all.push(("elu", vec![number("alpha", 1.0)]));
    all.push(("leaky_relu", vec![number("alpha", 0.01)]));
    all.push(("scaled_tanh", vec![number("alpha", 1.7159), number("beta", 2.0 / 3.0)]));
    all.push(("sigmoid_hard", vec![number("alpha", 1.0 / 6.0), number("beta", 0.5)]));
    all.push(("clip", vec![number("alpha", -1.0), number("beta", 1.0)]));
    all
}
