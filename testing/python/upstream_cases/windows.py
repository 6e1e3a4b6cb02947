"""Pooling, reductions, softmax and normalisation."""

from __future__ import annotations

from .describe import Json, array, case, node


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
        case("reduce_mean", {"x": array(image)}, node("reduce_mean", ["x"], axes=[2, 3])),
        case("reduce_sum", {"x": array([4, 24])}, node("reduce_sum", ["x"], axes=[1])),
        case("softmax", {"x": array([2, 3, 17], -8.0, 8.0)}, node("softmax", ["x"], axis=-1)),
        case("softmax_axis_1", {"x": array([2, 9, 5])}, node("softmax", ["x"], axis=1)),
        case("batch_norm", {"x": array(image)}, node("batch_norm", ["x"], channels, eps=1e-3)),
        case("layer_norm", {"x": array([6, 32])}, node("layer_norm", ["x"], affine, eps=1e-5)),
        case("l2_norm", {"x": array([6, 32])}, node("l2_norm", ["x"], axis=-1, eps=1e-12)),
    ]
