"""Resizing, warping and rearranging of pictures [N, C, H, W] in float64 numpy, for numpy_ops.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def blend(x: Array, axis: int, places: Array) -> Array:
    """Values at places between the pixels of one axis; beyond the edge is the edge."""
    last = x.shape[axis] - 1
    places = np.clip(places, 0, last)
    low = np.floor(places).astype(int)
    shape = [1] * x.ndim
    shape[axis] = -1
    part = (places - low).reshape(shape)
    return x.take(low, axis) * (1 - part) + x.take(np.minimum(low + 1, last), axis) * part


def aligned(extent: int, wanted: int) -> Array:
    """The first and the last pixel stay where they are."""
    return np.linspace(0, extent - 1, wanted)


def upsample_bilinear(x: Array, scale: int, align_corners: bool) -> Array:
    """Pixels are areas, so their centres lie at halves, unless the corners are aligned."""
    for axis in (2, 3):
        wanted = x.shape[axis] * scale
        halves = (np.arange(wanted) + 0.5) / scale - 0.5
        x = blend(x, axis, aligned(x.shape[axis], wanted) if align_corners else halves)
    return x


def resize_bilinear(x: Array, target_h: int, target_w: int, align_corners: bool) -> Array:
    """Pixels are points from zero on, unless the corners are aligned."""
    for axis, wanted in ((2, target_h), (3, target_w)):
        points = np.arange(wanted) * x.shape[axis] / wanted
        x = blend(x, axis, aligned(x.shape[axis], wanted) if align_corners else points)
    return x


def resize_nearest_neighbor(x: Array, target_h: int, target_w: int) -> Array:
    """The pixel at the floor of the scaled place."""
    for axis, wanted in ((2, target_h), (3, target_w)):
        x = x.take(np.arange(wanted) * x.shape[axis] // wanted, axis)
    return x


def affine(x: Array, matrix: Array, output_h: int, output_w: int, align_corners: bool) -> Array:
    """Each pixel of the result asks the picture at matrix @ (x, y, 1); the corners are at -1 and 1."""
    assert align_corners
    result = np.zeros((*x.shape[:2], output_h, output_w))
    (height, width), (a, b, c, d, e, f) = x.shape[2:], matrix[0]
    for i, v in enumerate(np.linspace(-1, 1, output_h)):
        for j, u in enumerate(np.linspace(-1, 1, output_w)):
            column = (a * u + b * v + c + 1) / 2 * (width - 1)
            row = (d * u + e * v + f + 1) / 2 * (height - 1)
            for y in (int(np.floor(row)), int(np.floor(row)) + 1):
                for z in (int(np.floor(column)), int(np.floor(column)) + 1):
                    if 0 <= y < height and 0 <= z < width:
                        weight = (1 - abs(row - y)) * (1 - abs(column - z))
                        result[:, :, i, j] += weight * x[:, :, y, z]
    return result


def split_channels(x: Array, block: int, block_first: bool) -> Array:
    """Channels become blocks of pixels; a channel is block place and plane, or the other way around."""
    n, c, h, w = x.shape
    planes = c // block**2
    if block_first:
        parts = x.reshape(n, block, block, planes, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, planes, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, planes, h * block, w * block)


def gather_blocks(x: Array, block: int, block_first: bool) -> Array:
    """The inverse of split_channels."""
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // block, block, w // block, block)
    order = (0, 3, 5, 1, 2, 4) if block_first else (0, 1, 3, 5, 2, 4)
    return parts.transpose(order).reshape(n, -1, h // block, w // block)


def crop(x: Array, top: int, bottom: int, left: int, right: int) -> Array:
    """Rows and columns cut off."""
    return x[:, :, top : x.shape[2] - bottom, left : x.shape[3] - right]


OPERATORS: dict[str, Callable[..., Array]] = {
    "upsample": lambda x, scale: x.repeat(scale, 2).repeat(scale, 3),
    "upsample_bilinear": upsample_bilinear,
    "resize_nearest_neighbor": resize_nearest_neighbor,
    "resize_bilinear": resize_bilinear,
    "crop": crop,
    "pixel_shuffle": lambda x, r: split_channels(x, r, block_first=False),
    "pixel_unshuffle": lambda x, r: gather_blocks(x, r, block_first=False),
    "depth_to_space": lambda x, block_size: split_channels(x, block_size, block_first=True),
    "space_to_depth": lambda x, block_size: gather_blocks(x, block_size, block_first=True),
}
