#!/usr/bin/env python3
"""PyTorch's side of the comparison of accuracies, and the table of all runs.

`parity.py train START DATA` trains, in single precision with two threads, from the weights and over
the batches of START (see crates/train/examples/parity.rs) and prints accuracies on all test images
after each epoch, as JSON. `parity.py table FOLDER` gathers the runs `TASK.DEVICE.SEED.json` of a folder
into Markdown; with `--judge` it ends with 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

WINDOW = 20
MEANS, EACH = 1.0, 1.5
TITLES = {
    "fashion-cnn": "16 and 32 channels, 3 epochs of 60,000 images",
    "fashion-cnn-small": "8 and 16 channels, 2 epochs of 60,000 images",
}


def images(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels as bytes [count, 1, 28, 28] and labels of one part, from plain IDX files."""
    pixels = np.fromfile(folder / f"{part}-images-idx3-ubyte", np.uint8, offset=16).reshape(
        -1, 1, 28, 28
    )
    labels = np.fromfile(folder / f"{part}-labels-idx1-ubyte", np.uint8, offset=8)
    assert len(pixels) == len(labels)
    return pixels, labels


def train(start: dict[str, Any], folder: Path, most: int | None) -> dict[str, Any]:
    """Trains as a start says and gives accuracies and losses."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(2)
    (mean,), (deviation,) = start["mean"], start["deviation"]

    def tensors(part: str) -> tuple[torch.Tensor, torch.Tensor]:
        pixels, labels = images(folder, part)
        scaled = (pixels.astype(np.float64) / 255 - mean) / deviation
        return torch.from_numpy(scaled.astype(np.float32)), torch.from_numpy(
            labels.astype(np.int64)
        )

    p = {
        name: torch.tensor(given["values"]).reshape(given["shape"])
        for name, given in start["parameters"].items()
    }
    for value in p.values():
        value.requires_grad_(True)

    def forward(x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(
            functional.conv2d(x, p["conv1.weight"], p["conv1.bias"], padding=1).relu(), 2
        )
        x = functional.max_pool2d(
            functional.conv2d(x, p["conv2.weight"], p["conv2.bias"], padding=1).relu(), 2
        )
        return functional.linear(x.flatten(1), p["dense.weight"], p["dense.bias"])

    (x, y), (test_x, test_y) = tensors("train"), tensors("t10k")

    def accuracy() -> float:
        with torch.no_grad():
            parts = [forward(part).argmax(1) for part in test_x.split(500)]
        return (torch.cat(parts) == test_y).double().mean().item()

    optimizer = torch.optim.Adam(list(p.values()), lr=start["rate"])
    losses: list[float] = []
    accuracies: list[float] = []
    began, testing = time.perf_counter(), 0.0
    for index, batch in enumerate(start["batches"][:most]):
        loss = functional.cross_entropy(forward(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if (index + 1) % start["steps_per_epoch"] == 0:
            before = time.perf_counter()
            accuracies.append(accuracy())
            testing += time.perf_counter() - before
    seconds = time.perf_counter() - began
    windows = [
        sum(part) / len(part)
        for part in (losses[at : at + WINDOW] for at in range(0, len(losses), WINDOW))
    ]
    return {
        "accuracy": accuracies or [accuracy()],
        "losses": windows,
        "steps": len(losses),
        "seconds": seconds,
        "milliseconds_per_step": (seconds - testing) * 1e3 / len(losses),
    }


def section(
    task: str, runs: dict[str, dict[str, dict[str, Any]]], problems: list[str]
) -> list[str]:
    """A net's table; adds to `problems` what misses a bound."""
    peers = sorted(runs, key=lambda name: (name != "pytorch", name))
    seeds = sorted(runs["pytorch"])
    percent = {peer: [100 * runs[peer][seed]["accuracy"][-1] for seed in seeds] for peer in peers}
    mean = {peer: sum(values) / len(values) for peer, values in percent.items()}
    headings = [f"seed {seed}" for seed in seeds]
    lines = [f"## {task}: {TITLES.get(task, '')}", ""]
    lines += [
        "| | "
        + " | ".join([*headings, "mean", "difference of means", "largest of a seed", "ms per step"])
        + " |"
    ]
    lines += ["|---" * (len(seeds) + 5) + "|"]
    for peer in peers:
        values = " | ".join(f"{value:.2f} %" for value in percent[peer])
        step = min(runs[peer][seed]["milliseconds_per_step"] for seed in seeds)
        if peer == "pytorch":
            difference = "| |"
        else:
            means = mean[peer] - mean["pytorch"]
            each = max(
                (a - b for a, b in zip(percent[peer], percent["pytorch"], strict=True)), key=abs
            )
            difference = f"| {means:+.2f} | {each:+.2f}"
            if not (abs(means) <= MEANS and abs(each) <= EACH):
                problems.append(
                    f"{task} on {peer}: means differ by {means:+.2f}, a seed by {each:+.2f}"
                )
        lines.append(f"| {peer} | {values} | {mean[peer]:.2f} % {difference} | {step:.1f} |")
    ours = [runs[peer][seed] for peer in peers if peer != "pytorch" for seed in seeds]
    counted = sum(run["dispatches"] for run in ours), sum(run["steps"] for run in ours)
    moved = sum(run["state_bytes_in_steps"] for run in ours)
    lines += [
        "",
        f"Ours: {counted[0]} dispatches for {counted[1]} steps, {moved} bytes of state moved between "
        "host and device in them.",
    ]
    if counted[0] != counted[1] or moved:
        problems.append(
            f"{task}: {counted[0]} dispatches for {counted[1]} steps, {moved} bytes of state"
        )
    curve = "; ".join(f"{peer} {runs[peer][seeds[0]]['losses'][-1]:.3f}" for peer in peers)
    lines += [f"Mean loss of the last {WINDOW} steps, seed {seeds[0]}: {curve}.", ""]
    return lines


