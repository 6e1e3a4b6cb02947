"""Prints draws of numpy's default_rng as the bits of float64, for tests of our own generator.

    numpy_rng.py --seed 7 --size 4 [--distribution standard_normal] [--skip N]

One value a line: 16 hex digits of the IEEE bits (for integers: the value in hex). `--skip` draws and
drops N standard normals first.
"""

from __future__ import annotations

import argparse

import numpy as np

DISTRIBUTIONS = (
    "standard_normal",
    "random",
    "integers",
    "standard_normal_f32",
    "random_f32",
    "raw",
)


def draw(rng: np.random.Generator, distribution: str, size: int) -> np.ndarray:
    """`size` unsigned 64-bit words that stand for the draws."""
    if distribution == "raw":
        return np.atleast_1d(rng.bit_generator.random_raw(size)).astype(np.uint64)
    if distribution == "integers":
        return rng.integers(0, 1000, size).astype(np.uint64)
    if distribution.endswith("_f32"):
        single = getattr(rng, distribution.removesuffix("_f32"))(size, dtype=np.float32)
        return single.astype(np.float64).view(np.uint64)
    return getattr(rng, distribution)(size).view(np.uint64)


def main() -> None:
    """Prints the draws."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--distribution", choices=DISTRIBUTIONS, default="standard_normal")
    parser.add_argument("--skip", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    if arguments.skip:
        rng.standard_normal(arguments.skip)
    for word in draw(rng, arguments.distribution, arguments.size):
        print(f"{int(word):016x}")


if __name__ == "__main__":
    main()
