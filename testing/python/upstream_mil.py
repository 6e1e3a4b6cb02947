"""MIL text and weights by the Python package aneforge 0.4.0, an independent writer, on any system.

    upstream_mil.py cases FOLDER     each graph of upstream_cases into FOLDER/<name>/
    upstream_mil.py time             times the lowering of a 12-layer encoder (protocol below)

Runs in .venv-upstream, through the package's public interface, with stub_dispatcher.c in the place of
its native library. A case folder holds

    model.mil, weights.bin    as the package wrote them
    case.json                 the graph's description, for a test to build it as well, with the names
                              of the package's own operators in "fused"
    arrays.safetensors        F16 "input.<name>" in the order of the program's inputs, F16
                              "<node>.<constant>" (a compressed weight as it is on disk), and F64
                              "expected" by numpy_ops.py

and FOLDER/fused.json lists the names of all operators that the package can lower.

`time` prints "ready", then for each line "run" on standard input builds the graph anew and prints
"ms <lowering> build_ms <building>": from a graph with weights in memory to both files on disk. It ends
with "peak_rss_kib <n>". The encoder: S=128, D=768, FF=3072, 12 heads, 85 million weights.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import operator
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy_ops
import upstream_cases
import upstream_weights
from safetensors.numpy import save_file

LAYERS, LENGTH, WIDTH, INNER, HEADS = 12, 128, 768, 3072, 12


def stub_library(scratch: Path) -> Path:
    """A library that says yes to everything, built on the first use."""
    source = Path(__file__).with_name("stub_dispatcher.c")
    library = scratch / f"stub-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}.so"
    if not library.exists():
        temporary = scratch / f"stub-{os.getpid()}.so"
        command = ["cc", "-shared", "-fPIC", "-O1", str(source), "-o", str(temporary)]
        subprocess.run(command, check=True)
        temporary.replace(library)
    return library.resolve()


def load_package(scratch: Path, library: Path | None = None) -> Any:
    """Imports aneforge with a native library, the stub where none is given, and with all of its
    caches under `scratch`."""
    os.environ.update(
        ANEFORGE_DYLIB=str(library or stub_library(scratch)),
        ANEFORGE_TARGET="h16s",
        ANEFORGE_NO_AUTOBUILD="1",
        ANEFORGE_CACHE=str(scratch / "cache"),
        ANEFORGE_CACHE_DIR=str(scratch / "cache"),
    )
    warnings.simplefilter("ignore")
    import aneforge

    return aneforge


def draw(description: dict[str, Any]) -> np.ndarray:
    """The array that a description stands for."""
    rng = np.random.default_rng(description["seed"])
    values = rng.uniform(description["low"], description["high"], description["shape"])
    if "step" in description:
        values = np.round(values / description["step"]) * description["step"]
    if "kept" in description:
        values *= rng.uniform(size=values.shape) < description["kept"]
    return values.astype(description.get("dtype", "float16"))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "real_div": operator.truediv,
    "pow": operator.pow,
    "bmm": operator.matmul,
    "matmul": operator.matmul,
    "muls": operator.mul,
}

# Operators that the package has as methods of other names.
METHODS = {
    "reduce_mean": "mean",
    "reduce_sum": "sum",
    "reduce_max": "amax",
    "reduce_min": "amin",
    "reduce_l1_norm": "l1_norm",
    "reduce_log_sum": "log_sum",
    "reduce_sum_square": "sum_square",
}


def apply(af: Any, node: dict[str, Any], inputs: list[Any], constants: dict[str, Any]) -> Any:
    """One node through the package's own call for it."""
    op, a = node["op"], node["attributes"]
    x = inputs[0]
    if op in OPERATIONS:
        return OPERATIONS[op](x, *inputs[1:], *constants.values(), *a.values())
    if op in ("maximum", "minimum", "select"):
        return getattr(af, op)(*inputs)
    if op == "adds":
        return x.adds(a["scalar"])
    if op == "linear":
        return x.linear(constants["weight"], constants.get("bias"))
    if op == "bmm_w":
        return x.bmm_weight(constants["weight"])
    if op == "einsum":
        return af.einsum_native(a["equation"], x, constants["b"])
    if op in ("concat", "stack"):
        return getattr(af, op)(inputs, axis=a["axis"])
    if op == "split":
        return af.split(x, a["num_splits"], axis=a["axis"])[a["part"]]
    if op == "reshape":
        return x.reshape(*a["shape"])
    if op in METHODS:
        return getattr(x, METHODS[op])(a["axes"])
    if "pad" in a and isinstance(a["pad"], list):
        a = a | {"pad": tuple(a["pad"])}
    function = getattr(type(x), op, None) or getattr(af, op)
    return function(*inputs, **constants, **a)


def fused(output: Any) -> list[str]:
    """Names of the operators that a graph of the package is made of."""
    names, seen, waiting = set(), set(), [output]
    while waiting:
        tensor = waiting.pop()
        if id(tensor) not in seen:
            seen.add(id(tensor))
            names.add(tensor.op)
            waiting.extend(tensor.srcs)
    return sorted(names - {"input"})


def lower(af: Any, output: Any, folder: Path, **options: Any) -> None:
    """Writes model.mil and weights.bin; the shortest of the package's compile paths."""
    af.compile(output, build_dir=str(folder), opt=0, **options)


