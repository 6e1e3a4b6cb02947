"""Reads back a weight that the Python package aneforge 0.4.0 compressed, with numpy alone."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

FP16, INT8, UINT1, UINT4 = 1, 4, 9, 11
HEADER = 64


def blobs(path: Path) -> list[tuple[int, bytes]]:
    """Type code and payload of every blob of a file of MILBlob's storage format 2."""
    data = path.read_bytes()
    count, version = struct.unpack_from("<II", data)
    assert version == 2
    found, place = [], HEADER
    for _ in range(count):
        magic, code, size, start = struct.unpack_from("<IIQQ", data, place)
        assert magic == 0xDEADBEEF
        found.append((code, data[start : start + size]))
        place = start + size
    assert place == len(data)
    return found


def dequantised(folder: Path, mode: str, shape: tuple[int, ...]) -> np.ndarray:
    """The only weight of a program, as fp16."""
    (code, data), (kind, numbers) = blobs(folder / "weights.bin")
    assert kind == FP16
    values = np.frombuffer(numbers, np.float16).astype(np.float64)
    if mode in ("int8", "blockwise"):
        assert code == INT8
        whole = np.frombuffer(data, np.int8).reshape(shape[0], -1).astype(np.float64)
        scales = values.reshape(shape[0], -1)
        result = whole * scales.repeat(whole.shape[1] // scales.shape[1], axis=1)
    elif mode == "int4":
        assert code == UINT4
        packed = np.frombuffer(data, np.uint8)
        result = values[np.stack([packed & 15, packed >> 4], -1).ravel()]
    else:
        assert (mode, code) == ("sparse", UINT1)
        mask = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        result = np.zeros(mask.size)
        result[mask == 1] = values
        result = result[: np.prod(shape)]
    return result.reshape(shape).astype(np.float16)
