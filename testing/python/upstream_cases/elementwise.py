"""Unary and binary operators, the scalar forms and the known rewrites of the emitter."""

from __future__ import annotations

from .describe import Json, array, case, node


def elementwise() -> list[Json]:
    """Unary and binary operators, the scalar forms and the known rewrites of the emitter."""
    shape = [2, 3, 4, 5]
    cases = []
    for op in ("relu", "tanh", "sigmoid", "gelu", "exp", "erf", "square"):
        cases.append(case(op, {"x": array(shape)}, node(op, ["x"])))
    cases.append(case("sqrt", {"x": array(shape, 0.05, 9.0)}, node("sqrt", ["x"])))
    cases.append(case("rsqrt", {"x": array(shape, 0.05, 9.0)}, node("rsqrt", ["x"], eps=0.001)))
    cases.append(case("softplus", {"x": array([4, 64], -20.0, 20.0)}, node("softplus", ["x"])))
    cases.append(case("round_small", {"x": array([4, 64], -9.0, 9.0)}, node("round", ["x"])))
    cases.append(case("round_large", {"x": array([4, 64], -3e3, 3e3)}, node("round", ["x"])))
    for op in ("add", "sub", "mul", "real_div", "maximum", "minimum"):
        other = array(shape, 0.5, 3.0)
        cases.append(case(op, {"x": array(shape), "y": other}, node(op, ["x", "y"])))
    cases.append(
        case("add_broadcast", {"x": array(shape), "y": array([3, 1, 5])}, node("add", ["x", "y"]))
    )
    cases.append(case("add_constant", {"x": array(shape)}, node("add", ["x"], {"y": array([5])})))
    cases.append(case("muls", {"x": array(shape)}, node("muls", ["x"], scalar=0.3)))
    cases.append(case("adds", {"x": array(shape)}, node("adds", ["x"], scalar=-1.7)))
    cases.append(
        case(
            "muls_zero_after_reduce",
            {"x": array([4, 16])},
            node("reduce_mean", ["x"], axes=[1]),
            node("muls", ["n0"], scalar=0.0),
        )
    )
    cases.append(
        case(
            "scalar_after_floor",
            {"x": array([4, 32], -9.0, 9.0)},
            node("floor", ["x"]),
            node("muls", ["n0"], scalar=0.25),
        )
    )
    cases.append(
        case(
            "select",
            {"x": array([4, 32]), "y": array([4, 32])},
            node("greater", ["x", "y"]),
            node("muls", ["x"], scalar=2.0),
            node("select", ["n0", "n1", "y"]),
        )
    )
    return cases


def activations() -> list[Json]:
    """The other operators of one tensor, each with parameters that are not its defaults."""
    shape = [2, 3, 4, 5]
    cases = []
    for op in ("abs", "ceil", "floor", "sign", "silu", "softsign", "atan", "exp2", "sin", "cos"):
        cases.append(case(op, {"x": array(shape, -3.0, 3.0)}, node(op, ["x"])))
    cases.append(case("relu6", {"x": array(shape, -3.0, 9.0)}, node("relu6", ["x"])))
    for op, attributes in (
        ("elu", {"alpha": 0.75}),
        ("leaky_relu", {"alpha": 0.125}),
        ("clip", {"lo": -0.5, "hi": 1.25}),
        ("scaled_tanh", {"alpha": 1.5, "beta": 0.625}),
        ("threshold", {"alpha": 0.25}),
        ("thresholded_relu", {"alpha": 0.5}),
        ("clamped_relu", {"alpha": 0.25, "beta": 1.5}),
        ("sigmoid_hard", {"alpha": 0.375, "beta": 0.5}),
        ("linear_activation", {"alpha": 1.75, "beta": -0.5}),
    ):
        cases.append(case(op, {"x": array(shape, -3.0, 3.0)}, node(op, ["x"], **attributes)))
    positive = {"x": array(shape, 0.25, 9.0)}
    cases += [
        case("log", positive, node("log", ["x"], eps=0.125)),
        case("inverse", positive, node("inverse", ["x"], eps=0.125)),
        case("prelu", {"x": array(shape)}, node("prelu", ["x"], {"alpha": array([3], 0.1, 0.9)})),
        case(
            "pow",
            {"x": array(shape, 0.25, 3.0), "y": array(shape, -1.5, 2.0)},
            node("pow", ["x", "y"]),
        ),
    ]
    return cases


def masks() -> list[Json]:
    """Comparisons of numbers of which many are equal, and what a mask chooses."""
    cases = []

    def numbers() -> Json:
        return {name: array([4, 32], -2.0, 2.0, step=0.5) for name in ("x", "y")}

    for op in ("less", "less_equal", "equal", "not_equal", "greater", "greater_equal"):
        chosen = node("select", ["n0", "x", "n1"])
        cases.append(
            case(op, numbers(), node(op, ["x", "y"]), node("muls", ["y"], scalar=3.0), chosen)
        )
    cases.append(
        case(
            "logical_not",
            numbers(),
            node("less", ["x", "y"]),
            node("logical_not", ["n0"]),
            node("select", ["n1", "x", "y"]),
        )
    )
    return cases