def answer(case: dict[str, Any], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The result by numpy_ops.py."""
    wide = {key: value.astype(np.float64) for key, value in arrays.items()}
    values = {name: wide[f"input.{name}"] for name in case["inputs"]}
    for node in case["nodes"]:
        constants = {key: wide[f"{node['id']}.{key}"] for key in node["constants"]}
        inputs = [values[key] for key in node["inputs"]]
        values[node["id"]] = numpy_ops.OPERATORS[node["op"]](inputs, constants, node["attributes"])
    return np.ascontiguousarray(values[case["output"]], np.float64)


def build(af: Any, case: dict[str, Any]) -> tuple[Any, dict[str, np.ndarray]]:
    """A case's output as a tensor of the package, and its arrays."""
    tensors: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    for name, description in case["inputs"].items():
        arrays[f"input.{name}"] = draw(description).astype(np.float16)
        if "dtype" not in description:
            tensors[name] = af.input(tuple(description["shape"]))
    for node in case["nodes"]:
        constants = {key: draw(entry) for key, entry in node["constants"].items()}
        arrays |= {f"{node['id']}.{key}": value for key, value in constants.items()}
        if node["op"] == "image_input":  # makes the input of bytes as well
            shape = case["inputs"][node["inputs"][0]]["shape"]
            tensors[node["id"]] = af.image_input(tuple(shape), **node["attributes"])
        else:
            inputs = [tensors[key] for key in node["inputs"]]
            tensors[node["id"]] = apply(af, node, inputs, constants)
    return tensors[case["output"]], arrays


def expect(case: dict[str, Any], arrays: dict[str, np.ndarray], folder: Path) -> None:
    """Adds the result by numpy; a compressed weight becomes what was stored of it in `folder`."""
    options = case["compress"]
    if options:
        key = f"{case['output']}.weight"
        stored = upstream_weights.dequantised(folder, options["compress"], arrays[key].shape)
        error = np.linalg.norm(stored.astype(float) - arrays[key]) / np.linalg.norm(arrays[key])
        if error > options.get("compress_atol", 0.02):
            sys.exit(f"{case['name']}: the compressed weight is off by {error:.3f}")
        arrays[key] = stored
    arrays["expected"] = answer(case, arrays)


def write_case(af: Any, case: dict[str, Any], folder: Path) -> None:
    """All files of one case."""
    output, arrays = build(af, case)
    case["fused"] = fused(output)
    lower(af, output, folder, **case["compress"])
    shutil.rmtree(folder / "cache", ignore_errors=True)
    expect(case, arrays, folder)
    if tuple(output.shape) != arrays["expected"].shape:
        sys.exit(f"{case['name']}: shape {output.shape}, expected {arrays['expected'].shape}")
    save_file(arrays, folder / "arrays.safetensors")
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def write_cases(af: Any, target: Path) -> None:
    """All cases, moved into place together."""
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        cases = upstream_cases.all_cases()
        for case in cases:
            folder = work / case["name"]
            folder.mkdir()
            write_case(af, case, folder)
        (work / "fused.json").write_text(json.dumps(sorted(af._compile._EMIT)) + "\n")
        shutil.rmtree(target, ignore_errors=True)
        work.replace(target)
        target.chmod(0o755)
        print(f"{target}: {len(cases)} cases", file=sys.stderr)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def encoder_weights() -> list[dict[str, np.ndarray]]:
    """Random weights of every layer; float32, as a checkpoint holds them."""
    rng = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray:
        values = rng.standard_normal((rows, columns), dtype=np.float32)
        values *= columns**-0.5
        return values

    layers = []
    for _ in range(LAYERS):
        layer = {f"W{letter}": matrix(WIDTH, WIDTH) for letter in "qkvo"}
        layer |= {f"b{letter}": rng.standard_normal(WIDTH, dtype=np.float32) for letter in "qkvo"}
        layer |= {"up": matrix(INNER, WIDTH), "down": matrix(WIDTH, INNER)}
        layer |= {"up_bias": np.zeros(INNER, np.float32), "down_bias": np.zeros(WIDTH, np.float32)}
        layer |= {"gamma": np.ones(WIDTH, np.float32), "beta": np.zeros(WIDTH, np.float32)}
        layers.append(layer)
    return layers


def encoder(af: Any, layers: list[dict[str, np.ndarray]]) -> Any:
    """A post-norm encoder with a gelu feed-forward part."""
    x = af.input((LENGTH, WIDTH))
    for layer in layers:
        projections = {key: layer[key] for key in ("Wq", "bq", "Wk", "bk", "Wv", "bv", "Wo", "bo")}
        attended = af.mha(x, **projections, n_heads=HEADS)
        x = (x + attended).layer_norm(layer["gamma"], layer["beta"])
        inner = x.linear(layer["up"], layer["up_bias"]).gelu()
        x = (x + inner.linear(layer["down"], layer["down_bias"])).layer_norm(
            layer["gamma"], layer["beta"]
        )
    return x


def serve_timing(af: Any, scratch: Path) -> None:
    """Answers "run" lines."""
    layers = encoder_weights()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() != "run":
            break
        begin = time.perf_counter()
        output = encoder(af, layers)
        built = time.perf_counter()
        folder = Path(tempfile.mkdtemp(dir=scratch))
        lower(af, output, folder)
        lowered = time.perf_counter()
        shutil.rmtree(folder)
        milliseconds = (lowered - built) * 1e3
        print(f"ms {milliseconds:.3f} build_ms {(built - begin) * 1e3:.3f}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak_rss_kib {peak // 1024 if sys.platform == 'darwin' else peak}", flush=True)


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    cases = commands.add_parser("cases", help="write all cases")
    cases.add_argument("folder", type=Path)
    commands.add_parser("time", help="serve timings of a 12-layer encoder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="upstream-") as scratch:
        af = load_package(Path(scratch))
        if arguments.command == "cases":
            write_cases(af, arguments.folder)
        else:
            serve_timing(af, Path(scratch))


if __name__ == "__main__":
    main()
