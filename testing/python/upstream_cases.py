"""Small graphs, as data, that upstream_mil.py has the Python package lower to MIL.

A case is a JSON-able description: named inputs, nodes in order, one output. A node names its operator,
its inputs (of the graph or earlier nodes), its constant arrays and its attributes. Arrays are described
by shape, seed and range: `numpy.random.default_rng(seed).uniform(low, high, shape)`, rounded to fp16.
"""

from __future__ import annotations

from itertools import count
from typing import Any

Json = dict[str, Any]

SEEDS = count(1)


def array(shape: list[int], low: float = -2.0, high: float = 2.0) -> Json:
    """A described array with a seed of its own."""
    return {"shape": shape, "seed": next(SEEDS), "low": low, "high": high}


def node(op: str, inputs: list[str], constants: Json | None = None, **attributes: Any) -> Json:
    """One operator; its result is called by its place: n0, n1, ..."""
    return {"op": op, "inputs": inputs, "constants": constants or {}, "attributes": attributes}


def case(name: str, inputs: Json, *nodes: Json) -> Json:
    """A graph whose output is its last node."""
    for index, entry in enumerate(nodes):
        entry["id"] = f"n{index}"
    return {"name": name, "inputs": inputs, "nodes": list(nodes), "output": nodes[-1]["id"]}


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
            node("mean", ["x"], axes=[1]),
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


def contractions() -> list[Json]:
    """Matrix products and convolutions."""
    cases = [
        case("matmul", {"x": array([5, 16])}, node("matmul", ["x"], {"weight": array([16, 7])})),
        case("linear", {"x": array([5, 16])}, node("linear", ["x"], {"weight": array([7, 16])})),
        case(
            "linear_bias",
            {"x": array([5, 16])},
            node("linear", ["x"], {"weight": array([7, 16]), "bias": array([7])}),
        ),
        case("bmm", {"x": array([3, 5, 16]), "y": array([3, 16, 7])}, node("bmm", ["x", "y"])),
        case(
            "bmm_rank_4",
            {"x": array([1, 2, 5, 16]), "y": array([1, 2, 16, 7])},
            node("bmm", ["x", "y"]),
        ),
        case(
            "conv",
            {"x": array([1, 4, 9, 8])},
            node("conv", ["x"], {"weight": array([6, 4, 3, 3])}, stride=1, pad=0, groups=1),
        ),
        case(
            "conv_bias_pad",
            {"x": array([1, 4, 9, 8])},
            node(
                "conv",
                ["x"],
                {"weight": array([6, 4, 3, 3]), "bias": array([6])},
                stride=1,
                pad=1,
                groups=1,
            ),
        ),
        case(
            "conv_stride_7x7",
            {"x": array([1, 3, 21, 18])},
            node("conv", ["x"], {"weight": array([8, 3, 7, 7])}, stride=2, pad=3, groups=1),
        ),
        case(
            "conv_groups",
            {"x": array([2, 6, 7, 7])},
            node("conv", ["x"], {"weight": array([4, 3, 3, 3])}, stride=1, pad=1, groups=2),
        ),
        case(
            "conv_depthwise",
            {"x": array([1, 6, 7, 7])},
            node("conv", ["x"], {"weight": array([6, 1, 3, 3])}, stride=2, pad=1, groups=6),
        ),
        case(
            "conv_1x1_downsample",
            {"x": array([1, 8, 8, 8])},
            node("conv", ["x"], {"weight": array([16, 8, 1, 1])}, stride=2, pad=0, groups=1),
        ),
    ]
    return cases


