"""Estimates of time by the Python package aneforge 0.4.0 beside ours, on measured rows.

    cargo xtask cost rows --data FILE | upstream_estimate.py

Builds each row's graph through the package's public interface and asks `aneforge.estimate`, once as it
is (calibrated on an M5 Pro) and once for the row's target. Ours are the predictions of fits that did not
see the row's workload and shape. Prints, for each machine, the median of |estimate / measured - 1|; rows
that the script cannot build are counted. Runs in .venv-upstream, in a process of its own.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import warnings
from typing import Any

import aneforge as af
import numpy as np

ARCHITECTURES = {"m1": "h13", "m1max": "h13g", "m2pro": "h14g", "m4": "h16", "m5pro": "h17s"}


def zeros(*shape: int) -> np.ndarray:
    """A weight; estimates depend on shapes alone."""
    return np.zeros(shape, dtype=np.float16)


def linear(rows: int, inner: int, columns: int) -> Any:
    """A product with a weight."""
    return af.input((rows, inner)).linear(zeros(columns, inner))


def convolutions(batch: int, inputs: int, outputs: int, side: int, depth: int, relu: bool) -> Any:
    """A chain of 3x3 convolutions on square pictures."""
    x = af.input((batch, inputs, side, side))
    for layer in range(depth):
        x = af.conv(x, zeros(outputs, inputs if layer == 0 else outputs, 3, 3), stride=1, pad=1)
        x = x.relu() if relu else x
    return x


def attention(x: Any, width: int) -> Any:
    """Attention with its four projections."""
    projections = [argument for _ in range(4) for argument in (zeros(width, width), zeros(width))]
    return af.mha(x, *projections, n_heads=12)


def graph(workload: str, shape: str) -> Any:
    """The row's graph, or None."""
    sizes = [int(digits) for digits in re.findall(r"\d+", shape)]
    if workload.startswith("costmodel matmul"):
        return linear(sizes[0], sizes[1], sizes[3])
    if workload.startswith(("GEMM square", "GEMV", "matmul weight-compress")):
        return linear(*sizes[:3])
    if workload.startswith("GEMM "):
        return linear(*sizes)
    if workload.startswith("gap:gemv"):
        return linear(1, 4096, 4096)
    if workload.startswith("serving gemm"):
        return linear(sizes[0] * 128, 1024, 1024)
    if workload.startswith("conv 3x3"):
        return convolutions(sizes[0], sizes[1], sizes[1], sizes[2], 1, relu=False)
    if workload.startswith("gap:fused_block"):
        return convolutions(4, 256, 256, 64, 3, relu=False)
    if workload.startswith("conv single"):
        return convolutions(1, 16, 64, 32, 1, relu=True)
    if workload.startswith("stencil"):
        return convolutions(1, 1, 1, 256, 32, relu=False)
    if workload.startswith(("conv resnet-ish", "conv stack")):
        first = af.conv(af.input((1, 64, 32, 32)), zeros(256, 64, 3, 3), stride=1, pad=1).relu()
        for _ in range(15):
            first = af.conv(first, zeros(256, 256, 3, 3), stride=1, pad=1).relu()
        return first
    if workload.startswith("attention"):
        return attention(af.input((197 if "vit" in workload else 512, 768)), 768)
    width = sizes[-1] if sizes else 0
    rows = af.input((sizes[0], width)) if len(sizes) == 2 else None
    if rows is not None:
        made = {
            "streaming (relu / x*2)": lambda: rows.relu(),
            "gelu (light compute)": lambda: rows.gelu(),
            "softmax": lambda: rows.softmax(-1),
            "layer_norm": lambda: rows.layer_norm(zeros(width), zeros(width)),
            "reduction (sum)": lambda: rows.sum(-1),
        }
        if workload in made:
            return made[workload]()
    return None


def median(values: list[float]) -> str:
    """The median as a column."""
    return f"{100 * statistics.median(values):8.1f} %" if values else "         -"


def main() -> None:
    """Reads rows, prints the table."""
    warnings.simplefilter("ignore")
    errors: dict[str, list[tuple[float, float, float]]] = {}
    skipped = 0
    for line in sys.stdin:
        row = json.loads(line)
        try:
            built = graph(row["workload"], row["shape"])
        except (AttributeError, TypeError, ValueError):
            built = None
        if built is None or row["dtype"] not in ("fp16", "int8"):
            skipped += 1
            continue
        int8 = row["dtype"] == "int8"
        # Both of the package's estimates are in microseconds.
        architecture = ARCHITECTURES[row["chip"]]
        theirs = [af.estimate(built, int8=int8), af.estimate(built, int8=int8, target=architecture)]
        estimates = [row["held_out_ms"], *(value * 1e-3 for value in theirs)]
        error = tuple(abs(value / row["measured_ms"] - 1) for value in estimates)
        errors.setdefault(row["machine"], []).append(error)
    print(f"{'machine':<26}{'rows':>6}{'ours':>10}{'package':>10}{'for target':>12}")
    for machine, found in errors.items():
        columns = [median([error[which] for error in found]) for which in range(3)]
        print(f"{machine:<26}{len(found):>6}{columns[0]}{columns[1]}{columns[2]:>12}")
    pooled = [error for found in errors.values() for error in found]
    columns = [median([error[which] for error in pooled]) for which in range(3)]
    print(f"{'all':<26}{len(pooled):>6}{columns[0]}{columns[1]}{columns[2]:>12}")
    print(f"{skipped} rows have no graph here (whole models, decoders, compressed weights)")


if __name__ == "__main__":
    main()
