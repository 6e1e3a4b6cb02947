"""Matrix products and convolutions."""

from __future__ import annotations

from .describe import Json, array, case, node


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
        case(
            "bmm_w",
            {"x": array([3, 5, 16])},
            node("bmm_w", ["x"], {"weight": array([3, 16, 7])}),
        ),
        case(
            "conv_dilation_sides",
            {"x": array([1, 4, 9, 8])},
            node(
                "conv",
                ["x"],
                {"weight": array([6, 4, 3, 2])},
                stride=1,
                pad=[1, 2, 0, 3],
                dilation=2,
                groups=1,
            ),
        ),
        case(
            "dynamic_conv",
            {"x": array([1, 4, 9, 8]), "y": array([6, 4, 3, 3])},
            node("dynamic_conv", ["x", "y"], stride=2, pad=1, groups=1),
        ),
        case(
            "conv_transpose",
            {"x": array([1, 4, 5, 6])},
            node("conv_transpose", ["x"], {"weight": array([4, 3, 3, 3])}, stride=2, pad=0),
        ),
        case(
            "conv_transpose_bias_pad",
            {"x": array([1, 4, 5, 6])},
            node(
                "conv_transpose",
                ["x"],
                {"weight": array([4, 3, 4, 4]), "bias": array([3])},
                stride=2,
                pad=1,
            ),
        ),
        case(
            "einsum",
            {"x": array([2, 3, 4, 5])},
            node("einsum", ["x"], {"b": array([2, 5, 4, 6])}, equation="nchw,nwhu->nchu"),
        ),
    ]
    return cases
