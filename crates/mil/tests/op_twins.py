"""Operators once more in PyTorch and numpy, for op_oracle.py: independent of the Rust code and of coremltools.

Every function takes the arguments of a case by port and gives the result in float64, or None where it covers no such use.
"""

import numpy as np
import torch
import torch.nn.functional as F


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
    x, at = double(given["x"]), double(given["coordinates"])
    if given["coordinates_mode"] == "unnormalized":
        # Every pixel and its border is one unit wide: edges lie at -1 and 1 where corners are not aligned.
        extents = torch.tensor([x.shape[-1], x.shape[-2]], dtype=torch.float64)
        at, corners = (2 * at + 1) / extents - 1, False
    name = {"constant": "zeros", "border": "border", "reflection": "reflection", "symmetric": "reflection"}[padding]
    fits = padding not in ("reflection", "symmetric") or corners == (padding == "reflection")
    if given["coordinates_mode"] == "normalized_zero_to_one" or not fits:
        return None
    # Padding with a value is padding with zero around a shifted image.
    value = float(given["padding_value"]) if padding == "constant" else 0.0
    return F.grid_sample(x - value, at, mode, name, align_corners=corners) + value


def numpy_places(mode, extent, size):
    """Where a resized axis looks, by the formulas of coremltools' documentation of resize_bilinear."""
    index = np.arange(size)
    if mode == "OFFSET_CORNERS":
        delta = max(1, extent - 1) / size
        return 0.5 * delta + index * delta
    if mode == "UNALIGN_CORNERS":
        return (index + 0.5) * extent / size - 0.5
    if mode == "DEFAULT":
        return index * extent / size
    if size == 1:
        return np.full(1, (extent - 1) / 2 if mode == "ALIGN_CORNERS" else 0.0)
    return np.linspace(0, extent - 1, size)


def numpy_resize(x, sizes, mode, nearest=False):
    """The last axes of x at other sizes, one after the other, as blending is separable."""
    for axis, size in zip(range(x.ndim - len(sizes), x.ndim), sizes):
        extent = x.shape[axis]
        places = np.clip(numpy_places(mode, extent, size), 0, extent - 1)
        if nearest:
            x = np.take(x, np.floor(places + 1e-12).astype(int), axis)
        else:
            x = np.apply_along_axis(lambda line: np.interp(places, np.arange(extent), line), axis, x)
    return x


def numpy_crop_resize(given):
    """Boxes of images, each point looked at by itself; pad_value where it lies outside."""
    x, boxes = np.asarray(given["x"], np.float64), np.asarray(given["boxes"], np.float64)
    height, width = int(given.get("target_height", 1)), int(given.get("target_width", 1))
    rows, columns = x.shape[-2:]
    kind, mode = given.get("box_coordinate_mode", "CORNERS_HEIGHT_FIRST"), given.get("sampling_mode", "DEFAULT")
    if mode not in ("ALIGN_CORNERS", "STRICT_ALIGN_CORNERS") or height == 1 and mode == "ALIGN_CORNERS":
        return None
    boxes = boxes[:, [1, 0, 3, 2]] if kind.endswith("WIDTH_FIRST") else boxes
    unit = np.array([rows - 1, columns - 1] * 2) if given.get("normalized_coordinates", False) else 1
    boxes = boxes * unit * float(given.get("spatial_scale", 1.0))
    if kind.startswith("CENTER"):
        boxes = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)
    images = np.asarray(given.get("box_indices", np.arange(len(boxes)))).astype(int)
    result = np.full((len(boxes), x.shape[1], height, width), float(given.get("pad_value", 0.0)))
    for box, (top, left, bottom, right) in enumerate(boxes):
        for row, y in enumerate(np.linspace(top, bottom, height)):
            for column, at in enumerate(np.linspace(left, right, width)):
                if 0 <= y <= rows - 1 and 0 <= at <= columns - 1:
                    lines = [[np.interp(at, np.arange(columns), line) for line in plane] for plane in x[images[box]]]
                    result[box, :, row, column] = [np.interp(y, np.arange(rows), line) for line in lines]
    return result


def numpy_blocks(name, given):
    """Blocks of places moved into the batch, first block first, or back."""
    x, (down, across) = np.asarray(given["x"], np.float64), [int(size) for size in given["block_shape"]]
    sides = [[int(side) for side in pair] for pair in given["paddings" if name == "space_to_batch" else "crops"]]
    n, c, h, w = x.shape
    if name == "space_to_batch":
        x = np.pad(x, [(0, 0), (0, 0), *map(tuple, sides)])
        h, w = x.shape[-2:]
        x = x.reshape(n, c, h // down, down, w // across, across).transpose(3, 5, 0, 1, 2, 4)
        return x.reshape(n * down * across, c, h // down, w // across)
    x = x.reshape(down, across, n // down // across, c, h, w).transpose(2, 3, 4, 0, 5, 1)
    x = x.reshape(n // down // across, c, h * down, w * across)
    (top, bottom), (left, right) = sides
    return x[:, :, top : h * down - bottom, left : w * across - right]


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
    if name in ("upsample_nearest_neighbor", "upsample_bilinear") and given["x"].ndim == 3:
        return torch_value(name, {**given, "x": given["x"][None]})[0]
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
    if name in ("resize_bilinear", "resize_nearest_neighbor"):
        sizes = [int(given.get(f"target_size_{side}", 1)) for side in ("height", "width")]
        return torch.from_numpy(numpy_resize(get("x").numpy(), sizes, given.get("sampling_mode", "DEFAULT"), name[7] == "n"))
    if name == "resize":
        x, resized = get("x").numpy(), int(given["resized_dims"])
        sizes = [int(size) or x.shape[-resized + axis] for axis, size in enumerate(given["shape"][-resized:])]
        nearest = given.get("interpolation_mode", "LINEAR") != "LINEAR"
        return torch.from_numpy(numpy_resize(x, sizes, given.get("sampling_mode", "DEFAULT"), nearest))
    if name == "crop_resize":
        result = numpy_crop_resize(given)
        return result if result is None else torch.from_numpy(result)
    if name in ("space_to_batch", "batch_to_space"):
        return torch.from_numpy(numpy_blocks(name, given).copy())
    if name == "reshape_like":
        shape = []
        for like, first, last, open_end in zip(given["ref_tensors"], given["begins"], given["ends"], given["end_masks"]):
            shape += like.shape[int(first) : None if open_end else int(last)]
        return get("x").reshape(shape)
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
