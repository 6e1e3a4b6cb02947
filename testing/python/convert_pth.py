"""Converts a PyTorch checkpoint (.pth) to safetensors, keys unchanged.

    convert_pth.py model.pth model.safetensors

Only plain tensors are read (`weights_only`), so a checkpoint cannot run code. A checkpoint that wraps
its weights in "state_dict", "model" or "model_state_dict" is unwrapped.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

WRAPPERS = ("state_dict", "model_state_dict", "model")


def unwrap(checkpoint: object) -> dict[str, torch.Tensor]:
    """The mapping of names to tensors inside a checkpoint."""
    while isinstance(checkpoint, dict):
        if checkpoint and all(isinstance(value, torch.Tensor) for value in checkpoint.values()):
            return checkpoint
        inner = next((checkpoint[key] for key in WRAPPERS if key in checkpoint), None)
        if inner is None:
            break
        checkpoint = inner
    sys.exit("convert_pth: found no mapping of names to tensors; save model.state_dict()")


def main() -> None:
    """Reads, converts and writes through a temporary name."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    state = unwrap(torch.load(arguments.source, map_location="cpu", weights_only=True))
    # clone: safetensors refuses tensors that share memory
    tensors = {name: value.detach().clone().contiguous() for name, value in state.items()}
    temporary = arguments.target.with_name(f"{arguments.target.name}.{os.getpid()}")
    save_file(tensors, temporary)
    temporary.replace(arguments.target)
    print(f"{arguments.target}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
