#!/usr/bin/env python3
"""Outputs and gradients of small modules in PyTorch, in double precision.

Reads a JSON list of cases from standard input: {"module": name, "options": {...}, "parameters":
{name: {"shape", "values"}}, "inputs": [{"shape", "values"}], "seed": {"shape", "values"}}. Prints a
JSON list: {"output": [...], "gradients": {name: [...]}, "input_gradient": [...], "statistics":
{name: [...]}}, where the gradients are those of sum(output * seed).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

Tensor = torch.Tensor
Named = dict[str, Tensor]


def rope(x: Tensor, base: float, style: str) -> Tensor:
    """Rotary positions, as a product of complex numbers."""
    positions, width = x.shape[-2:]
    half = width // 2
    frequency = base ** (-2 * torch.arange(half, dtype=torch.float64) / width)
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * frequency
    turn = torch.polar(torch.ones_like(angle), angle)
    if style == "halves":
        turned = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous()) * turn
        return torch.cat([turned.real, turned.imag], -1)
    turned = torch.view_as_complex(x.reshape(*x.shape[:-1], half, 2).contiguous()) * turn
    return torch.view_as_real(turned).flatten(-2)


def attention(
    p: Named,
    x: Tensor,
    heads: int,
    key_heads: int,
    causal: bool,
    base: float | None = None,
    style: str = "",
) -> Tensor:
    """Self-attention whose key heads are repeated for the query heads that share them."""
    batch, rows, width = x.shape
    d = width // heads

    def split(name: str, count: int) -> Tensor:
        y = functional.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))
        return y.view(batch, rows, count, d).transpose(1, 2)

    q, k, v = split("q_proj", heads), split("k_proj", key_heads), split("v_proj", key_heads)
    if base:
        q, k = rope(q, base, style), rope(k, base, style)
    k, v = (t.repeat_interleave(heads // key_heads, 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(d)
    if causal:
        scores = scores + torch.full((rows, rows), -math.inf, dtype=x.dtype).triu(1)
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, rows, width)
    return functional.linear(y, p["o_proj.weight"], p.get("o_proj.bias"))


def swiglu(p: Named, x: Tensor) -> Tensor:
    """Llama's gated block."""
    gate = functional.silu(functional.linear(x, p["gate_proj.weight"]))
    return functional.linear(
        gate * functional.linear(x, p["up_proj.weight"]), p["down_proj.weight"]
    )


def mlp(p: Named, x: Tensor) -> Tensor:
    """Two dense layers with a gelu between them."""
    hidden = functional.gelu(functional.linear(x, p["fc1.weight"], p["fc1.bias"]))
    return functional.linear(hidden, p["fc2.weight"], p["fc2.bias"])


def batch_norm(p: Named, x: Tensor, training: bool) -> Tensor:
    """Batch normalisation, which moves the running statistics when training."""
    mean, var = p["running_mean"], p["running_var"]
    return functional.batch_norm(x, mean, var, p["weight"], p["bias"], training, 0.1, 1e-5)


MODULES: dict[str, Callable[..., Tensor]] = {
    "linear": lambda p, x: functional.linear(x, p["weight"], p["bias"]),
    "conv": lambda p, x, stride, padding, groups: functional.conv2d(
        x, p["weight"], p["bias"], stride, padding, 1, groups
    ),
    "batch_norm": batch_norm,
    "layer_norm": lambda p, x: functional.layer_norm(x, x.shape[-1:], p["weight"], p["bias"]),
    "rms_norm": lambda p, x: functional.rms_norm(x, x.shape[-1:], p["weight"], 1e-5),
    "group_norm": lambda p, x, groups: functional.group_norm(x, groups, p["weight"], p["bias"]),
    "embedding": lambda p, x: functional.embedding(x.long(), p["weight"]),
    "attention": attention,
    "mlp": mlp,
    "swiglu": swiglu,
    "cross_entropy": lambda p, x, labels, smoothing: functional.cross_entropy(
        x, torch.tensor(labels), label_smoothing=smoothing
    ),
    "mse": lambda p, x, t: functional.mse_loss(x, t),
    "bce": lambda p, x, t: functional.binary_cross_entropy_with_logits(x, t),
}
STATISTICS = ("running_mean", "running_var")


def tensor(given: dict[str, Any]) -> Tensor:
    """An array of the request."""
    return torch.tensor(given["values"], dtype=torch.float64).reshape(given["shape"])


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Output, gradients and statistics of one case."""
    parameters = {name: tensor(given) for name, given in case["parameters"].items()}
    inputs = [tensor(given) for given in case["inputs"]]
    for name, value in parameters.items():
        value.requires_grad_(name not in STATISTICS)
    inputs[0].requires_grad_(case["module"] != "embedding")
    output = MODULES[case["module"]](parameters, *inputs, **case["options"])
    (output * tensor(case["seed"])).sum().backward()
    leaves = {name: value for name, value in parameters.items() if value.requires_grad}
    return {
        "output": output.detach().flatten().tolist(),
        "gradients": {
            name: (torch.zeros_like(value) if value.grad is None else value.grad).flatten().tolist()
            for name, value in leaves.items()
        },
        "input_gradient": [] if inputs[0].grad is None else inputs[0].grad.flatten().tolist(),
        "statistics": {
            name: parameters[name].tolist() for name in STATISTICS if name in parameters
        },
    }


def main() -> None:
    """Answers the request on standard input."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    json.dump([run(case) for case in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
