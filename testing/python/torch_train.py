#!/usr/bin/env python3
"""The losses of a small convolutional classifier that PyTorch trains, in single precision.

Reads {"parameters": {name: {"shape", "values"}}, "images": {"shape", "values"}, "labels": [...],
"batches": [[...]], "optimizer": name, "options": {...}, "smoothing": number, "clip": number or null}
from standard input. The net is conv1, batch norm, relu, pool, conv2, relu, pool, dense. Prints a JSON
list of losses, one for each batch.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import torch
from torch.nn import functional

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def tensor(given: dict[str, Any]) -> torch.Tensor:
    """An array of the request."""
    return torch.tensor(given["values"]).reshape(given["shape"])


def forward(p: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Logits of images."""
    x = functional.conv2d(x, p["conv1.weight"], p["conv1.bias"], padding=1)
    mean, var = p["norm.running_mean"], p["norm.running_var"]
    x = functional.batch_norm(x, mean, var, p["norm.weight"], p["norm.bias"], training=True)
    x = functional.max_pool2d(x.relu(), 2)
    x = functional.conv2d(x, p["conv2.weight"], p["conv2.bias"], padding=1)
    x = functional.max_pool2d(x.relu(), 2)
    return functional.linear(x.flatten(1), p["dense.weight"], p["dense.bias"])


def main() -> None:
    """Trains on the request of standard input."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    request = json.load(sys.stdin)
    torch.set_num_threads(1)
    parameters = {name: tensor(given) for name, given in request["parameters"].items()}
    trained = [value for name, value in parameters.items() if "running" not in name]
    for value in trained:
        value.requires_grad_(True)
    images, labels = tensor(request["images"]), torch.tensor(request["labels"])
    optimizer = OPTIMIZERS[request["optimizer"]](trained, **request["options"])
    losses = []
    for batch in request["batches"]:
        logits = forward(parameters, images[batch])
        loss = functional.cross_entropy(logits, labels[batch], label_smoothing=request["smoothing"])
        optimizer.zero_grad()
        loss.backward()
        if request["clip"] is not None:
            torch.nn.utils.clip_grad_norm_(trained, request["clip"])
        optimizer.step()
        losses.append(loss.item())
    json.dump(losses, sys.stdout)


if __name__ == "__main__":
    main()