def windows_and_norms() -> list[Json]:
    """Pooling, reductions, softmax and normalisation."""
    image = [1, 4, 9, 9]
    channels = {
        "gamma": array([4]),
        "beta": array([4]),
        "mean": array([4]),
        "var": array([4], 0.5, 2.0),
    }
    affine = {"gamma": array([32]), "beta": array([32])}
    return [
        case("max_pool", {"x": array(image)}, node("max_pool", ["x"], k=3, stride=2, pad=1)),
        case("avg_pool", {"x": array(image)}, node("avg_pool", ["x"], k=3, stride=2, pad=1)),
        case("avg_pool_whole", {"x": array(image)}, node("avg_pool", ["x"], k=9, stride=9, pad=0)),
        case("mean", {"x": array(image)}, node("mean", ["x"], axes=[2, 3])),
        case("sum", {"x": array([4, 24])}, node("sum", ["x"], axes=[1])),
        case("softmax", {"x": array([2, 3, 17], -8.0, 8.0)}, node("softmax", ["x"], axis=-1)),
        case("softmax_axis_1", {"x": array([2, 9, 5])}, node("softmax", ["x"], axis=1)),
        case("batch_norm", {"x": array(image)}, node("batch_norm", ["x"], channels, eps=1e-3)),
        case("layer_norm", {"x": array([6, 32])}, node("layer_norm", ["x"], affine, eps=1e-5)),
        case("l2_norm", {"x": array([6, 32])}, node("l2_norm", ["x"], axis=-1, eps=1e-12)),
    ]


def shapes() -> list[Json]:
    """Operators that move values and compute none."""
    return [
        case("reshape", {"x": array([2, 3, 8])}, node("reshape", ["x"], shape=[6, 8])),
        case("transpose", {"x": array([2, 3, 4, 5])}, node("transpose", ["x"], perm=[0, 2, 1, 3])),
        case(
            "concat",
            {"x": array([1, 3, 4]), "y": array([1, 2, 4])},
            node("concat", ["x", "y"], axis=1),
        ),
        case(
            "slice_by_size",
            {"x": array([3, 8, 10])},
            node("slice_by_size", ["x"], begin=[0, 2, 0], size=[3, 4, 10]),
        ),
        case("expand_dims", {"x": array([3, 5])}, node("expand_dims", ["x"], axes=[0, 2])),
        case("squeeze", {"x": array([1, 3, 1, 5])}, node("squeeze", ["x"], axes=[0, 2])),
        case(
            "split",
            {"x": array([2, 8])},
            node("split", ["x"], num_splits=2, axis=1, part=1),
            node("relu", ["n0"]),
        ),
    ]


def blocks() -> list[Json]:
    """Compositions as the three models contain them."""
    width, length = 32, 12
    scale = width**-0.5

    def attention_weights() -> Json:
        square = {key: array([width, width], -scale, scale) for key in ("Wq", "Wk", "Wv", "Wo")}
        return square | {key: array([width], -0.2, 0.2) for key in ("bq", "bk", "bv", "bo")}

    def mask() -> Json:
        return {"mask": array([length, length], -4.0, 0.0)}

    x = [length, width]
    norm = {"gamma": array([width], 0.5, 1.5), "beta": array([width], -0.3, 0.3)}
    up = {"weight": array([64, width], -scale, scale), "bias": array([64], -0.2, 0.2)}
    down = {"weight": array([width, 64], -0.13, 0.13), "bias": array([width], -0.2, 0.2)}
    return [
        case("mha", {"x": array(x)}, node("mha", ["x"], attention_weights(), n_heads=4)),
        case(
            "mha_masked",
            {"x": array(x)},
            node("mha", ["x"], attention_weights() | mask(), n_heads=4),
        ),
        case(
            "feed_forward_residual",
            {"x": array(x)},
            node("linear", ["x"], up),
            node("gelu", ["n0"]),
            node("linear", ["n1"], down),
            node("add", ["x", "n2"]),
            node("layer_norm", ["n3"], norm, eps=1e-5),
        ),
        case(
            "basic_block",
            {"x": array([1, 8, 8, 8])},
            node(
                "conv",
                ["x"],
                {"weight": array([8, 8, 3, 3], -0.2, 0.2), "bias": array([8])},
                stride=1,
                pad=1,
                groups=1,
            ),
            node("relu", ["n0"]),
            node(
                "conv",
                ["n1"],
                {"weight": array([8, 8, 3, 3], -0.2, 0.2), "bias": array([8])},
                stride=1,
                pad=1,
                groups=1,
            ),
            node("add", ["n2", "x"]),
            node("relu", ["n3"]),
        ),
    ]


def all_cases() -> list[Json]:
    """Every case, in a fixed order with fixed seeds (call once)."""
    return [*elementwise(), *contractions(), *windows_and_norms(), *shapes(), *blocks()]
