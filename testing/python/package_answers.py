"""Runs ML Program packages on Linux: an answer to compare ours with that owes nothing to our code.

    package_answers.py PACKAGE INPUTS.npz OUTPUTS.npz

coremltools' reader builds the program and Apple's own numpy code expands compressed weights; PyTorch
computes the operations in float32, and every result is rounded to the element type that the program
declares for it. An operation that is not in the list below stops the run with its name.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

logging.disable(logging.CRITICAL)
with contextlib.redirect_stderr(io.StringIO()):
    from coremltools import proto
    from coremltools.converters.mil.frontend.milproto import load as milproto
    from coremltools.converters.mil.mil import types

Tensor = torch.Tensor


class Given:
    """The arguments of one operation: tensors by `t`, everything else by `v`."""

    def __init__(self, operation: Any, values: dict[str, np.ndarray]) -> None:
        self.operation = operation
        self.values = values

    def array(self, var: Any) -> np.ndarray:
        """The value of a variable."""
        return np.asarray(var.val) if var.name not in self.values else self.values[var.name]

    def has(self, port: str) -> bool:
        """Whether something stands at a port."""
        return self.operation.inputs.get(port) is not None

    def v(self, port: str, default: Any = None) -> Any:
        """A parameter as numbers or text."""
        return self.array(self.operation.inputs[port]).tolist() if self.has(port) else default

    def t(self, port: str) -> Tensor:
        """A tensor, floats in float32."""
        return tensor(self.array(self.operation.inputs[port]))

    def many(self, port: str) -> list[Tensor]:
        """The tensors of a tuple."""
        return [tensor(self.array(var)) for var in self.operation.inputs[port]]


def tensor(array: np.ndarray) -> Tensor:
    """An array as PyTorch computes with it."""
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array.astype(np.float32) if array.dtype.kind == "f" else array.copy())


def window(g: Given, sizes: list[int], dilations: list[int]) -> list[tuple[int, int]]:
    """Padding before and after each spatial axis."""
    kind, strides = g.v("pad_type", "valid"), g.v("strides", [1] * len(sizes))
    if kind == "valid":
        return [(0, 0)] * len(sizes)
    if kind == "custom":
        pad = g.v("pad")
        return list(zip(pad[::2], pad[1::2], strict=True))
    padding = []
    for extent, size, stride, dilation in zip(
        g.t("x").shape[2:], sizes, strides, dilations, strict=True
    ):
        total = max((-(-extent // stride) - 1) * stride + (size - 1) * dilation + 1 - extent, 0)
        small, large = total // 2, total - total // 2
        padding.append((small, large) if kind == "same" else (large, small))
    return padding


def padded(x: Tensor, padding: list[tuple[int, int]], value: float = 0.0) -> Tensor:
    """A tensor with its spatial axes padded."""
    return F.pad(x, [one for pair in reversed(padding) for one in pair], value=value)


def conv(g: Given) -> Tensor:
    """Convolution over one, two or three axes."""
    weight = g.t("weight")
    spatial = weight.dim() - 2
    dilations = g.v("dilations", [1] * spatial)
    x = padded(g.t("x"), window(g, list(weight.shape[2:]), dilations))
    bias = g.t("bias") if g.has("bias") else None
    strides = g.v("strides", [1] * spatial)
    function = (F.conv1d, F.conv2d, F.conv3d)[spatial - 1]
    return function(x, weight, bias, strides, 0, dilations, g.v("groups", 1))


def conv_transpose(g: Given) -> Tensor:
    """Transposed convolution, cut to the extents that the program declares."""
    weight, bias = g.t("weight"), g.t("bias") if g.has("bias") else None
    spatial = weight.dim() - 2
    kind, pad = g.v("pad_type", "valid"), g.v("pad", [0] * (2 * spatial))
    function = (F.conv_transpose1d, F.conv_transpose2d)[spatial - 1]
    strides, groups = g.v("strides", [1] * spatial), g.v("groups", 1)
    y = function(g.t("x"), weight, bias, strides, 0, 0, groups, g.v("dilations", [1] * spatial))
    for axis in range(2, y.dim()):
        extent, wanted = y.shape[axis], int(g.operation.outputs[0].shape[axis])
        custom = pad[2 * (axis - 2)] if kind == "custom" else 0
        before = max(extent - wanted, 0) // 2 if kind.startswith("same") else custom
        assert before + wanted <= extent
        y = y.narrow(axis, before, wanted)
    return y


def pool(g: Given, kind: str) -> Tensor:
    """Maximum or mean over windows."""
    sizes, strides = g.v("kernel_sizes"), g.v("strides")
    strides = strides or [1] * len(sizes)
    padding = window(g, sizes, [1] * len(sizes))
    assert not g.v("ceil_mode", False)
    functions = (F.max_pool1d, F.max_pool2d) if kind == "max" else (F.avg_pool1d, F.avg_pool2d)
    function = functions[len(sizes) - 1]
    x = g.t("x")
    y = function(padded(x, padding, -np.inf if kind == "max" else 0.0), sizes, strides)
    if kind == "avg" and g.v("exclude_padding_from_average", False):
        y = y / function(padded(torch.ones_like(x), padding), sizes, strides)
    return y


def affine(g: Given, x: Tensor, shape: list[int]) -> Tensor:
    """`gamma` x + `beta`."""
    if g.has("gamma"):
        x = x * g.t("gamma").view(shape)
    return x + g.t("beta").view(shape) if g.has("beta") else x


def batch_norm(g: Given) -> Tensor:
    """Normalisation with known statistics."""
    x = g.t("x")
    shape = [1, -1] + [1] * (x.dim() - 2)
    scale = torch.sqrt(g.t("variance").view(shape) + g.v("epsilon", 1e-5))
    return affine(g, (x - g.t("mean").view(shape)) / scale, shape)


def norm(g: Given, axes: list[int], shape: list[int]) -> Tensor:
    """Normalisation with the statistics of the data."""
    x = g.t("x")
    centred = x - x.mean(axes, keepdim=True)
    variance = (centred**2).mean(axes, keepdim=True)
    return affine(g, centred / torch.sqrt(variance + g.v("epsilon", 1e-5)), shape)


def layer_norm(g: Given) -> Tensor:
    """Over the last axes."""
    x = g.t("x")
    axes = sorted(axis % x.dim() for axis in g.v("axes", list(range(x.dim()))))
    return norm(g, axes, [x.shape[axis] if axis in axes else 1 for axis in range(x.dim())])


def instance_norm(g: Given) -> Tensor:
    """Over the spatial axes."""
    dims = g.t("x").dim()
    return norm(g, list(range(2, dims)), [1, -1] + [1] * (dims - 2))


def pad(g: Given) -> Tensor:
    """The last axes padded."""
    x, amounts, mode = g.t("x"), g.v("pad"), g.v("mode", "constant")
    pairs = list(zip(amounts[::2], amounts[1::2], strict=True))
    if mode == "constant":
        return padded(x, pairs, float(g.v("constant_val", 0.0)))
    full = [(0, 0)] * (x.dim() - len(pairs)) + pairs
    mode = {"reflect": "reflect", "replicate": "edge"}[mode]
    return torch.from_numpy(np.pad(x.numpy(), full, mode=mode))


def slice_by_index(g: Given) -> Tensor:
    """Strided parts of axes."""
    x = g.t("x").numpy()
    off = [False] * x.ndim
    begin_mask, end_mask = g.v("begin_mask", off), g.v("end_mask", off)
    squeeze, stride = g.v("squeeze_mask", off), g.v("stride", [1] * x.ndim)
    begin, end, parts = g.v("begin"), g.v("end"), []
    for axis in range(x.ndim):
        first = None if begin_mask[axis] else begin[axis]
        last = None if end_mask[axis] else end[axis]
        parts.append(begin[axis] if squeeze[axis] else slice(first, last, stride[axis]))
    return torch.from_numpy(np.array(x[tuple(parts)]))


def reshape(g: Given) -> Tensor:
    """0 keeps an extent, -1 takes what is left."""
    x = g.t("x")
    shape = [x.shape[axis] if extent == 0 else extent for axis, extent in enumerate(g.v("shape"))]
    return x.reshape(shape)


def expand_dims(g: Given) -> Tensor:
    """New axes of extent 1."""
    return torch.from_numpy(np.expand_dims(g.t("x").numpy(), tuple(g.v("axes"))))


def squeeze(g: Given) -> Tensor:
    """Axes of extent 1 dropped."""
    axes = g.v("axes")
    return torch.from_numpy(np.squeeze(g.t("x").numpy(), None if axes is None else tuple(axes)))


def matmul(g: Given) -> Tensor:
    """Product of matrices, with either transposed."""
    x, y = g.t("x"), g.t("y")
    x = x.transpose(-1, -2) if g.v("transpose_x", False) else x
    return x @ (y.transpose(-1, -2) if g.v("transpose_y", False) else y)


def gelu(g: Given) -> Tensor:
    """Exact, or by tanh."""
    mode = {"EXACT": "none", "TANH_APPROXIMATION": "tanh"}[g.v("mode", "EXACT")]
    return F.gelu(g.t("x"), approximate=mode)


def cast(g: Given) -> Tensor:
    """To another element type; rounding happens where results are kept."""
    x, dtype = g.t("x"), g.v("dtype")
    return x.float() if dtype.startswith("fp") else (x != 0 if dtype == "bool" else x.int())


def resized(g: Given, mode: str) -> Tensor:
    """Upsampled to the extents that the program declares."""
    size = [int(extent) for extent in g.operation.outputs[0].shape[2:]]
    if mode == "nearest":
        return F.interpolate(g.t("x"), size, mode=mode)
    corners = g.v("align_corners", True)
    return F.interpolate(g.t("x"), size, mode=mode, align_corners=corners)


def gather(g: Given) -> Tensor:
    """Slices of an axis picked by index."""
    x = g.array(g.operation.inputs["x"])
    assert g.v("batch_dims", 0) == 0
    return tensor(np.take(x, g.array(g.operation.inputs["indices"]), g.v("axis", 0)))


def reduce(function: Callable[[Tensor, list[int], bool], Tensor]) -> Callable[[Given], Tensor]:
    """A reduction over some axes."""

    def run(g: Given) -> Tensor:
        x = g.t("x")
        axes = g.v("axes") or list(range(x.dim()))
        return function(x, axes, g.v("keep_dims", False))

    return run


def binary(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Given], Tensor]:
    """An operation on two tensors."""
    return lambda g: function(g.t("x"), g.t("y"))


def unary(function: Callable[[Tensor], Tensor]) -> Callable[[Given], Tensor]:
    """An operation on one tensor."""
    return lambda g: function(g.t("x"))


def inverse_root(g: Given) -> Tensor:
    """1 / sqrt(x + epsilon)."""
    return torch.rsqrt(g.t("x") + g.v("epsilon", 1e-12))


RUN: dict[str, Callable[[Given], Tensor | list[Tensor]]] = {
    "add": binary(torch.add),
    "avg_pool": lambda g: pool(g, "avg"),
    "batch_norm": batch_norm,
    "cast": cast,
    "clip": lambda g: g.t("x").clamp(g.v("alpha"), g.v("beta")),
    "concat": lambda g: torch.cat(g.many("values"), g.v("axis")),
    "conv": conv,
    "conv_transpose": conv_transpose,
    "exp": unary(torch.exp),
    "expand_dims": expand_dims,
    "gather": gather,
    "gelu": gelu,
    "greater": binary(torch.gt),
    "greater_equal": binary(torch.ge),
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "linear": lambda g: F.linear(g.t("x"), g.t("weight"), g.t("bias") if g.has("bias") else None),
    "log": lambda g: torch.log(g.t("x") + g.v("epsilon", 1e-45)),
    "matmul": matmul,
    "max_pool": lambda g: pool(g, "max"),
    "maximum": binary(torch.maximum),
    "mul": binary(torch.mul),
    "pad": pad,
    "pow": binary(torch.pow),
    "real_div": binary(torch.div),
    "reduce_l2_norm": reduce(lambda x, a, k: (x * x).sum(a, k).sqrt()),
    "reduce_max": reduce(lambda x, a, k: x.amax(a, k)),
    "reduce_mean": reduce(lambda x, a, k: x.mean(a, k)),
    "reduce_min": reduce(lambda x, a, k: x.amin(a, k)),
    "reduce_sum": reduce(lambda x, a, k: x.sum(a, k)),
    "reduce_sum_square": reduce(lambda x, a, k: (x * x).sum(a, k)),
    "relu": unary(torch.relu),
    "relu6": unary(F.relu6),
    "reshape": reshape,
    "rsqrt": inverse_root,
    "select": lambda g: torch.where(g.t("cond"), g.t("a"), g.t("b")),
    "shape": lambda g: torch.tensor(g.t("x").shape, dtype=torch.int32),
    "sigmoid": unary(torch.sigmoid),
    "silu": unary(F.silu),
    "slice_by_index": slice_by_index,
    "softmax": lambda g: g.t("x").softmax(g.v("axis", -1)),
    "split": lambda g: list(torch.tensor_split(g.t("x"), g.v("num_splits"), g.v("axis"))),
    "sqrt": unary(torch.sqrt),
    "square": unary(torch.square),
    "squeeze": squeeze,
    "stack": lambda g: torch.stack(g.many("values"), g.v("axis")),
    "sub": binary(torch.sub),
    "tanh": unary(torch.tanh),
    "transpose": lambda g: g.t("x").permute(g.v("perm")),
    "upsample_bilinear": lambda g: resized(g, "bilinear"),
    "upsample_nearest_neighbor": lambda g: resized(g, "nearest"),
}


def run(package: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a package's main function."""
    manifest = json.loads((package / "Manifest.json").read_text())
    root = manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]["path"]
    model = proto.Model_pb2.Model()
    model.ParseFromString((package / "Data" / root).read_bytes())
    weights = (package / "Data" / root).parent / "weights"
    program = milproto.load(model, model.specificationVersion, str(weights))
    function = program.functions["main"]
    values: dict[str, np.ndarray] = {}
    for name, var in function.inputs.items():
        values[name] = np.asarray(inputs[name]).astype(types.nptype_from_builtin(var.dtype))
    for operation in function.operations:
        if operation.op_type == "const":
            continue
        if operation.op_type.startswith("constexpr_"):
            (var,) = operation.outputs
            known = var.val if var.val is not None else operation.materialized_val_inference()
            values[var.name] = np.asarray(known)
            continue
        if operation.op_type not in RUN:
            sys.exit(f"package_answers: no {operation.op_type} here ({operation.name})")
        results = RUN[operation.op_type](Given(operation, values))
        results = results if isinstance(results, list) else [results]
        for var, result in zip(operation.outputs, results, strict=True):
            values[var.name] = result.numpy().astype(types.nptype_from_builtin(var.dtype))
    return {var.name: values[var.name] for var in function.outputs}


def main() -> int:
    """Runs one package."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("package", "inputs", "outputs"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    with torch.no_grad(), np.load(given.inputs) as inputs:
        np.savez(given.outputs, **run(given.package, dict(inputs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
