#!/usr/bin/env python3
"""Gradients of small whole models in PyTorch, in double precision.

Reads a JSON list from standard input: {"model": name, "parameters": {name: {"shape", "values"}},
"inputs": [{"shape", "values"}]}, the last input being labels. Prints a JSON list with the gradient of
the loss with respect to each trained parameter by name.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from torch.nn import functional
from torch_modules import STATISTICS, Named, Tensor, attention, batch_norm, mlp, swiglu, tensor


def part(p: Named, prefix: str) -> Named:
    """The parameters of one module."""
    return {
        name.removeprefix(f"{prefix}."): value
        for name, value in p.items()
        if name.startswith(f"{prefix}.")
    }


def cnn(p: Named, x: Tensor) -> Tensor:
    """Two convolutions with pools, normalised after the first."""
    x = functional.conv2d(x, p["conv1.weight"], p["conv1.bias"], padding=1)
    x = functional.max_pool2d(batch_norm(part(p, "norm"), x, True).relu(), 2)
    x = functional.conv2d(x, p["conv2.weight"], p["conv2.bias"], padding=1)
    x = functional.max_pool2d(x.relu(), 2)
    return functional.linear(x.flatten(1), p["dense.weight"], p["dense.bias"])


def layer_norm(p: Named, name: str, x: Tensor) -> Tensor:
    """Over the last axis."""
    return functional.layer_norm(x, x.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"])


def vit(p: Named, x: Tensor) -> Tensor:
    """One block over patches of four by four."""
    x = functional.conv2d(x, p["patches.weight"], p["patches.bias"], 4).flatten(2).transpose(1, 2)
    x = x + attention(part(p, "attention"), layer_norm(p, "norm1", x), 4, 4, False)
    x = x + mlp(part(p, "dense"), layer_norm(p, "norm2", x))
    x = layer_norm(p, "norm", x).mean(1)
    return functional.linear(x, p["head.weight"], p["head.bias"])


def llama(p: Named, words: Tensor) -> Tensor:
    """One block between an embedding and its transpose."""

    def norm(name: str, x: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], p[f"{name}.weight"], 1e-5)

    x = functional.embedding(words.long(), p["words.weight"])
    x = x + attention(
        part(p, "attention"), norm("norm1", x), 4, 2, True, base=10000.0, style="halves"
    )
    x = x + swiglu(part(p, "dense"), norm("norm2", x))
    return norm("norm", x) @ p["words.weight"].T


MODELS = {"cnn": cnn, "vit": vit, "llama": llama}


def run(case: dict[str, Any]) -> dict[str, list[float]]:
    """The gradients of one model."""
    parameters = {name: tensor(given) for name, given in case["parameters"].items()}
    for name, value in parameters.items():
        value.requires_grad_(name.split(".")[-1] not in STATISTICS)
    x, labels = map(tensor, case["inputs"])
    logits = MODELS[case["model"]](parameters, x)
    functional.cross_entropy(logits.flatten(0, -2), labels.long().flatten()).backward()
    trained = {name: value for name, value in parameters.items() if value.requires_grad}
    return {name: value.grad.flatten().tolist() for name, value in trained.items()}


def main() -> None:
    """Answers the request on standard input."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    json.dump([run(case) for case in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
