"""What the operators of upstream_cases mean, in float64 numpy: one plain function for each.

Written from the operators' definitions, not from either implementation that the results judge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy_pictures

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


def windows(
    x: Array,
    kernel: tuple[int, ...],
    stride: int,
    pad: int | list[int],
    fill: float,
    dilation: int = 1,
) -> Array:
    """[N, C, H, W] -> [N, C, outH, outW, kH, kW] views; padded above, below, left and right."""
    top, bottom, left, right = pad if isinstance(pad, list) else [pad] * 4
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    spans = tuple((size - 1) * dilation + 1 for size in kernel)
    every = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=(2, 3))
    return every[:, :, ::stride, ::stride, ::dilation, ::dilation]


def pool_windows(x: Array, a: Mapping[str, Any], fill: float) -> Array:
    """Square windows of side k; padding counts in an average."""
    return windows(x, (a["k"], a["k"]), a["stride"], a["pad"], fill)


def conv(inputs: list[Array], constants: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """Cross-correlation with zero padding; group g of the outputs sees group g of the inputs."""
    weight = constants["weight"] if len(inputs) == 1 else inputs[1]
    view = windows(inputs[0], weight.shape[2:], a["stride"], a["pad"], 0.0, a.get("dilation", 1))
    parts = [
        np.einsum("nchwij,ocij->nohw", picture, kernel)
        for picture, kernel in zip(
            np.split(view, a["groups"], axis=1), np.split(weight, a["groups"], axis=0), strict=True
        )
    ]
    result = np.concatenate(parts, axis=1)
    bias = constants.get("bias")
    return result if bias is None else result + bias[None, :, None, None]


def conv_transpose(
    inputs: list[Array], constants: Mapping[str, Array], a: Mapping[str, Any]
) -> Array:
    """Each pixel adds its multiple of the kernel [Cin, Cout, kH, kW]; the padding is cut off."""
    x, weight = inputs[0], constants["weight"]
    (batch, _, height, width), (rows, columns) = x.shape, weight.shape[2:]
    stride, pad = a["stride"], a["pad"]
    whole = np.zeros(
        (batch, weight.shape[1], (height - 1) * stride + rows, (width - 1) * stride + columns)
    )
    for i in range(height):
        for j in range(width):
            top, left = i * stride, j * stride
            part = np.einsum("nc,coij->noij", x[:, :, i, j], weight)
            whole[:, :, top : top + rows, left : left + columns] += part
    result = whole[:, :, pad : whole.shape[2] - pad, pad : whole.shape[3] - pad]
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


def standardised(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    """With the mean and the biased variance over axes."""
    centred = x - x.mean(axis=axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + eps)


def layer_norm(inputs: list[Array], c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """Over the last axis."""
    return standardised(inputs[0], (-1,), a["eps"]) * c["gamma"] + c["beta"]


def per_channel(x: Array, c: Mapping[str, Array]) -> Array:
    """Scale and shift along axis 1."""
    shape = [1, -1] + [1] * (x.ndim - 2)
    return x * c["gamma"].reshape(shape) + c["beta"].reshape(shape)


def channel_layer_norm(inputs: list[Array], c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """Over axis 1."""
    return per_channel(standardised(inputs[0], (1,), a["eps"]), c)


def instance_norm(inputs: list[Array], c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """Over the pixels of each channel."""
    return per_channel(standardised(inputs[0], (2, 3), a["eps"]), c)


def group_norm(inputs: list[Array], c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """Over the pixels of neighbouring channels."""
    x = inputs[0]
    grouped = x.reshape(x.shape[0], a["num_groups"], -1)
    return per_channel(standardised(grouped, (2,), a["eps"]).reshape(x.shape), c)


def rms_norm(inputs: list[Array], c: Mapping[str, Array], a: Mapping[str, Any]) -> Array:
    """x / max(root mean square, sqrt(eps)): the package takes eps as a floor of the norm."""
    mean = (inputs[0] ** 2).mean(axis=-1, keepdims=True)
    return inputs[0] / np.sqrt(np.maximum(mean, a["eps"])) * c["gamma"]


def local_response_norm(
    inputs: list[Array], _c: Mapping[str, Array], a: Mapping[str, Any]
) -> Array:
    """By the squares of neighbouring channels; beyond the edge they are zero."""
    x, half = inputs[0], a["size"] // 2
    squares = np.pad(x**2, ((0, 0), (half, half), (0, 0), (0, 0)))
    total = sum(squares[:, shift : shift + x.shape[1]] for shift in range(a["size"]))
    return x / (a["k"] + a["alpha"] / a["size"] * total) ** a["beta"]


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


def shaped(function: Callable[..., Array]) -> Operator:
    """An operator of one tensor and its attributes by name."""
    return lambda inputs, _c, a: function(inputs[0], **a)


def reduction(function: Callable[..., Array]) -> Operator:
    """Over axes that stay with extent 1."""
    return lambda inputs, _c, a: function(inputs[0], axis=tuple(a["axes"]), keepdims=True)


def log_sum_exp(x: Array, **over: Any) -> Array:
    """Shifted by the maximum, so that no exponential overflows."""
    top = x.max(**over)
    return np.log(np.exp(x - top).sum(**over)) + top


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
    "reduce_mean": reduction(np.mean),
    "reduce_sum": reduction(np.sum),
    "reduce_max": reduction(np.max),
    "reduce_min": reduction(np.min),
    "reduce_l1_norm": reduction(lambda x, **over: np.abs(x).sum(**over)),
    "reduce_sum_square": reduction(lambda x, **over: (x**2).sum(**over)),
    "reduce_log_sum": reduction(lambda x, **over: np.log(x.sum(**over))),
    "reduce_log_sum_exp": reduction(log_sum_exp),
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
    "flatten2d": lambda i, _c, a: i[0].reshape(math.prod(i[0].shape[: a["axis"]]), -1),
    "stack": lambda i, _c, a: np.stack(i, a["axis"]),
    "tile": lambda i, _c, a: np.tile(i[0], a["reps"]),
    "reverse": lambda i, _c, a: np.flip(i[0], a["axes"]),
    "split": lambda i, _c, a: np.split(i[0], a["num_splits"], a["axis"])[a["part"]],
    "mha": mha,
    "abs": unary(np.abs),
    "ceil": unary(np.ceil),
    "sign": unary(np.sign),
    "silu": unary(lambda x: x / (1 + np.exp(-x))),
    "softsign": unary(lambda x: x / (1 + np.abs(x))),
    "atan": unary(np.arctan),
    "exp2": unary(np.exp2),
    "sin": unary(np.sin),
    "cos": unary(np.cos),
    "relu6": unary(lambda x: np.clip(x, 0, 6)),
    "elu": shaped(lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x))),
    "leaky_relu": shaped(lambda x, alpha: np.where(x > 0, x, alpha * x)),
    "clip": shaped(lambda x, lo, hi: np.clip(x, lo, hi)),
    "scaled_tanh": shaped(lambda x, alpha, beta: alpha * np.tanh(beta * x)),
    "threshold": shaped(lambda x, alpha: np.maximum(x, alpha)),
    "thresholded_relu": shaped(lambda x, alpha: np.where(x >= alpha, x, 0)),
    "clamped_relu": shaped(lambda x, alpha, beta: np.minimum(np.where(x >= 0, x, alpha * x), beta)),
    "sigmoid_hard": shaped(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1)),
    "linear_activation": shaped(lambda x, alpha, beta: alpha * x + beta),
    "log": shaped(lambda x, eps: np.log(x + eps)),
    "inverse": shaped(lambda x, eps: 1 / (x + eps)),
    "prelu": lambda i, c, _a: np.where(i[0] > 0, i[0], i[0] * c["alpha"][:, None, None]),
    "pow": binary(np.power),
    "less": binary(np.less),
    "less_equal": binary(np.less_equal),
    "equal": binary(np.equal),
    "not_equal": binary(np.not_equal),
    "greater_equal": binary(np.greater_equal),
    "logical_not": unary(np.logical_not),
    "bmm_w": lambda i, c, _a: i[0] @ c["weight"],
    "dynamic_conv": conv,
    "conv_transpose": conv_transpose,
    "einsum": lambda i, c, a: np.einsum(a["equation"], i[0], c["b"]),
    "rms_norm": rms_norm,
    "channel_layer_norm": channel_layer_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    "local_response_norm": local_response_norm,
    "image_input": shaped(lambda x, scale, bias: x * scale + bias),
    "affine": lambda i, c, a: numpy_pictures.affine(i[0], c["transform"], **a),
    **{name: shaped(function) for name, function in numpy_pictures.OPERATORS.items()},
}
