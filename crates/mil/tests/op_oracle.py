"""Compares the operator table with coremltools and PyTorch.

Reads what tests/op_oracle.rs writes: every operator with its ports and every case with arguments and our results. Checks port
names, which of them are optional, defaults, result shapes against coremltools' registry, and result values against
coremltools' constant evaluation, or against PyTorch in float64 where coremltools has none. Prints one line per difference and a
summary; exits 1 if there is a difference.
"""

import json
import logging
import sys
import types as python_types

logging.disable(logging.CRITICAL)

import coremltools as ct
import numpy as np
import torch
import torch.nn.functional as F
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types
from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry

# Operators whose form of iOS 18 the table describes, although an older one with other ports exists.
NEWER_FORM = {"crop_resize", "constexpr_lut_to_dense", "constexpr_sparse_to_dense"}
# Where the table differs from coremltools on purpose: operator -> ports.
# Operators of the engine that coremltools has no word for.
ENGINE_ONLY = {"acosh", "asinh"}
# Words of coremltools that name nothing a program of the engine has.
NOT_OF_THE_ENGINE = {
    "_const_symbolic": "a constant of unknown extent while a converter runs",
    "classify": "turns scores into words, behind the program",
    "conv_quantized": "replaced by conv with a constexpr weight, and by nothing from iOS 16 on",
}
EXTRA_PORTS = {"atanh": {"epsilon"}}
INTEGER = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32, "uint32": np.uint32}
PACKED = {
    "int4": types.int4, "uint1": types.uint1, "uint2": types.uint2, "uint3": types.uint3, "uint4": types.uint4, "uint6": types.uint6,
}


class Report:
    """Collects differences."""

    def __init__(self):
        self.lines, self.by, self.unchecked = [], {"coremltools": 0, "PyTorch": 0}, []

    def differ(self, *parts):
        self.lines.append(" ".join(str(part) for part in parts))


def newest(name):
    """The newest registered form of an operator, and the op-set of the oldest."""
    forms = SSAOpRegistry.core_ops.get(name)
    if not forms:
        return None, None
    names = [version.name.lower() for version in forms]
    return list(forms.values())[-1], names[0].replace("ios13", "ios15")


def check_ports(op, report):
    form, oldest = newest(op["name"])
    if op["name"] in ENGINE_ONLY:
        if form is not None:
            report.differ(op["name"], "is in coremltools' registry by now")
        return
    if form is None:
        report.differ(op["name"], "is not in coremltools' registry")
        return
    if op["opset"] != oldest and op["name"] not in NEWER_FORM:
        report.differ(op["name"], "op-set", op["opset"], "but coremltools has it from", oldest)
    spec = dict(form.input_spec.input_types)
    extra = EXTRA_PORTS.get(op["name"], set())
    ours = {port["name"]: port for port in op["ports"] if port["name"] not in extra}
    if set(ours) != set(spec):
        report.differ(op["name"], "ports", sorted(ours), "coremltools", sorted(spec))
        return
    for name, port in ours.items():
        if port["required"] == bool(spec[name].optional):
            report.differ(op["name"], name, "is required" if port["required"] else "is optional", "unlike in coremltools")
    tensor = python_types.SimpleNamespace(rank=4, shape=(1, 2, 3, 4), dtype=types.fp32, val=True)
    fake = form.__new__(form)
    for name in spec:
        setattr(fake, name, tensor)
    defaults = dict(form.default_inputs(fake).items())
    for name, port in ours.items():
        if port["default"] is None:
            continue
        theirs = defaults.get(name)
        same = theirs == port["default"] if isinstance(theirs, str) else np.float32(theirs) == np.float32(port["default"])
        if not same:
            report.differ(op["name"], name, "default", port["default"], "coremltools", theirs)


