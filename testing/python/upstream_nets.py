"""net.plists by the Python package aneforge 0.4.0, an independent writer, on any system.

    upstream_nets.py FOLDER     each network into FOLDER/<name>/

Runs in .venv-upstream. Calls the package's writers of networks; its bridges are called with a function
in the place of the program that would run the network, which keeps the network. A folder holds
net.plist, weights.* and

    case.json    {"inputs": {name: values}, "expected": values, "tolerance": t},
                 row major, by numpy in float64

`refused` stands in the place of `expected` where the network contradicts itself, with the reason.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from aneforge._bridges import _netplist as writer

Arrays = dict[str, np.ndarray]
RNG = np.random.default_rng(7)


def draw(*shape: int) -> np.ndarray:
    """Values that fp16 holds exactly, no two of them alike in a small tensor."""
    count = math.prod(shape)
    return (
        RNG.permutation(count * 4)[:count].reshape(shape) / 16.0 - count / 8.0 + 0.03125
    ).astype(np.float16)


def keep(
    folder: Path,
    inputs: Arrays,
    expected: np.ndarray | None,
    tolerance: float = 0.0,
    refused: str = "",
) -> None:
    """Writes the case of a network beside it."""
    case: dict[str, Any] = {
        "inputs": {k: v.astype(float).ravel().tolist() for k, v in inputs.items()},
        "tolerance": tolerance,
    }
    if expected is None:
        case["refused"] = refused
    else:
        case["expected"] = np.asarray(expected, dtype=float).ravel().tolist()
    (folder / "case.json").write_text(json.dumps(case))


def erf(x: np.ndarray) -> np.ndarray:
    """The error function of every element."""
    return np.vectorize(math.erf)(x)


PAIRS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": lambda x, z: x + z,
    "sub": lambda x, z: x - z,
    "mul": lambda x, z: x * z,
    "max": np.maximum,
    "min": np.minimum,
    "equal": lambda x, z: x == z,
    "not_equal": lambda x, z: x != z,
    "greater": lambda x, z: x > z,
    "greater_equal": lambda x, z: x >= z,
    "less": lambda x, z: x < z,
    "less_equal": lambda x, z: x <= z,
    "div": lambda x, z: x / z,
    "floor_div": lambda x, z: np.floor(x * (1 / z)),
    "add_relu": lambda x, z: np.maximum(x + z, 0),
}
UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.round,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "sin": np.sin,
    "cos": np.cos,
    "exp2": np.exp2,
    "elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "goc_scalar_scale_bias": lambda x: 2 * x + 1,
    "add_const": lambda x: x + 1,
    "broadcast_const_add": lambda x: x + 1,
    "fill_like_as_broadcast_add": lambda x: x + 1,
    "reduce_sum": lambda x: x.sum(-1, keepdims=True),
    "reduce_mean": lambda x: x.mean(-1, keepdims=True),
    "reduce_max": lambda x: x.max(-1, keepdims=True),
    "reduce_min": lambda x: x.min(-1, keepdims=True),
    "slice": lambda x: x[..., 1:3],
    "reshape": lambda x: x,
    "reshape_alias_3d": lambda x: x,
}
POSITIVE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "inv": lambda x: 1 / x,
    "log2": np.log2,
}


def written(root: Path) -> None:
    """Networks of the package's writer."""

    def write(name: str, **options: Any) -> Path:
        folder = root / name
        folder.mkdir()
        writer.write_model(name, folder, **options)
        return folder

    for name, f in PAIRS.items():
        x, z = draw(1, 1, 1, 4), draw(1, 1, 1, 4)
        z[..., 1] = x[..., 1]
        keep(write(name), {"x": x, "z": z}, f(x.astype(float), z.astype(float)), 1e-12)
    for name, f in UNARY.items():
        x = draw(1, 1, 1, 4)
        keep(write(name), {"x": x}, f(x.astype(float)), 1e-12)
    for name, f in POSITIVE.items():
        x = np.abs(draw(1, 1, 1, 4))
        keep(write(name), {"x": x}, f(x.astype(float)), 1e-12)
    for name, f in {"conv1x1": lambda x: x, "conv_relu": lambda x: np.maximum(x, 0)}.items():
        folder, x = write(name), draw(1, 1, 1, 4)
        kernel = float(np.fromfile(folder / "weights.1", dtype=np.float16)[0])
        keep(folder, {"x": x}, f(kernel * x.astype(float)))
    x = draw(1, 1, 1, 4)
    keep(write("hard_swish"), {"x": x}, None, refused="two bottoms, one InputType")
    keep(write("kernel_rasterizer"), {"x": x}, None, refused="no record")
    keep(write("matrix_decomposition"), {"x": draw(1, 9, 1, 1)}, None, refused="no record")
    x = draw(1, 1, 4, 4)
    blocks = x.astype(float).reshape(1, 1, 2, 2, 2, 2)
    keep(write("maxpool2x2"), {"x": x}, blocks.max((3, 5)))
    keep(write("avgpool2x2"), {"x": x}, blocks.mean((3, 5)), 1e-12)
    x = draw(1, 1, 2, 2)
    keep(write("transpose"), {"x": x}, x.astype(float).swapaxes(2, 3))
    keep(write("upsample_nearest"), {"x": x}, x.astype(float).repeat(2, 2).repeat(2, 3))
    a, x = draw(1, 1, 4, 4), draw(1, 1, 4, 1)
    keep(write("matmul"), {"a": a, "x": x}, a.astype(float) @ x.astype(float), 1e-12)
    x, z = draw(1, 1, 1, 4), draw(1, 1, 1, 4)
    keep(write("concat"), {"x": x, "z": z}, np.concatenate([x, z], -1).astype(float))
    keep(
        write("gather_const_indices", indices=[3, 0, 2, 2]),
        {"x": x},
        x.astype(float)[..., [3, 0, 2, 2]],
    )
    keep(write("dynamic_slice_const_u16", indices=[1]), {"x": x}, x.astype(float)[..., 1:3])
    wide = x.astype(float)
    keep(
        write("minmax_norm", epsilon=0.5),
        {"x": x},
        (wide - wide.min()) / (wide.max() - wide.min() + 0.5),
        1e-12,
    )
    x, scale, bias = draw(1, 4, 1, 1), draw(1, 4, 1, 1), draw(1, 4, 1, 1)
    keep(
        write("dynamic_goc_scale_bias", channels=4),
        {"x": x, "scale": scale, "bias": bias},
        x.astype(float) * scale + bias,
        1e-12,
    )
    keep(
        write("dynamic_goc_bias", channels=4), {"x": x, "bias": bias}, x.astype(float) + bias, 1e-12
    )
    points = draw(1, 3, 1, 4)
    folder = write("fps_radius_search", radius=2.0, output_channels=3)
    chosen = furthest(points[0, :, 0].T.astype(float), 2)
    near = ball(points[0, :, 0].T.astype(float), chosen, 2.0)
    keep(folder, {"points": points}, near)


