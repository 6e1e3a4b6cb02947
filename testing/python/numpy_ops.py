"""What the operators of upstream_cases.py mean, in float64 numpy: one plain function for each.

Written from the operators' definitions, not from either implementation that the results judge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray
Operator = Callable[[list[Array], Mapping[str, Array], Mapping[str, Any]], Array]

erf = np.vectorize(math.erf, otypes=[np.float64])


def softmax(x: Array, axis: int) -> Array:
    """Shifted by the maximum, so that no exponential overflows."""
    grown = np.exp(x - x.max(axis=axis, keepdims=True))
    return grown / grown.sum(axis=axis, keepdims=True)


def round_half_away(x: Array) -> Array:
    """Ties go away from zero, as on the engine (numpy's own go to even)."""
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def windows(x: Array, kernel: tuple[int, int], stride: int, pad: int, fill: float) -> Array:
    """[N, C, H, W] -> [N, C, outH, outW, kH, kW] views of the padded picture."""
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
    every = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
    return every[:, :, ::stride, ::stride]


def pool_windows(x: Array, a: Mapping[str, Any], fill: float) -> Array:
    """Square windows of side k; padding counts in an average."""
    return windows(x, (a["k"], a["k"]), a["stride"], a["pad"], fill)


def conv(inputs: list[Array], constants: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """Cross-correlation with zero padding; group g of the outputs sees group g of the inputs."""
    weight = constants["weight"]
    view = windows(inputs[0], weight.shape[2:], a["stride"], a["pad"], 0.0)
    parts = [
        np.einsum("nchwij,ocij->nohw", picture, kernel)
        for picture, kernel in zip(
            np.split(view, a["groups"], axis=1), np.split(weight, a["groups"], axis=0), strict=True
        )
    ]
    result = np.concatenate(parts, axis=1)
    bias = constants.get("bias")
    return result if bias is None else result + bias[None, :, None, None]


def linear(inputs: list[Array], constants: Mapping[str, Array], _a: Mapping[str, Any]) -> Array:
    """x W^T + b."""
    return inputs[0] @ constants["weight"].T + constants.get("bias", 0.0)


def batch_norm(inputs: list[Array], c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """With given statistics, per channel (axis 1)."""
    x = np.moveaxis(inputs[0], 1, -1)
    result = (x - c["mean"]) / np.sqrt(c["var"] + a["eps"]) * c["gamma"] + c["beta"]
    return np.moveaxis(result, -1, 1)


def layer_norm(inputs: list[Array], c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """Over the last axis, with the biased variance."""
    x = inputs[0]
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + a["eps"]) * c["gamma"] + c["beta"]


def l2_norm(inputs: list[Array], _c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """x / max(|x|, sqrt(eps)) along one axis."""
    norm = np.linalg.norm(inputs[0], axis=a["axis"], keepdims=True)
    return inputs[0] / np.maximum(norm, math.sqrt(a["eps"]))


def mha(inputs: list[Array], c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """Self-attention of x [S, D] with biased projections [out, in] and an additive score mask."""
    x = inputs[0]
    length, width = x.shape
    heads = a["n_heads"]

    def project(letter: str) -> Array:
        flat = x @ c[f"W{letter}"].T + c[f"b{letter}"]
        return flat.reshape(length, heads, width // heads).swapaxes(0, 1)

    scores = project("q") @ project("k").swapaxes(1, 2) / math.sqrt(width // heads)
    weights = softmax(scores + c.get("mask", 0.0), -1)
    mixed = (weights @ project("v")).swapaxes(0, 1).reshape(length, width)
    return mixed @ c["Wo"].T + c["bo"]


def slice_by_size(inputs: list[Array], _c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """x[begin : begin + size] on each axis."""
    spans = zip(a["begin"], a["size"], strict=True)
    return inputs[0][tuple(slice(begin, begin + size) for begin, size in spans)]


def unary(function: Callable[[Array], Array]) -> Operator:
    """An operator without constants or attributes."""
    return lambda inputs, _c, _a: function(inputs[0])


def binary(function: Callable[[Array, Array], Array]) -> Operator:
    """Two inputs, or an input and the constant y."""
    return lambda inputs, c, _a: function(inputs[0], inputs[1] if len(inputs) > 1 else c["y"])


OPERATORS: dict[str, Operator] = {
    "relu": unary(lambda x: np.maximum(x, 0)),
    "tanh": unary(np.tanh),
    "sigmoid": unary(lambda x: 1 / (1 + np.exp(-x))),
    "gelu": unary(lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    "exp": unary(np.exp),
    "erf": unary(erf),
    "square": unary(np.square),
    "sqrt": unary(np.sqrt),
    "rsqrt": lambda i, _c, a: 1 / np.sqrt(i[0] + a["eps"]),
    "softplus": unary(lambda x: np.logaddexp(x, 0)),
    "round": unary(round_half_away),
    "floor": unary(np.floor),
    "add": binary(np.add),
    "sub": binary(np.subtract),
    "mul": binary(np.multiply),
    "real_div": binary(np.divide),
    "maximum": binary(np.maximum),
    "minimum": binary(np.minimum),
    "greater": binary(np.greater),
    "select": lambda i, _c, _a: np.where(i[0], i[1], i[2]),
    # a scalar is stored as fp16 like everything else
    "muls": lambda i, _c, a: i[0] * float(np.float16(a["scalar"])),
    "adds": lambda i, _c, a: i[0] + float(np.float16(a["scalar"])),
    "matmul": lambda i, c, _a: i[0] @ c["weight"],
    "linear": linear,
    "bmm": binary(np.matmul),
    "conv": conv,
    "max_pool": lambda i, _c, a: pool_windows(i[0], a, -np.inf).max((4, 5)),
    "avg_pool": lambda i, _c, a: pool_windows(i[0], a, 0.0).mean((4, 5)),
    "mean": lambda i, _c, a: i[0].mean(tuple(a["axes"]), keepdims=True),
    "sum": lambda i, _c, a: i[0].sum(tuple(a["axes"]), keepdims=True),
    "softmax": lambda i, _c, a: softmax(i[0], a["axis"]),
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "l2_norm": l2_norm,
    "reshape": lambda i, _c, a: i[0].reshape(a["shape"]),
    "transpose": lambda i, _c, a: i[0].transpose(a["perm"]),
    "concat": lambda i, _c, a: np.concatenate(i, a["axis"]),
    "slice_by_size": slice_by_size,
    "expand_dims": lambda i, _c, a: np.expand_dims(i[0], tuple(a["axes"])),
    "squeeze": lambda i, _c, a: i[0].squeeze(tuple(a["axes"])),
    "split": lambda i, _c, a: np.split(i[0], a["num_splits"], a["axis"])[a["part"]],
    "mha": mha,
}