def value(argument):
    """An argument as coremltools takes it: floats as fp32, so that both sides see the same numbers."""
    if "text" in argument:
        return argument["text"]
    data, shape, dtype = argument["data"], argument["shape"], argument["dtype"]
    if dtype == "bool":
        array = np.array(data, dtype=bool)
    elif dtype in INTEGER:
        array = np.array(data, dtype=INTEGER[dtype])
    elif dtype in PACKED:
        array = np.array(data).astype(types.nptype_from_builtin(PACKED[dtype]))
    else:
        array = np.array(data, dtype=np.float32)
    array = array.reshape(shape)
    if dtype == "bool" and not shape:
        return bool(array)
    return array if shape else array[()]


def arguments(case):
    found = {}
    for argument in case["arguments"]:
        taken = value(argument)
        if argument["variadic"]:
            found.setdefault(argument["port"], []).append(taken)
        else:
            found[argument["port"]] = taken
    return found


def evaluate(name, given):
    """Shapes and values that coremltools gives; values are None where it does not compute them."""
    results = []

    @mb.program(input_specs=[mb.TensorSpec((1,))], opset_version=ct.target.iOS18)
    def program(x):
        made = getattr(mb, name)(**given)
        for index, var in enumerate(made if isinstance(made, (list, tuple)) else [made]):
            computed = var.val
            if computed is None and hasattr(var.op, "materialized_val_inference"):
                computed = var.op.materialized_val_inference()
                computed = computed[index] if isinstance(computed, tuple) else computed
            results.append((tuple(var.shape), computed))
        return mb.identity(x=x)

    return results


def double(array):
    return torch.from_numpy(np.asarray(array, dtype=np.float64))


