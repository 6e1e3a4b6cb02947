#!/usr/bin/env python3
"""Gradients of a BERT encoder with the weights of a Hugging Face folder, in PyTorch in double precision.

Reads {"folder", "names", "path", "words", "shape", "seed"} from standard input: word plus position
embeddings of that shape, and the gradient of the embedding. Weights are rounded to fp16 first. Writes
the gradients of the words and of the named weights to the path, as float32, one after the other.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch
from minilm_graph import load_safetensors
from torch.nn import functional

Tensor = torch.Tensor


class Encoder:
    """Post-norm layers over embedded words."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        """Reads and rounds the weights."""
        self.config = json.loads((folder / "config.json").read_text())
        stored = load_safetensors(folder / "model.safetensors")
        rounded = {name: stored[name].astype(np.float16).astype(np.float64) for name in names}
        self.weights = {
            name: torch.from_numpy(value).requires_grad_(True) for name, value in rounded.items()
        }

    def linear(self, x: Tensor, name: str) -> Tensor:
        """A dense layer."""
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        """Over the last axis."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return functional.layer_norm(x, x.shape[-1:], weight, bias, self.config["layer_norm_eps"])

    def attention(self, x: Tensor, name: str) -> Tensor:
        """PyTorch's own, over heads."""
        heads = self.config["num_attention_heads"]
        parts = (
            self.linear(x, f"{name}.self.{part}").unflatten(-1, (heads, -1)).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(*parts)
        return self.linear(mixed.transpose(1, 2).flatten(-2), f"{name}.output.dense")

    def __call__(self, x: Tensor) -> Tensor:
        """Rows of length 1."""
        x = self.layer_norm(x, "embeddings.LayerNorm")
        for index in range(self.config["num_hidden_layers"]):
            layer = f"encoder.layer.{index}"
            attended = x + self.attention(x, f"{layer}.attention")
            x = self.layer_norm(attended, f"{layer}.attention.output.LayerNorm")
            grown = functional.gelu(self.linear(x, f"{layer}.intermediate.dense"))
            x = self.layer_norm(
                x + self.linear(grown, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        return functional.normalize(x.mean(1), dim=-1)


def main() -> None:
    """Answers the request on standard input."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    request = json.load(sys.stdin)
    encoder = Encoder(Path(request["folder"]), request["names"])
    words = torch.tensor(request["words"], dtype=torch.float64).reshape(request["shape"])
    words.requires_grad_(True)
    embedding = encoder(words)
    seed = torch.tensor(request["seed"], dtype=torch.float64).reshape(embedding.shape)
    (embedding * seed).sum().backward()
    leaves = [words, *(encoder.weights[name] for name in request["names"])]
    joined = np.concatenate([leaf.grad.numpy().astype(np.float32).ravel() for leaf in leaves])
    joined.tofile(request["path"])


if __name__ == "__main__":
    main()
