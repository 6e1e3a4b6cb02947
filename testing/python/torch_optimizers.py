#!/usr/bin/env python3
"""Parameters under PyTorch's optimizers and learning rates under its schedules, in double precision.

Reads {"optimizers": [{"name", "options", "rates", "clip", "parameters": [[...]], "gradients":
[[[...]]]}], "schedules": [{"name", "options", "steps"}]} from standard input, with one list of
gradients for each step and parameter. Prints {"optimizers": [[[...]]], "schedules": [[...]]}: the
parameters after each step and the rate of each step for a base rate of 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch.optim import lr_scheduler

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. 2023 (arXiv 2302.06675), which PyTorch lacks."""

    def __init__(self, params: Iterable[torch.Tensor], **options: Any) -> None:
        super().__init__(params, options)

    @torch.no_grad()
    def step(self) -> None:
        """One update of all parameters."""
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = torch.sign(first * m + (1 - first) * p.grad)
                p.sub_(group["lr"] * (update + group["weight_decay"] * p))
                m.mul_(second).add_(p.grad, alpha=1 - second)


def run(case: dict[str, Any]) -> list[list[list[float]]]:
    """The parameters after each step."""
    parameters = [torch.tensor(values, dtype=torch.float64) for values in case["parameters"]]
    maker = OPTIMIZERS.get(case["name"], Lion)
    optimizer = maker(parameters, lr=1.0, **case["options"])
    states = []
    for rate, gradients in zip(case["rates"], case["gradients"], strict=True):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        if case["clip"] is not None:
            torch.nn.utils.clip_grad_norm_(parameters, case["clip"])
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        states.append([parameter.tolist() for parameter in parameters])
    return states


def schedule(case: dict[str, Any]) -> list[float]:
    """The rate at each step."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    options = case["options"]
    if case["name"] == "step":
        scheduler: Any = lr_scheduler.StepLR(optimizer, options["every"], options["factor"])
    else:
        warmup, total, last = options["warmup"], options["total"], options["last"]
        rise = lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / warmup)
        fall = lr_scheduler.CosineAnnealingLR(optimizer, total - warmup, last)
        scheduler = lr_scheduler.SequentialLR(optimizer, [rise, fall], [warmup])
    rates = []
    for _ in range(case["steps"]):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return rates


def main() -> None:
    """Answers the request on standard input."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    request = json.load(sys.stdin)
    answer = {
        "optimizers": [run(case) for case in request["optimizers"]],
        "schedules": [schedule(case) for case in request["schedules"]],
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
