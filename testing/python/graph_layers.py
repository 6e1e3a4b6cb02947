"""Layers and pictures of the graph operators in float64: PyTorch and numpy. Named in graph_ops.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

Tensor = torch.Tensor
Attributes = dict[str, Any]


class Use:
    """Inputs by name and attributes of one use."""

    def __init__(self, inputs: dict[str, list[Tensor]], attributes: Attributes) -> None:
        """Holds both."""
        self.inputs, self.attributes = inputs, attributes

    def __getattr__(self, name: str) -> Tensor:
        """The first tensor at an input."""
        return self.inputs[name][0]

    def get(self, name: str) -> Tensor | None:
        """The tensor at an input that may be empty."""
        return self.inputs[name][0] if self.inputs.get(name) else None

    def __getitem__(self, name: str) -> Any:
        """An attribute."""
        return self.attributes[name]


def away(x: Tensor) -> Tensor:
    """Nearest integer; ties, which go either way between devices, to the even one as in IEEE 754."""
    return torch.round(x)


def affine_part(y: Tensor, u: Use, shape: list[int]) -> Tensor:
    """Times gamma plus beta, brought to a shape."""
    for name, apply in (("gamma", torch.mul), ("beta", torch.add)):
        part = u.get(name)
        if part is not None:
            y = apply(y, part.reshape(shape))
    return y


def standardised(x: Tensor, axes: list[int], epsilon: float) -> Tensor:
    """Minus the mean over the standard deviation."""
    mean = x.mean(axes, keepdim=True)
    return (x - mean) / torch.sqrt(((x - mean) ** 2).mean(axes, keepdim=True) + epsilon)


def layer_norm(u: Use) -> Tensor:
    """Over any axes."""
    axes = sorted(axis % u.x.dim() for axis in u["axes"])
    shape = [extent if axis in axes else 1 for axis, extent in enumerate(u.x.shape)]
    return affine_part(standardised(u.x, axes, u["epsilon"]), u, shape)


def channels(u: Use) -> list[int]:
    """Extents of a vector per channel."""
    return [1, -1] + [1] * (u.x.dim() - 2)


def spatial(u: Use, name: str, count: int, default: int) -> list[int]:
    """A window attribute with its default."""
    return list(u.attributes.get(name) or [default] * count)


def padded(x: Tensor, pad: list[int], value: float) -> Tensor:
    """Constant padding given per axis before and after, spatial axes first to last."""
    pairs = [pad[index : index + 2] for index in range(0, len(pad), 2)]
    return F.pad(x, [side for pair in reversed(pairs) for side in pair], value=value)


def conv(u: Use) -> Tensor:
    """Cross-correlation of any rank."""
    rank = u.x.dim() - 2
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[rank]
    x = padded(u.x, spatial(u, "pad", 2 * rank, 0), 0.0)
    return function(
        x,
        u.weight,
        u.get("bias"),
        tuple(spatial(u, "strides", rank, 1)),
        0,
        tuple(spatial(u, "dilations", rank, 1)),
        u["groups"],
    )


def conv_transpose(u: Use) -> Tensor:
    """Full result, zeros behind it, then cut."""
    rank = u.x.dim() - 2
    function = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[rank]
    strides, dilations = spatial(u, "strides", rank, 1), spatial(u, "dilations", rank, 1)
    y = function(u.x, u.weight, None, tuple(strides), 0, 0, u["groups"], tuple(dilations))
    pad, extra = spatial(u, "pad", 2 * rank, 0), spatial(u, "output_padding", rank, 0)
    for axis in range(rank):
        y = padded(y, [0, 0] * (axis) + [0, extra[axis]] + [0, 0] * (rank - axis - 1), 0.0)
        y = y.narrow(axis + 2, pad[2 * axis], y.shape[axis + 2] - pad[2 * axis] - pad[2 * axis + 1])
    bias = u.get("bias")
    return y if bias is None else y + bias.reshape([1, -1] + [1] * rank)


def pool(u: Use, reduce: Callable[[Tensor, int, int], Tensor]) -> Tensor:
    """A window at a time; the reduction gets the elements of x, their number and that with padding."""
    x = u.x
    kernel = u["kernel_sizes"]
    rank = len(kernel)
    strides, pad = spatial(u, "strides", rank, 0), spatial(u, "pad", 2 * rank, 0)
    strides = [stride or size for stride, size in zip(strides, kernel, strict=True)]
    counts = []
    for axis in range(rank):
        room = x.shape[axis + 2] + pad[2 * axis] + pad[2 * axis + 1] - kernel[axis]
        count = room // strides[axis] + 1
        if u["ceil_mode"] and room % strides[axis]:
            # A window that would start behind the input and its front padding is left out.
            count += int(count * strides[axis] < x.shape[axis + 2] + pad[2 * axis])
        counts.append(count)
    results = []
    for place in np.ndindex(*counts):
        seen, whole = [], 1
        for axis, at in enumerate(place):
            start = at * strides[axis] - pad[2 * axis]
            seen.append(slice(max(start, 0), min(start + kernel[axis], x.shape[axis + 2])))
            whole *= min(start + kernel[axis], x.shape[axis + 2] + pad[2 * axis + 1]) - start
        window = x[(slice(None), slice(None), *seen)].reshape(*x.shape[:2], -1)
        results.append(reduce(window, window.shape[-1], whole))
    return torch.stack(results, -1).reshape(*x.shape[:2], *counts)


def local_response_norm(u: Use) -> Tensor:
    """PyTorch's own."""
    return F.local_response_norm(u.x, u["size"], u["alpha"], u["beta"], u["k"])


