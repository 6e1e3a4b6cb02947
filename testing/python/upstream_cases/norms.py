"""Reductions over one or more axes, and the norms that the windows do not have."""

from __future__ import annotations

from .describe import Json, array, case, node


def reductions() -> list[Json]:
    """All that the package has beside the mean and the sum."""
    cases = []
    for op in ("reduce_max", "reduce_min", "reduce_l1_norm", "reduce_sum_square"):
        cases.append(case(op, {"x": array([2, 3, 4, 5])}, node(op, ["x"], axes=[1, 3])))
    cases += [
        case(
            "reduce_log_sum",
            {"x": array([4, 24], 0.25, 2.0)},
            node("reduce_log_sum", ["x"], axes=[1]),
        ),
        case(
            "reduce_log_sum_exp",
            {"x": array([2, 5, 6], -4.0, 4.0)},
            node("reduce_log_sum_exp", ["x"], axes=[1, 2]),
        ),
    ]
    return cases


def norms() -> list[Json]:
    """Over features, channels, groups of them and neighbours."""

    def affine(size: int) -> Json:
        return {"gamma": array([size], 0.5, 1.5), "beta": array([size], -0.5, 0.5)}

    def constants(size: int) -> Json:
        return {"gamma": array([size], 0.5, 1.5)}

    image = [2, 4, 5, 6]
    return [
        case("rms_norm", {"x": array([6, 32])}, node("rms_norm", ["x"], constants(32), eps=1e-5)),
        case(
            "channel_layer_norm",
            {"x": array([2, 16, 1, 9])},
            node("channel_layer_norm", ["x"], affine(16), eps=1e-3),
        ),
        case(
            "group_norm",
            {"x": array([1, 8, 5, 6])},
            node("group_norm", ["x"], affine(8), num_groups=2, eps=1e-3),
        ),
        case(
            "instance_norm",
            {"x": array(image)},
            node("instance_norm", ["x"], affine(4), eps=1e-3),
        ),
        case(
            "local_response_norm",
            {"x": array([1, 8, 3, 4])},
            node("local_response_norm", ["x"], size=3, alpha=0.5, beta=0.75, k=1.5),
        ),
    ]
