"""Compositions as the three models contain them."""

from __future__ import annotations

from .describe import Json, array, case, node


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