def table(folder: Path) -> tuple[str, list[str]]:
    """All runs of a folder as Markdown, and what misses a bound."""
    runs: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name.startswith("start-"):
            continue
        task, peer, seed = path.stem.split(".", 2)
        runs.setdefault(task, {}).setdefault(peer, {})[seed] = json.loads(path.read_text())
    problems: list[str] = []
    lines = ["# Accuracy beside PyTorch", ""]
    lines += [
        "Written by `make parity`. Convolutional nets on Fashion-MNIST, trained from the same "
        "first weights over the same batches of",
        "100 with Adam (rate 0.001) in fp16 here and in fp32 by PyTorch; accuracy on all 10,000 "
        "test images after the last epoch.",
        f"Bounds: means within {MEANS} point of PyTorch's, each seed within {EACH}. The emulator "
        "computes as the engine of an M1 is",
        "published to; no figure here comes from a Mac.",
        "",
    ]
    for task in TITLES:
        if task in runs:
            lines += section(task, runs[task], problems)
    total = sum(
        run["seconds"]
        for peers in runs.values()
        for seeds in peers.values()
        for run in seeds.values()
    )
    lines += [
        f"{total / 60:.0f} minutes of training in all, on {os.cpu_count()} processors "
        f"({platform.machine()})."
    ]
    finite = all(
        math.isfinite(value)
        for peers in runs.values()
        for s in peers.values()
        for r in s.values()
        for value in r["losses"]
    )
    if not finite:
        problems.append("a loss is no number")
    return "\n".join(lines) + "\n", problems


def main() -> int:
    """Trains or gathers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train")
    one.add_argument("start", type=Path)
    one.add_argument("data", type=Path)
    one.add_argument("--steps", type=int)
    all_runs = commands.add_parser("table")
    all_runs.add_argument("folder", type=Path)
    all_runs.add_argument("--output", type=Path)
    all_runs.add_argument("--judge", action="store_true")
    options = parser.parse_args()
    if options.command == "train":
        json.dump(
            train(json.loads(options.start.read_text()), options.data, options.steps), sys.stdout
        )
        return 0
    text, problems = table(options.folder)
    if options.output:
        with tempfile.NamedTemporaryFile("w", dir=options.output.parent, delete=False) as staged:
            staged.write(text)
        Path(staged.name).chmod(0o644)
        Path(staged.name).replace(options.output)
    sys.stdout.write(text)
    for problem in problems:
        print(f"parity: {problem}", file=sys.stderr)
    return 1 if problems and options.judge else 0


if __name__ == "__main__":
    sys.exit(main())