def shuffle(x: Tensor, block: int, depth_first: bool) -> Tensor:
    """Depth to space: block places before channels where depth_first."""
    n, c, h, w = x.shape
    c //= block * block
    if depth_first:
        return (
            x.reshape(n, block, block, c, h, w)
            .permute(0, 3, 4, 1, 5, 2)
            .reshape(n, c, h * block, w * block)
        )
    return F.pixel_shuffle(x, block)


def space_to_depth(u: Use) -> Tensor:
    """Block places before channels."""
    block = u["block_size"]
    n, c, h, w = u.x.shape
    blocks = u.x.reshape(n, c, h // block, block, w // block, block)
    return blocks.permute(0, 3, 5, 1, 2, 4).reshape(n, c * block * block, h // block, w // block)


def space_to_batch(u: Use) -> Tensor:
    """TensorFlow's definition on [batch, channels, height, width]."""
    (tall, wide), x = u["block_shape"], padded(u.x, u["paddings"], 0.0)
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // tall, tall, w // wide, wide).permute(3, 5, 0, 1, 2, 4)
    return blocks.reshape(n * tall * wide, c, h // tall, w // wide)


def batch_to_space(u: Use) -> Tensor:
    """The inverse, then a crop."""
    tall, wide = u["block_shape"]
    top, bottom, left, right = u["crops"]
    n, c, h, w = u.x.shape
    blocks = u.x.reshape(tall, wide, n // (tall * wide), c, h, w).permute(2, 3, 4, 0, 5, 1)
    y = blocks.reshape(n // (tall * wide), c, h * tall, w * wide)
    return y[:, :, top : y.shape[2] - bottom, left : y.shape[3] - right]


def lines(x: Tensor, axis: int, place: Callable[[int, int, int], float], to: int) -> Tensor:
    """One axis resized linearly; place(index, from, to) says where."""
    extent = x.shape[axis]
    at = torch.tensor(
        [min(max(place(index, extent, to), 0.0), extent - 1.0) for index in range(to)],
        dtype=torch.float64,
    )
    low = at.floor().long()
    high = (low + 1).clamp(max=extent - 1)
    share = (at - low).reshape([-1] + [1] * (-axis - 1))
    return x.index_select(axis, low) * (1 - share) + x.index_select(axis, high) * share


def resize_bilinear(u: Use) -> Tensor:
    """By the places that coremltools documents for each mode."""
    aligned = lambda i, n, m: 0.0 if m <= 1 else i * (n - 1) / (m - 1)  # noqa: E731
    place = {
        "DEFAULT": lambda i, n, m: i * n / m,
        "STRICT_ALIGN_CORNERS": aligned,
        "ALIGN_CORNERS": lambda i, n, m: (n - 1) / 2 if m == 1 else aligned(i, n, m),
        "OFFSET_CORNERS": lambda i, n, m: max(n - 1, 1) / m * (i + 0.5),
        "UNALIGN_CORNERS": lambda i, n, m: n / m * (i + 0.5) - 0.5,
    }[u["sampling_mode"]]
    return lines(lines(u.x, -2, place, u["target_size_height"]), -1, place, u["target_size_width"])


def interpolate(u: Use) -> Tensor:
    """PyTorch's own, with x as images."""
    x = u.x.reshape([1, -1, *u.x.shape[-2:]])
    factors = (u["scale_factor_height"], u["scale_factor_width"])
    y = F.interpolate(x, scale_factor=factors, mode="bilinear", align_corners=u["align_corners"])
    return y.reshape([*u.x.shape[:-2], *y.shape[-2:]])


def nearest(u: Use) -> Tensor:
    """Floor of the scaled place."""
    rows, columns = u.x.shape[-2:]
    height, width = u["target_size_height"], u["target_size_width"]
    down = torch.tensor([index * rows // height for index in range(height)])
    across = torch.tensor([index * columns // width for index in range(width)])
    return u.x.index_select(-2, down).index_select(-1, across)


def affine(u: Use) -> Tensor:
    """grid_sample over affine_grid, corners at -1 and 1."""
    batch = u.x.shape[0]
    theta = u.transform_matrix.reshape(-1, 2, 3).expand(batch, 2, 3)
    size = [batch, u.x.shape[1], u["output_height"], u["output_width"]]
    grid = F.affine_grid(theta, size, align_corners=True)
    return F.grid_sample(u.x, grid, mode="bilinear", padding_mode="zeros", align_corners=True)
