"""The unmodified Python package aneforge 0.4.0 on another native library than its own.

    upstream_dispatch.py LIBRARY FOLDER

Runs in .venv-upstream. Each graph of upstream_cases, and one in the shape of the package's quickstart,
is compiled by the package, which hands text and weights to the library, and called. FOLDER/<name>/
holds

    model.mil, weights.bin      as the package wrote them
    input.<n>.bin               what was given, in the order of the program's inputs: fp16, or bytes
    got.bin                     what came back, float32

and FOLDER/report.json a list of {name, worst, refused}: the largest difference from numpy, relative to
the largest number expected, or the error that the package raised. The operators that the package runs
in programs of their own, beside the library (its 19 native layers), are not among the graphs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import upstream_cases
import upstream_mil


def given(case: dict[str, Any], arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The arrays that a call takes."""
    kinds = {name: entry.get("dtype", "float16") for name, entry in case["inputs"].items()}
    return [arrays[f"input.{name}"].astype(kind) for name, kind in kinds.items()]


def distance(got: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference, relative to the largest number; infinite where shapes differ."""
    if got.shape != expected.shape:
        return float("inf")
    finite = np.isfinite(expected)
    same = np.array_equal(np.asarray(got, np.float64)[~finite], expected[~finite], equal_nan=True)
    if not same:
        return float("inf")
    scale = max(float(np.abs(expected[finite]).max(initial=0.0)), 1e-3)
    return float(np.abs(got - expected)[finite].max(initial=0.0)) / scale


def call(model: Any, inputs: list[np.ndarray], folder: Path) -> np.ndarray:
    """Calls a compiled graph and keeps what went in and came out."""
    for number, array in enumerate(inputs):
        (folder / f"input.{number}.bin").write_bytes(array.tobytes())
    got = np.asarray(model(*inputs), np.float32)
    (folder / "got.bin").write_bytes(got.tobytes())
    return got


def run_case(af: Any, case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One graph of upstream_cases."""
    output, arrays = upstream_mil.build(af, case)
    try:
        model = af.compile(output, build_dir=str(folder), opt=0, **case["compress"])
    except RuntimeError as error:
        return {"name": case["name"], "refused": str(error)}
    got = call(model, given(case, arrays), folder)
    model.release()
    upstream_mil.expect(case, arrays, folder)
    return {"name": case["name"], "worst": distance(got, arrays["expected"])}


def quickstart(af: Any, folder: Path) -> dict[str, Any]:
    """A convolution, relu and a mean, with weights of eight bits; through the call and the views."""
    rng = np.random.default_rng(7)
    weight = (rng.standard_normal((16, 3, 3, 3)) * 0.2).astype(np.float16)
    x = rng.standard_normal((1, 3, 32, 32)).astype(np.float16)
    y = af.conv(af.input((1, 3, 32, 32)), weight, pad=1).relu().mean((2, 3))
    model = af.compile(y, int8=True, build_dir=str(folder))
    got = call(model, [x], folder)
    model.input_view()[...] = x * 0
    model.execute()
    if np.abs(np.asarray(model.output_view(), np.float32)).max() != 0.0:
        raise SystemExit("the views do not show what an execution reads and writes")
    model.input_view()[...] = x
    model.execute()
    if not np.array_equal(np.asarray(model.output_view(), np.float32).reshape(got.shape), got):
        raise SystemExit("the views do not give what the call gives")
    model.release()
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    maps = np.einsum("nchwij,ocij->nohw", windows, weight.astype(np.float64))
    expected = np.maximum(maps, 0.0).mean(axis=(2, 3)).reshape(got.shape)
    return {"name": "quickstart", "worst": distance(got, expected)}


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    report = []
    with tempfile.TemporaryDirectory(prefix="upstream-") as scratch:
        af = upstream_mil.load_package(Path(scratch), arguments.library.resolve())
        for case in [None, *upstream_cases.all_cases()]:
            folder = arguments.folder / ("quickstart" if case is None else case["name"])
            folder.mkdir(parents=True)
            report.append(quickstart(af, folder) if case is None else run_case(af, case, folder))
    (arguments.folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
