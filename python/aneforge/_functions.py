"""Functions of tensors, with the names, positions and defaults of the PyPI package aneforge 0.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._errors import ArgumentError, DTypeError, UnsupportedError
from ._tensor import Operand, Tensor, _ints, _like, _value, _vector, constant, op, ops


def input(
    shape: Sequence[int], dtype: str = "fp16", max_abs: float | None = None, *, name: str | None = None
) -> Tensor:
    """A named input of the program; ``max_abs`` is a promise about its values that nothing uses yet."""
    return Tensor(_core.input(_sizes(shape), dtype, name))


def image_input(shape: Sequence[int], scale: float = 1 / 255, bias: Any = 0.0, *, name: str | None = None) -> Tensor:
    """An image of bytes ``[batch, channels, height, width]``: its pixels times ``scale`` plus ``bias``, as fp16."""
    pixels = op("cast", [input(shape, "uint8", name=name)], dtype="fp16")
    for apply, value, neutral in ((Tensor.__mul__, scale, 1.0), (Tensor.__add__, bias, 0.0)):
        numbers = np.asarray(value, dtype=np.float64)
        if numbers.ndim:
            pixels = apply(pixels, numbers.reshape(1, -1, 1, 1))
        elif float(numbers) != neutral:
            pixels = apply(pixels, float(numbers))
    return pixels


def parameter(init: Any, *, name: str | None = None) -> Tensor:
    """A weight that training may change."""
    return Tensor(_core.parameter(init, name))


def conv(
    x: Tensor, weight: Operand, stride: int = 1, pad: Any = 0, dilation: int = 1, groups: int = 1, bias: Operand = None
) -> Tensor:
    """A convolution, weights ``[out, in / groups, height, width]``; ``pad`` one number or per side, from the top."""
    settings = _window(x, stride, pad, dilation, groups)
    return op("conv", [x, constant(weight), _vector(bias)], **settings)


def conv_transpose(
    x: Tensor, weight: Operand, stride: int = 1, pad: int = 0, dilation: int = 1, groups: int = 1, bias: Operand = None
) -> Tensor:
    """A transposed convolution with weights ``[in, out / groups, height, width]``."""
    settings = _window(x, stride, pad, dilation, groups)
    return op("conv_transpose", [x, constant(weight), _vector(bias)], **settings)


def dynamic_conv(
    x: Tensor, weight: Tensor, stride: int = 1, pad: int = 0, dilation: int = 1, groups: int = 1
) -> Tensor:
    """A convolution whose weights are a tensor of the graph."""
    return op("conv", [x, weight], **_window(x, stride, pad, dilation, groups))


def concat(tensors: Sequence[Tensor], axis: int = 1) -> Tensor:
    """Tensors one after the other along an axis."""
    return op("concat", [list(tensors)], axis=axis)


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    return op("stack", [list(tensors)], axis=axis)


def split(x: Tensor, num_splits: int, axis: int = 0) -> list[Tensor]:
    """Equal parts along an axis."""
    return ops("split", [x], num_splits=num_splits, axis=axis % max(len(x.shape), 1))


def batch_norm(x: Tensor, gamma: Operand, beta: Operand, mean: Operand, var: Operand, eps: float = 1e-05) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * gamma + beta``, per channel."""
    return op("batch_norm", [x, _vector(mean), _vector(var), _vector(gamma), _vector(beta)], epsilon=eps)


def instance_norm(x: Tensor, gamma: Operand, beta: Operand, eps: float = 1e-05) -> Tensor:
    """Mean 0 and variance 1 in each channel, times ``gamma``, plus ``beta``."""
    return op("instance_norm", [x, _vector(gamma), _vector(beta)], epsilon=eps)


