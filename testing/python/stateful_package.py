"""Writes an ML Program package with states by Apple's converter.

    stateful_package.py FOLDER      writes FOLDER/stateful.mlpackage and answers {"steps": [...]}

A torch module keeps a running sum and a window of the last three rows, both updated by every call.
Answers, per step, what it was given and what it gave and kept, computed by torch in fp16.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
from pathlib import Path

import numpy as np
import torch

logging.disable(logging.CRITICAL)
with contextlib.redirect_stderr(io.StringIO()):
    import coremltools as ct


class Stateful(torch.nn.Module):
    """Adds to a sum and shifts a window."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1, 4, dtype=torch.float16))
        self.register_buffer("window", torch.zeros(3, 4, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One step."""
        self.total.add_(x)
        self.window[0:3] = torch.cat([self.window[1:], x], 0)
        return self.total * 0.5 + self.window.sum(0, keepdim=True)


def kept(name: str, shape: tuple[int, ...]) -> ct.StateType:
    """A state of the package."""
    return ct.StateType(wrapped_type=ct.TensorType(shape=shape, dtype=np.float16), name=name)


def convert(place: Path) -> None:
    """Writes the package."""
    traced = torch.jit.trace(Stateful().eval(), torch.zeros(1, 4, dtype=torch.float16))
    model = ct.convert(
        traced,
        inputs=[ct.TensorType(name="x", shape=(1, 4), dtype=np.float16)],
        outputs=[ct.TensorType(name="y", dtype=np.float16)],
        states=[kept("total", (1, 4)), kept("window", (3, 4))],
        minimum_deployment_target=ct.target.iOS18,
        skip_model_load=True,
    )
    model.save(str(place))


def main() -> None:
    """Converts, and runs the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        convert(folder / "stateful.mlpackage")
    module = Stateful().eval()
    steps = []
    for step in range(4):
        x = ((torch.arange(4) * 3 + step * 5) % 7 - 3).to(torch.float16)[None] / 4
        y = module(x)
        numbers = {"x": x, "y": y, "total": module.total, "window": module.window}
        steps.append({name: value.flatten().tolist() for name, value in numbers.items()})
    print(json.dumps({"steps": steps}))


main()