def per_axis_padding(given, kernel, extents):
    """Padding before and after each spatial axis."""
    kind, rank = given.get("pad_type", "valid"), len(kernel)
    strides = list(given.get("strides", [1] * rank))
    dilations = list(given.get("dilations", [1] * rank))
    if kind == "custom":
        pad = list(given.get("pad", [0] * 2 * rank))
        return [(int(pad[2 * axis]), int(pad[2 * axis + 1])) for axis in range(rank)]
    pairs = []
    for axis in range(rank):
        total = 0
        if kind.startswith("same"):
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            total = max((-(-extents[axis] // strides[axis]) - 1) * strides[axis] + reach - extents[axis], 0)
        pairs.append((total - total // 2, total // 2) if kind == "same_lower" else (total // 2, total - total // 2))
    return [(int(a), int(b)) for a, b in pairs]


def torch_conv(given):
    x, weight = double(given["x"]), double(given["weight"])
    rank = x.ndim - 2
    pairs = per_axis_padding(given, weight.shape[2:], x.shape[2:])
    x = F.pad(x, [side for pair in reversed(pairs) for side in pair])
    bias = double(given["bias"]) if "bias" in given else None
    strides, dilations = list(map(int, given.get("strides", [1] * rank))), list(map(int, given.get("dilations", [1] * rank)))
    return [F.conv1d, F.conv2d, F.conv3d][rank - 1](x, weight, bias, strides, 0, dilations, int(given.get("groups", 1)))


def torch_conv_transpose(given):
    if "output_shape" in given:
        return None
    x, weight = double(given["x"]), double(given["weight"])
    rank = x.ndim - 2
    bias = double(given["bias"]) if "bias" in given else None
    strides, dilations = list(map(int, given.get("strides", [1] * rank))), list(map(int, given.get("dilations", [1] * rank)))
    function = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1]
    full = function(x, weight, bias, strides, 0, 0, int(given.get("groups", 1)), dilations)
    pairs = per_axis_padding({**given, "strides": [1] * rank}, weight.shape[2:], x.shape[2:])
    for axis, (before, after) in enumerate(pairs):
        full = full.narrow(axis + 2, before, full.shape[axis + 2] - before - after)
    return full


def torch_pool(name, given):
    x, kernel = double(given["x"]), [int(size) for size in given["kernel_sizes"]]
    rank = x.ndim - 2
    strides = [int(step) for step in given.get("strides", [1] * rank)]
    pairs = per_axis_padding(given, kernel, x.shape[2:])
    if rank != 2:
        return None
    sides = [side for pair in reversed(pairs) for side in pair]
    ceil = bool(given.get("ceil_mode", False))
    even = all(a == b for a, b in pairs)
    if name == "l2_pool":
        return torch.sqrt(F.avg_pool2d(F.pad(x * x, sides), kernel, strides, ceil_mode=ceil) * np.prod(kernel))
    before = [pair[0] for pair in pairs]
    legal = even and all(2 * pad <= size for pad, size in zip(before, kernel))
    if name == "max_pool":
        if legal:
            return F.max_pool2d(x, kernel, strides, before, ceil_mode=ceil)
        return None if ceil else F.max_pool2d(F.pad(x, sides, value=-torch.inf), kernel, strides)
    exclude = bool(given.get("exclude_padding_from_average", False))
    return F.avg_pool2d(x, kernel, strides, before, ceil_mode=ceil, count_include_pad=not exclude) if legal else None


def numpy_scatter(name, given):
    """The scatters by numpy's unbuffered ufuncs, which combine repeated places in order."""
    data, updates = np.array(given["data"], dtype=np.float64), np.asarray(given["updates"], dtype=np.float64)
    indices, mode = np.asarray(given["indices"]).astype(np.int64), given.get("mode", "add")
    axis = int(given.get("axis", 0)) % data.ndim
    if name == "scatter":
        place = (slice(None),) * axis + (indices,)
    elif name == "scatter_along_axis":
        grid = list(np.indices(indices.shape))
        place = tuple(grid[:axis] + [indices] + grid[axis + 1 :])
    else:
        place = tuple(np.moveaxis(indices, -1, 0))
    ufuncs = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum}
    if mode == "update":
        data[place] = updates
    else:
        ufuncs[mode].at(data, place, updates)
    return data


def numpy_gather_nd(given):
    x, indices, batch = np.asarray(given["x"], np.float64), np.asarray(given["indices"]).astype(np.int64), int(given.get("batch_dims", 0))
    grid = np.indices(indices.shape[:-1])[:batch]
    return x[tuple(grid) + tuple(np.moveaxis(indices, -1, 0))]


def torch_resample(given):
    """grid_sample, where its reflection (about centres if corners are aligned, else about edges) is the one that is meant."""
    mode, padding, corners = given["sampling_mode"], given["padding_mode"], bool(given["align_corners"])
    name = {"constant": "zeros", "border": "border", "reflection": "reflection", "symmetric": "reflection"}[padding]
    fits = padding not in ("reflection", "symmetric") or corners == (padding == "reflection")
    if given["coordinates_mode"] != "normalized_minus_one_to_one" or not fits or float(given["padding_value"]) != 0:
        return None
    return F.grid_sample(double(given["x"]), double(given["coordinates"]), mode, name, align_corners=corners)


def torch_value(name, given):
    """Our operator in PyTorch; None where nothing here covers it."""
    get = lambda port: double(given[port]) if port in given else None
    if name == "conv":
        return torch_conv(given)
    if name == "conv_transpose":
        return torch_conv_transpose(given)
    if name in ("max_pool", "avg_pool", "l2_pool"):
        return torch_pool(name, given)
    epsilon = float(given.get("epsilon", 1e-5))
    if name == "batch_norm":
        return F.batch_norm(get("x"), get("mean"), get("variance"), get("gamma"), get("beta"), False, 0.0, epsilon)
    if name == "instance_norm":
        return F.instance_norm(get("x"), None, None, get("gamma"), get("beta"), True, 0.0, epsilon)
    if name == "local_response_norm":
        return F.local_response_norm(get("x"), int(given["size"]), float(given["alpha"]), float(given["beta"]), float(given["k"]))
    if name == "pixel_shuffle":
        return F.pixel_shuffle(get("x"), int(given["upscale_factor"]))
    if name == "pixel_unshuffle":
        return F.pixel_unshuffle(get("x"), int(given["downscale_factor"]))
    if name in ("depth_to_space", "space_to_depth"):
        x, r = get("x"), int(given["block_size"])
        n, c, h, w = x.shape
        if name == "depth_to_space":
            return x.reshape(n, r, r, c // r // r, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // r // r, h * r, w * r)
        return x.reshape(n, c, h // r, r, w // r, r).permute(0, 3, 5, 1, 2, 4).reshape(n, c * r * r, h // r, w // r)
    if name == "einsum":
        return torch.einsum(given["equation"], *[double(value) for value in given["values"]])
    if name in ("upsample_nearest_neighbor", "upsample_bilinear") and given["x"].ndim == 4:
        factors = [float(given.get("scale_factor_height", 1)), float(given.get("scale_factor_width", 1))]
        if name == "upsample_nearest_neighbor":
            return F.interpolate(get("x"), scale_factor=factors, mode="nearest")
        if "half_pixel_centers" not in given:
            corners = bool(given.get("align_corners", True))
            return F.interpolate(get("x"), scale_factor=factors, mode="bilinear", align_corners=corners)
    if name in ("acosh", "asinh"):
        return getattr(torch, name)(get("x"))
    if name == "silu":
        return F.silu(get("x"))
    if name == "crop":
        (top, bottom), (left, right) = given["crop_height"], given["crop_width"]
        height, width = given["x"].shape[-2:]
        return get("x")[..., top : height - bottom, left : width - right]
    if name == "prelu":
        return F.prelu(get("x"), get("alpha"))
    if name == "cumsum":
        x, axis = get("x"), int(given.get("axis", 0))
        x = torch.flip(x, [axis]) if given.get("reverse") else x
        y = torch.cumsum(x, axis) - x * bool(given.get("exclusive"))
        return torch.flip(y, [axis]) if given.get("reverse") else y
    if name == "gather_along_axis":
        indices = torch.from_numpy(np.asarray(given["indices"], dtype=np.int64))
        axis = int(given.get("axis", 0))
        return torch.gather(get("x"), axis, indices % given["x"].shape[axis])
    if name.startswith("scatter"):
        return torch.from_numpy(numpy_scatter(name, given))
    if name == "gather_nd":
        return torch.from_numpy(numpy_gather_nd(given))
    if name == "one_hot":
        dtype = lambda port, otherwise: float(given.get(port, otherwise))
        size, on, off = int(given["one_hot_vector_size"]), dtype("on_value", 1), dtype("off_value", 0)
        spread = np.arange(size) == np.asarray(given["indices"])[..., None]
        axis = int(given.get("axis", -1))
        return torch.from_numpy(np.moveaxis(np.where(spread, on, off), -1, axis))
    if name == "reverse_sequence":
        x, sequence, batch = np.array(given["x"], np.float64), int(given.get("seq_axis", 0)), int(given.get("batch_axis", 0))
        rows = np.moveaxis(x, [batch, sequence], [0, 1])
        for row, length in zip(rows, np.asarray(given["lengths"])):
            row[: int(length)] = row[: int(length)][::-1].copy()
        return torch.from_numpy(x)
    if name == "sliding_windows":
        return get("x").unfold(int(given["axis"]), int(given["size"]), int(given.get("stride", 1))).movedim(
            -1, int(given["axis"]) % given["x"].ndim + 1
        )
    if name == "affine":
        x, theta = get("x"), get("transform_matrix").reshape(-1, 2, 3)
        size = (x.shape[0], x.shape[1], int(given["output_height"]), int(given["output_width"]))
        grid = F.affine_grid(theta.expand(x.shape[0], 2, 3), size, align_corners=True)
        return F.grid_sample(x, grid, "bilinear", "zeros", align_corners=True)
    if name == "resample":
        return torch_resample(given)
    if name == "softplus_parametric":
        shape = [1, -1] + [1] * (given["x"].ndim - 2)
        alpha, beta = get("alpha").reshape(shape), get("beta").reshape(shape)
        return alpha * F.softplus(beta * get("x"))
    if name == "scaled_dot_product_attention":
        mask = given.get("attn_mask")
        mask = mask if mask is None else torch.from_numpy(mask) if mask.dtype == bool else double(mask)
        return F.scaled_dot_product_attention(get("query"), get("key"), get("value"), attn_mask=mask)
    return None


def compare(op, case, report):
    label = op["name"] + "." + case["name"]
    given = arguments(case)
    if op["name"] == "constexpr_cast":  # the one operator that takes halves alone
        given["source_val"] = given["source_val"].astype(np.float16)
    ours = [np.array(result["data"], dtype=np.float64).reshape(result["shape"]) for result in case["results"]]
    try:
        theirs = None if op["name"] in ENGINE_ONLY else evaluate(op["name"], given)
    except Exception as error:  # the registry's own bugs must not hide the other cases
        theirs = None
        if label not in KNOWN_FAILURES:
            report.differ(label, "coremltools refuses:", type(error).__name__, str(error).splitlines()[0] if str(error) else "")
    computed = torch_value(op["name"], given)
    if theirs is not None:
        shapes = [tuple(int(extent) for extent in shape) for shape, _ in theirs]
        if shapes != [result.shape for result in ours]:
            report.differ(label, "shapes", [result.shape for result in ours], "coremltools", shapes)
            return
        if all(values is not None for _, values in theirs) and label not in KNOWN_VALUES:
            report.by["coremltools"] += 1
            for mine, (_, values) in zip(ours, theirs):
                close(report, label, "coremltools", mine, np.asarray(values, dtype=np.float64), 2e-6)
    if computed is not None:
        report.by["PyTorch"] += 1
        close(report, label, "torch", ours[0], computed.numpy(), 1e-12)
    elif theirs is not None and any(values is None for _, values in theirs):
        report.unchecked.append(label)


def close(report, label, who, mine, other, tolerance):
    if mine.shape != other.shape:
        report.differ(label, "shape", mine.shape, who, other.shape)
        return
    # 0/0 has no agreed value: a lone element over no variance, a row whose every key is masked.
    known = ~np.isnan(mine)
    mine, other = mine[known], other[known]
    scale = max(1.0, float(np.abs(other).max(initial=0.0)))
    worst = float(np.abs(mine - other).max(initial=0.0))
    if not worst <= tolerance * scale:
        report.differ(label, "differs from", who, "by", worst, "ours", mine.ravel()[:6], who, other.ravel()[:6])


# Cases that coremltools 9.0 cannot take although its documentation allows them.
KNOWN_FAILURES = {
    "squeeze.every_axis_of_one",  # it cannot fold a constant of rank 0
    "cumsum.from_the_end_without_itself",  # its evaluation of exclusive sums raises a TypeError
}
# Cases that coremltools 9.0 evaluates differently from its documentation.
KNOWN_VALUES = {
    "cast.integers_stop_at_their_ends",  # numpy wraps where the behaviour of C is undefined
    "scatter_along_axis.largest_stays",  # its evaluation ignores mode
    "concat.interleaved",  # its evaluation ignores interleave, its documentation does not
}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        table, listed = (parts := json.load(file))["operators"], parts["listed"]
    report = Report()
    ours = {op["name"] for op in table} | set(listed)
    for name in sorted(set(SSAOpRegistry.core_ops) - ours - set(NOT_OF_THE_ENGINE)):
        report.differ(name, "is in coremltools' registry and nowhere in the table")
    for name in sorted(set(NOT_OF_THE_ENGINE) & ours | set(NOT_OF_THE_ENGINE) - set(SSAOpRegistry.core_ops)):
        report.differ(name, "need not be an exception")
    for op in table:
        check_ports(op, report)
        for case in op["cases"]:
            compare(op, case, report)
    for line in report.lines:
        print("difference:", line)
    checked = ", ".join(f"{count} cases by {who}" for who, count in report.by.items())
    print(f"{len(table)} operators; values of {checked}; only shapes of {', '.join(sorted(set(report.unchecked))) or 'none'}")
    sys.exit(1 if report.lines else 0)


main()