def local_response_norm(x: Tensor, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divided by a power of the mean square over neighbouring channels."""
    return op("local_response_norm", [x], size=size, alpha=alpha, beta=beta, k=k)


def maximum(a: Operand, b: Operand) -> Tensor:
    """The greater of two, element by element."""
    return _two("maximum", a, b)


def minimum(a: Operand, b: Operand) -> Tensor:
    """The smaller of two, element by element."""
    return _two("minimum", a, b)


def select(cond: Tensor, a: Operand, b: Operand) -> Tensor:
    """``a`` where ``cond`` holds, else ``b``."""
    a = a if isinstance(a, Tensor) else _like(a, b) if isinstance(b, Tensor) else constant(a)
    return op("select", [cond, a, _like(b, a)])


def where(cond: Tensor, a: Operand, b: Operand) -> Tensor:
    """The same as :func:`select`."""
    return select(cond, a, b)


def mha(
    x: Tensor,
    Wq: Operand,
    bq: Operand,
    Wk: Operand,
    bk: Operand,
    Wv: Operand,
    bv: Operand,
    Wo: Operand,
    bo: Operand,
    n_heads: int,
    mask: Operand = None,
) -> Tensor:
    """Multi-head self-attention; ``mask`` is added to the scores."""
    return _heads([x, x, Wq, bq, Wk, bk, Wv, bv, Wo, bo, mask], n_heads)


def cross_attention(
    x: Tensor,
    context: Tensor,
    Wq: Operand,
    Wk: Operand,
    Wv: Operand,
    Wo: Operand,
    n_heads: int,
    bq: Operand = None,
    bk: Operand = None,
    bv: Operand = None,
    bo: Operand = None,
) -> Tensor:
    """Multi-head attention of ``x`` to ``context``."""
    return _heads([x, context, Wq, bq, Wk, bk, Wv, bv, Wo, bo], n_heads)


def geglu(x: Tensor, W: Operand, b: Operand) -> Tensor:
    """``value * gelu(gate)``, both halves of one dense layer; the value is the first half."""
    tensors = [_value(x), _value(constant(W)), None if b is None else _value(constant(b))]
    return Tensor(_core.composite("geglu", tensors, 0, ""))


def einsum(equation: str, *operands: Operand) -> Tensor:
    """numpy's ``einsum``, as products of matrices."""
    return Tensor(_core.composite("einsum", [_value(constant(given)) for given in operands], 0, equation))


def einsum_native(equation: str, a: Tensor, b: Operand) -> Tensor:
    """The engine's own ``einsum``, for the equations that it has."""
    return op("einsum", [[a, constant(b)]], equation=equation)


def sdpa(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None = None,
    is_causal: bool = False,
    attn_mask: Tensor | None = None,
) -> Tensor:
    """Attention in the engine's own layer: ``softmax(scale q k^T + mask) v``."""
    return op("sdpa", [q, k, v, attn_mask], scale=scale, is_causal=is_causal)


def gather(x: Tensor, indices: Any, axis: int = 0) -> Tensor:
    """The slices along an axis that constant indices name."""
    places = constant(np.asarray(_ints(indices)), "int32") if not isinstance(indices, Tensor) else indices
    return op("gather", [x, places], axis=axis % max(len(x.shape), 1))


def topk(x: Tensor, k: int, largest: bool = True) -> Tensor:
    """The ``k`` greatest values of each row of ``[rows, columns]``."""
    return op("topk", [x], k=k, largest=largest)


def sort(x: Tensor, descending: bool = False, return_indices: bool = False) -> Tensor:
    """Each row of ``[rows, columns]`` in order, or the places that its values come from."""
    return op("sort", [x], descending=descending, indices=return_indices)


def cross_product(a: Tensor, b: Tensor) -> Tensor:
    """The vector product of two vectors of three elements."""
    return op("cross_product", [a, b])


def cross_correlation(x: Tensor, template: Tensor) -> Tensor:
    """How well a template fits at each place of an image."""
    return op("cross_correlation", [x, template])


def cost_volume(aux: Tensor, ref: Tensor, disparity_range: int = 1) -> Tensor:
    """Distance of two rows of pixels at each disparity."""
    return op("cost_volume", [aux, ref], disparity_range=disparity_range)


def fps(points: Tensor, k: int) -> Tensor:
    """``k`` points, each the furthest from those before it."""
    return op("fps", [points], k=k)


def radius_search(points: Tensor, centroids: Tensor, radius: float) -> Tensor:
    """Which points lie within a radius of which centroids."""
    return op("radius_search", [points, centroids], radius=radius)


def minmax_norm(x: Tensor, dimension: str = "Width", eps: float = 0.0001) -> Tensor:
    """``(x - min) / (max - min + eps)`` along width or height."""
    return op("minmax_norm", [x], dimension=dimension, eps=eps)


def lrn(x: Tensor, alpha: float = 1.0, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Local response normalisation in the engine's own layer."""
    return op("lrn", [x], alpha=alpha, beta=beta, k=k)


def space_to_channel(x: Tensor, r: int) -> Tensor:
    """Blocks of ``r`` by ``r`` pixels gathered into channels."""
    return op("space_to_channel", [x], block_height=r, block_width=r)


def channel_to_space(x: Tensor, r: int) -> Tensor:
    """Channels spread over blocks of ``r`` by ``r`` pixels."""
    return op("channel_to_space", [x], block_height=r, block_width=r)


def space_to_batch(x: Tensor, bh: int, bw: int) -> Tensor:
    """Blocks of pixels gathered into the batch."""
    return op("space_to_batch", [x], block_height=bh, block_width=bw)


def batch_to_space(x: Tensor, bh: int, bw: int) -> Tensor:
    """The batch spread over blocks of pixels."""
    return op("batch_to_space", [x], block_height=bh, block_width=bw)


def flatten(x: Tensor) -> Tensor:
    """All elements in one row."""
    return op("flatten", [x])


def input_view(x: Tensor, offset: int, size: int) -> Tensor:
    """``size`` elements of the flattened tensor, from ``offset`` on."""
    return op("input_view", [x], offset=offset, size=size)


def dynamic_slice(x: Tensor, start: int, size: int = 2) -> Tensor:
    """``size`` elements of the last axis, from ``start`` on."""
    return op("dynamic_slice", [x], start=[start], size=[size])


def scaled_elementwise(x: Tensor, z: Tensor, op: str = "Add", scale: float = 1.0) -> Tensor:
    """Add, Mult, Min or Max of two tensors, scaled."""
    return ops("scaled_elementwise", [x, z], op=op, scale=scale)[0]


def pixel_shuffle(x: Tensor, r: int) -> Tensor:
    """Channels spread over pixels, in PyTorch's order."""
    return op("pixel_shuffle", [x], upscale_factor=r)


def pixel_unshuffle(x: Tensor, r: int) -> Tensor:
    """Pixels gathered into channels, in PyTorch's order."""
    return op("pixel_unshuffle", [x], downscale_factor=r)


def space_to_depth(x: Tensor, block_size: int = 2) -> Tensor:
    """Pixels gathered into channels, in TensorFlow's order."""
    return op("space_to_depth", [x], block_size=block_size)


def depth_to_space(x: Tensor, block_size: int = 2) -> Tensor:
    """Channels spread over pixels, in TensorFlow's order."""
    return op("depth_to_space", [x], block_size=block_size)


def crop(x: Tensor, top: int, bottom: int, left: int, right: int) -> Tensor:
    """Without some rows and columns of a map."""
    return op("crop", [x], crop_height=[top, bottom], crop_width=[left, right])


def resize_nearest_neighbor(x: Tensor, target_h: int, target_w: int) -> Tensor:
    """A map of another size, each pixel the one before its place."""
    return op("resize_nearest_neighbor", [x], target_size_height=target_h, target_size_width=target_w)


def resize_bilinear(x: Tensor, target_h: int, target_w: int, align_corners: bool = False) -> Tensor:
    """A map of another size, between its four neighbours."""
    mode = "ALIGN_CORNERS" if align_corners else "DEFAULT"
    return op("resize_bilinear", [x], target_size_height=target_h, target_size_width=target_w, sampling_mode=mode)


def upsample_bilinear(x: Tensor, scale: int = 2, align_corners: bool = False) -> Tensor:
    """A map enlarged, between its four neighbours."""
    return op(
        "upsample_bilinear", [x], scale_factor_height=scale, scale_factor_width=scale, align_corners=align_corners
    )


def affine(x: Tensor, transform: Operand, output_h: int, output_w: int, align_corners: bool = False) -> Tensor:
    """Seen through an affine map ``[a0, a1, a2, b0, b1, b2]`` from places of the result to places here."""
    if not align_corners:
        raise UnsupportedError("affine: corners at -1 and 1 are what there is; pass align_corners=True")
    return op("affine", [x, constant(transform)], output_height=output_h, output_width=output_w)


def mse(y: Tensor, target: Tensor) -> Tensor:
    """The mean square of a difference, over all axes, which stay."""
    return (y - target).square().mean(tuple(range(len(y.shape))))


def backward(loss: Tensor, params: Any, loss_scale: float = 1.0, stop: Any = None) -> dict[Tensor, Tensor]:
    """Gradients of a loss with one element by parameters, times ``loss_scale``."""
    if stop is not None:
        raise UnsupportedError("backward: stop is not here yet")
    wrt = list(params)
    scaled = loss if loss_scale == 1.0 else loss * loss_scale
    found = _core.backward(_value(scaled), [_value(tensor) for tensor in wrt])
    return dict(zip(wrt, map(Tensor, found), strict=True))


def _window(x: Tensor, stride: Any, pad: Any, dilation: Any, groups: int) -> dict[str, Any]:
    count = max(len(x.shape) - 2, 1) if isinstance(x, Tensor) else 2
    sides = _ints(pad)
    return {
        "strides": _ints(stride) * count if not isinstance(stride, (list, tuple)) else _ints(stride),
        "pad": sides * (2 * count) if len(sides) == 1 else sides,
        "dilations": _ints(dilation) * count if not isinstance(dilation, (list, tuple)) else _ints(dilation),
        "groups": groups,
    }


def _two(name: str, a: Operand, b: Operand) -> Tensor:
    a = a if isinstance(a, Tensor) else _like(a, b) if isinstance(b, Tensor) else constant(a)
    return op(name, [a, _like(b, a)])


def _heads(given: Sequence[Operand], n_heads: int) -> Tensor:
    if not isinstance(n_heads, int):
        raise DTypeError(f"n_heads takes an integer, got {type(n_heads).__name__}")
    tensors = [None if tensor is None else _value(constant(tensor)) for tensor in given]
    return Tensor(_core.composite("mha", tensors, n_heads, ""))


def _sizes(shape: Sequence[int]) -> list[int]:
    sizes = _ints(shape)
    if any(size < 1 for size in sizes):
        raise ArgumentError(f"shape {tuple(sizes)} has an extent below 1")
    return sizes
