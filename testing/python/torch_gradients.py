#!/usr/bin/env python3
"""Gradients of graphs by PyTorch's autograd, in double precision.

Reads a JSON list of graphs on standard input: {"nodes": [...], "outputs": [...], "wanted": [node]}. A
node is a leaf {"shape", "data"} or a use of an operator {"op", "inputs": {name: [[node, result]]},
"attributes"}; an output is {"place": [node, result], "weights": [...]}. Prints for each {"loss",
"gradients": [[...]]}, where the loss is the sum of all outputs times their weights and gradients are
those of the wanted leaves, or {"lacks": name} for an operator that graph_ops.py does not know.
Numbers go as text, so that infinities survive.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import torch
from graph_layers import Tensor, Use
from graph_ops import OPERATORS, tensor


def results(node: dict[str, Any], made: list[list[Tensor]]) -> list[Tensor]:
    """What a node gives."""
    if "op" not in node:
        return [tensor(node)]
    inputs = {
        name: [made[at][result] for at, result in places] for name, places in node["inputs"].items()
    }
    given = OPERATORS[node["op"]](Use(inputs, node["attributes"]))
    return given if isinstance(given, list) else [given]


def answer(graph: dict[str, Any]) -> dict[str, Any]:
    """Loss and gradients of one graph."""
    unknown = [node["op"] for node in graph["nodes"] if node.get("op", "add") not in OPERATORS]
    if unknown:
        return {"lacks": unknown[0]}
    made: list[list[Tensor]] = []
    for index, node in enumerate(graph["nodes"]):
        made.append(results(node, made))
        if index in graph["wanted"]:
            made[index][0].requires_grad_(True)
    loss = torch.zeros((), dtype=torch.float64)
    for output in graph["outputs"]:
        at, result = output["place"]
        value = made[at][result].double()
        weights = torch.tensor(output["weights"], dtype=torch.float64)
        loss = loss + (value * weights.reshape(value.shape)).sum()
    leaves = [made[index][0] for index in graph["wanted"]]
    if loss.requires_grad:
        gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
    else:
        gradients = tuple(None for _ in leaves)
    full = [
        torch.zeros_like(leaf) if gradient is None else gradient
        for leaf, gradient in zip(leaves, gradients, strict=True)
    ]
    return {
        "loss": repr(loss.item()),
        "gradients": [[repr(number) for number in one.flatten().tolist()] for one in full],
    }


def main() -> None:
    """Answers the request on standard input."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    answers = []
    for index, graph in enumerate(json.load(sys.stdin)):
        try:
            answers.append(answer(graph))
        except Exception as error:
            used = [node.get("op") for node in graph["nodes"]]
            raise SystemExit(f"graph {index} of {used}: {error!r}") from error
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
