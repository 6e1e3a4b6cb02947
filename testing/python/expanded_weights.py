"""What coremltools, Apple's own code, expands compressed weights to.

    expanded_weights.py FOLDER      answers {"package name": {"weight": hex of its fp16 bytes, ...}, ...}

Every `*.mlpackage` in FOLDER is loaded by coremltools' reader of programs; each `constexpr_*` operation
expands its data by coremltools' own arithmetic. A weight that takes two operations is named by the last.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
from pathlib import Path

import numpy as np

logging.disable(logging.CRITICAL)
with contextlib.redirect_stderr(io.StringIO()):
    import coremltools as ct
    from coremltools.converters.mil.frontend.milproto import load as milproto


def weights(package: Path) -> dict[str, str]:
    """Expanded weights by the names of their results."""
    model = ct.models.MLModel(str(package), skip_model_load=True)
    program = milproto.load(
        model.get_spec(), model.get_spec().specificationVersion, model.weights_dir
    )
    found: dict[str, str] = {}
    for function in program.functions.values():
        for operation in function.operations:
            if not operation.op_type.startswith("constexpr_"):
                continue
            value = operation.materialized_val_inference()
            if isinstance(value, tuple):
                continue  # A mask and the values for the next operation.
            found[operation.outputs[0].name] = np.asarray(value, dtype=np.float16).tobytes().hex()
    return found


def main() -> None:
    """Answers for every package of a folder."""
    packages = sorted(Path(sys.argv[1]).glob("*.mlpackage"))
    json.dump({package.stem: weights(package) for package in packages}, sys.stdout)


if __name__ == "__main__":
    main()
