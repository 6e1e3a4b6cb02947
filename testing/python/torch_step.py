"""Times training steps in PyTorch, one for each request, so that a benchmark can interleave them.

    torch_step.py image|transformer [--threads 2]

The nets, batches and optimizers are those of crates/aneforge/benches/training; the protocol is that of
ort_time.py.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, TOKENS, SEQUENCES, POSITIONS = 128, 4, 256, 16, 64


class Layer(nn.Module):
    """Attention and a dense block, each behind a norm and added to what it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Applies it to [batch, positions, width]."""
        batch, positions, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, positions, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, positions, WIDTH))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


class Transformer(nn.Module):
    """Tokens to logits of the next ones."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.layers = nn.Sequential(Layer(), Layer())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Applies it to [batch, positions]."""
        x = self.tokens(tokens) + self.places(torch.arange(POSITIONS))
        return self.head(self.norm(self.layers(x))).flatten(0, 1)


def image() -> Callable[[], float]:
    """A step of the convolutional net."""
    net = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 10)),
    )
    return stepper(
        net, torch.optim.Adam(net.parameters(), lr=1e-3), torch.rand(100, 1, 28, 28) * 2 - 1, 10
    )


def transformer() -> Callable[[], float]:
    """A step of the transformer."""
    net = Transformer()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    return stepper(net, optimizer, torch.randint(TOKENS, (SEQUENCES, POSITIONS)), TOKENS)


def stepper(
    net: nn.Module, optimizer: torch.optim.Optimizer, given: torch.Tensor, classes: int
) -> Callable[[], float]:
    """Forward, backward, update; gives the loss."""
    labels = torch.randint(classes, (len(net(given)),))

    def step() -> float:
        loss = functional.cross_entropy(net(given), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def main() -> None:
    """Builds, then serves requests."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("net", choices=["image", "transformer"])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    step = image() if arguments.net == "image" else transformer()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() != "run":
            break
        begin = time.perf_counter()
        step()
        print(f"ms {(time.perf_counter() - begin) * 1e3:.4f}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, Linux kibibytes
    print(f"peak_rss_kib {peak // 1024 if sys.platform == 'darwin' else peak}", flush=True)


if __name__ == "__main__":
    main()
