"""ResNet-18 and ViT-B/16 from torchvision with seeded weights, and their answers to seeded images.

    torchvision_models.py FOLDER [--seed N] [--inputs N]

Trained weights are not to be had from package registries. Fresh ones would make a weak test: the
statistics of a new batch norm are 0 and 1, so folding them is trivial, and ViT's head is all zeros.
So every normalisation parameter, bias and head is drawn anew, in ranges that keep activations far
from fp16's limits (checked). FOLDER gets

    resnet18.safetensors, vit_b_16.safetensors   torchvision's own keys, float32
    input_<i>.npy                                [1, 3, 224, 224] float32, shared by both
    resnet18_logits_<i>.npy, vit_b_16_logits_<i>.npy   [1, 1000] float32, torch's answers
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
import torchvision
from safetensors.torch import save_file
from torch import nn

NAMES = ("resnet18", "vit_b_16")
LARGEST_ACTIVATION = 2000.0  # fp16 products saturate at 2^15


def draw(
    generator: torch.Generator, like: torch.Tensor, mean: float, spread: float
) -> torch.Tensor:
    """Uniform values in mean +- spread."""
    return mean + spread * (2 * torch.rand(like.shape, generator=generator) - 1)


@torch.no_grad()
def redraw(model: nn.Module, generator: torch.Generator) -> None:
    """Replaces all parameters that torchvision starts at a constant."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.copy_(draw(generator, module.running_mean, 0.0, 0.3))
            module.running_var.copy_(draw(generator, module.running_var, 1.25, 0.75))
            module.weight.copy_(draw(generator, module.weight, 0.8, 0.4))
            module.bias.copy_(draw(generator, module.bias, 0.0, 0.3))
        elif isinstance(module, nn.LayerNorm):
            module.weight.copy_(draw(generator, module.weight, 1.0, 0.3))
            module.bias.copy_(draw(generator, module.bias, 0.0, 0.2))
        elif isinstance(module, nn.MultiheadAttention):
            module.in_proj_bias.copy_(draw(generator, module.in_proj_bias, 0.0, 0.1))
            module.out_proj.bias.copy_(draw(generator, module.out_proj.bias, 0.0, 0.1))
        elif isinstance(module, nn.Linear):
            module.bias.copy_(draw(generator, module.bias, 0.0, 0.1))
    if isinstance(model, torchvision.models.VisionTransformer):
        model.class_token.copy_(draw(generator, model.class_token, 0.0, 0.5))
        head = model.heads.head.weight
        head.copy_(draw(generator, head, 0.0, 0.1))


def make(name: str, seed: int) -> nn.Module:
    """A model in inference mode whose weights depend on the seed alone."""
    torch.manual_seed(seed)
    model = getattr(torchvision.models, name)(weights=None)
    redraw(model, torch.Generator().manual_seed(seed + 1))
    return model.eval()


def images(seed: int, count: int) -> list[np.ndarray]:
    """Random pictures: coarse blobs plus grain, each with its own palette and contrast.

    Plain noise would not do: after pooling, all noise images look the same to a network.
    """
    pictures = []
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        cells = 2 ** (1 + index % 4)  # 2, 4, 8, 16 blobs a side
        coarse = rng.standard_normal((1, 3, cells, cells))
        repeat = 224 // cells
        blobs = coarse.repeat(repeat, axis=2).repeat(repeat, axis=3)
        palette = rng.standard_normal((1, 3, 1, 1))
        grain = rng.standard_normal((1, 3, 224, 224))
        pictures.append((0.8 * blobs + 0.5 * palette + 0.3 * grain).astype(np.float32))
    return pictures


def largest_activations(model: nn.Module) -> list[float]:
    """Installs probes; the list grows by one entry for each module that runs."""
    seen: list[float] = []

    def probe(_module: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, torch.Tensor):
            seen.append(float(output.abs().max()))

    for module in model.modules():
        module.register_forward_hook(probe)
    return seen


@torch.inference_mode()
def answers(model: nn.Module, pictures: list[np.ndarray]) -> list[np.ndarray]:
    """Logits for each picture, alone."""
    return [model(torch.from_numpy(picture)).numpy() for picture in pictures]


def check(name: str, logits: list[np.ndarray], largest: float) -> str:
    """Refuses a model that would be a poor test; returns a line about it."""
    rows = np.concatenate(logits)
    apart = [
        float(np.linalg.norm(a - b) / np.linalg.norm(a))
        for index, a in enumerate(rows)
        for b in rows[index + 1 :]
    ]
    spread = float(rows.std())
    line = (
        f"{name}: largest activation {largest:.1f}, logit deviation {spread:.3f}, "
        f"relative distance of two answers {min(apart):.3f} to {max(apart):.3f}"
    )
    if not largest < LARGEST_ACTIVATION or spread < 0.05 or min(apart) < 0.05:
        sys.exit(f"unsuitable weights: {line}")
    return line


def main() -> None:
    """Writes all files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--inputs", type=int, default=5)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(2)

    pictures = images(arguments.seed, arguments.inputs)
    for index, picture in enumerate(pictures):
        np.save(arguments.folder / f"input_{index}.npy", picture)
    for name in NAMES:
        model = make(name, arguments.seed)
        state = {key: value.contiguous() for key, value in model.state_dict().items()}
        save_file(state, arguments.folder / f"{name}.safetensors")
        seen = largest_activations(model)
        logits = answers(model, pictures)
        for index, row in enumerate(logits):
            np.save(arguments.folder / f"{name}_logits_{index}.npy", row)
        print(check(name, logits, max(seen)), file=sys.stderr)


if __name__ == "__main__":
    main()