def furthest(points: np.ndarray, count: int) -> np.ndarray:
    """Points that each lie furthest from those before them, beginning with the first."""
    chosen = [0]
    while len(chosen) < count:
        apart = np.min([((points - points[c]) ** 2).sum(-1) for c in chosen], 0)
        chosen.append(int(apart.argmax()))
    return points[chosen]


def ball(points: np.ndarray, centroids: np.ndarray, radius: float) -> np.ndarray:
    """Which points lie within the radius of which centroid."""
    return ((points[:, None] - centroids[None]) ** 2).sum(-1) <= radius**2


def softmax_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | float = 0.0
) -> np.ndarray:
    """[batch, heads, sequence, features]"""
    q, k, v = (a.astype(float) for a in (q, k, v))
    scale = float(np.float16(1 / math.sqrt(q.shape[-1])))
    scores = q @ k.swapaxes(-1, -2) * scale + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


class Kept(Exception):
    """The network is on disk; nothing more is wanted."""


def bridged(root: Path) -> None:
    """Networks of the package's bridges."""
    place: list[Path] = []

    def invoke(invoker: Any, net_plist: Any, *, weights: Any = (), **_: Any) -> None:
        place[0].mkdir()
        shutil.copy(net_plist, place[0] / "net.plist")
        for path in weights:
            shutil.copy(path, place[0] / Path(path).name)
        raise Kept

    def bridge(module: str, function: str) -> Callable[..., Any]:
        loaded = importlib.import_module(f"aneforge._bridges.{module}")
        for name, value in {
            "invoke_netplist": invoke,
            "ensure_invoker": lambda _: Path("/bin/true"),
        }.items():
            setattr(writer, name, value)
            if hasattr(loaded, name):
                setattr(loaded, name, value)
        return getattr(loaded, function)

    def case(
        name: str,
        module: str,
        function: str,
        arguments: tuple[Any, ...],
        inputs: Arrays,
        expected: np.ndarray,
        tolerance: float = 0.0,
        **options: Any,
    ) -> None:
        place[:] = [root / f"bridge_{name}"]
        with contextlib.suppress(Kept):
            bridge(module, function)(*arguments, **options)
        keep(place[0], inputs, expected, tolerance)

    row = draw(1, 8)
    vectors = draw(3, 8)
    order = vectors[1].argsort(kind="stable")
    case("sort", "ane_rank_fused", "sort", (row,), {"x": row}, np.sort(row, -1))
    case(
        "sort_by_lane",
        "ane_rank_fused",
        "sort",
        (vectors,),
        {"x": vectors},
        vectors[:, order],
        key_lane=1,
    )
    case(
        "sort_indices",
        "ane_rank_fused",
        "sort",
        (row,),
        {"x": row},
        row.argsort(-1),
        return_indices=True,
    )
    case("topk", "ane_rank_fused", "topk", (row, 5), {"x": row}, -np.sort(-row, -1)[:, :5])
    case(
        "argmax",
        "ane_rank_fused",
        "global_argminmax",
        (vectors,),
        {"x": vectors},
        vectors.argmax(-1),
    )
    case(
        "argmax_channel",
        "ane_rank_fused",
        "global_argminmax",
        (vectors,),
        {"x": vectors},
        vectors.argmin(0),
        dimension="Channel",
        largest=False,
    )
    case(
        "argminmax",
        "ane_rank_fused",
        "argminmax",
        (vectors, "SpatialArgMin"),
        {"x": vectors},
        vectors.argmin(-1),
    )
    x = draw(1, 8, 4, 6)
    blocks = x.reshape(1, 8, 2, 2, 3, 2)
    case(
        "space_to_channel",
        "ane_rearrange_fused",
        "space_to_channel",
        (x, 2),
        {"x": x},
        blocks.transpose(0, 3, 5, 1, 2, 4),
    )
    case(
        "space_to_batch",
        "ane_rearrange_fused",
        "space_to_batch",
        (x, 2, 2),
        {"x": x},
        blocks.transpose(3, 5, 0, 1, 2, 4),
    )
    case(
        "pixel_unshuffle",
        "ane_rearrange_fused",
        "pixel_unshuffle",
        (x, 2),
        {"x": x},
        blocks.transpose(0, 1, 3, 5, 2, 4),
    )
    parts = x.reshape(1, 2, 2, 2, 4, 6)
    case(
        "channel_to_space",
        "ane_rearrange_fused",
        "channel_to_space",
        (x, 2),
        {"x": x},
        parts.transpose(0, 3, 4, 1, 5, 2),
    )
    case(
        "pixel_shuffle",
        "ane_rearrange_fused",
        "pixel_shuffle",
        (x, 2),
        {"x": x},
        parts.transpose(0, 1, 4, 2, 5, 3),
    )
    images = draw(4, 2, 3, 2)
    case(
        "batch_to_space",
        "ane_rearrange_fused",
        "batch_to_space",
        (images, 2, 2),
        {"x": images},
        images.reshape(2, 2, 1, 2, 3, 2).transpose(2, 3, 4, 0, 5, 1),
    )
    small = draw(2, 3, 4)
    case("flatten", "ane_structural_fused", "flatten", (small,), {"x": small}, small)
    case("dropout", "ane_structural_fused", "dropout", (small,), {"x": small}, small)
    line = draw(8)
    case(
        "input_view",
        "ane_input_view_fused",
        "input_view_fused",
        (line, 2, 3),
        {"x": line},
        line[2:5],
    )
    case(
        "dynamic_slice",
        "ane_dynamic_slice_fused",
        "dynamic_slice_fused",
        (line[:4], 1),
        {"x": line[:4]},
        line[1:3],
    )
    aux, other = draw(4), draw(7)
    costs = np.abs(np.stack([aux.astype(float) - other[d : d + 4] for d in range(3)]))
    case(
        "cost_volume",
        "ane_cost_volume_fused",
        "cost_volume_fused",
        (aux, other, 2),
        {"aux": aux, "ref": other},
        costs,
    )
    image, template = draw(5, 6), draw(2, 3)
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(float), (2, 3))
    case(
        "cross_correlation",
        "ane_cross_correlation_fused",
        "cross_correlation_fused",
        (image, template),
        {"x": image, "template": template},
        (windows * template).sum((-1, -2)),
        1e-12,
    )
    a, b = draw(3), draw(3)
    case(
        "cross_product",
        "ane_cross_product_fused",
        "cross_product_fused",
        (a, b),
        {"x": a, "z": b},
        np.cross(a.astype(float), b.astype(float)),
        1e-12,
    )
    points, centroids = draw(6, 3), draw(2, 3)
    case(
        "fps",
        "ane_fps_fused",
        "fps_fused",
        (points, 3),
        {"points": points.T},
        furthest(points.astype(float), 3).T,
    )
    near = ball(points.astype(float), centroids.astype(float), 3.5)
    case(
        "radius_search",
        "ane_radius_search_fused",
        "radius_search_fused",
        (points, centroids, 3.5),
        {"centroids": centroids.T, "points": points.T},
        near,
    )
    q, k, v = (draw(1, 2, 4, 8) / np.float16(8) for _ in range(3))
    mask = np.triu(np.full((1, 1, 4, 4), -1000.0), 1).astype(np.float16)
    laid = {"query": q.swapaxes(1, 2), "key": k.swapaxes(1, 2), "value": v.swapaxes(1, 2)}
    case(
        "sdpa",
        "ane_sdpa_fused",
        "sdpa_fused",
        (q, k, v),
        laid,
        softmax_attention(q, k, v).swapaxes(1, 2),
        1e-12,
    )
    case(
        "sdpa_masked",
        "ane_sdpa_fused",
        "sdpa_fused",
        (q, k, v),
        {**laid, "mask": mask},
        softmax_attention(q, k, v, mask.astype(float)).swapaxes(1, 2),
        1e-12,
        mask=mask,
    )
    one = q[:, :, :1]
    case(
        "sdpa_decode",
        "ane_sdpa_fused",
        "sdpa_fused",
        (one, k, v),
        {**laid, "query": one.swapaxes(1, 2)},
        softmax_attention(one, k, v).swapaxes(1, 2),
        1e-12,
    )
    x = draw(1, 5, 2, 3)
    energy = (x.astype(float) ** 2).sum(1, keepdims=True)
    case("lrn", "lrn_fused", "lrn_fused", (x,), {"x": x}, x / (1 + energy) ** 0.75, 1e-12)
    wide = x.astype(float)
    span = wide.max(-1, keepdims=True) - wide.min(-1, keepdims=True)
    case(
        "minmax_norm",
        "minmax_norm_fused",
        "minmax_norm_fused",
        (x,),
        {"x": x},
        (wide - wide.min(-1, keepdims=True)) / (span + 0.25),
        1e-12,
        epsilon=0.25,
    )
    z = draw(1, 5, 2, 3)
    case(
        "scaled_elementwise",
        "scaled_elementwise_fused",
        "scaled_elementwise_fused",
        (x, z),
        {"x": x, "z": z},
        0.5 * (wide + z),
        1e-12,
        scale=0.5,
    )


def main() -> None:
    """Writes all networks."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        sys.exit(0 if "--help" in sys.argv else 2)
    root = Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    written(root)
    bridged(root)


if __name__ == "__main__":
    main()
