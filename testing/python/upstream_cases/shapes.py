"""Operators that move values and compute none."""

from __future__ import annotations

from .describe import Json, array, case, node


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
        case("flatten2d", {"x": array([2, 3, 4, 5])}, node("flatten2d", ["x"], axis=2)),
        case("tile", {"x": array([2, 3, 4])}, node("tile", ["x"], reps=[1, 2, 3])),
        case("reverse", {"x": array([2, 3, 4, 5])}, node("reverse", ["x"], axes=[1, 3])),
        case("stack", {"x": array([3, 5]), "y": array([3, 5])}, node("stack", ["x", "y"], axis=1)),
    ]
