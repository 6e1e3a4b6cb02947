"""Reads and writes weight blobs with the storage classes of coremltools, Apple's own code.

    blob_check.py read weights.bin < requests.json     requests: [{"offset": 64, "dtype": "fp16"}, ...]
    blob_check.py write weights.bin < values.json      values: [{"dtype": "fp16", "hex": "003c"}, ...]

`read` answers [{"hex": ...}, ...], or {"error": ...} in the place of one that is refused. `write` takes
little-endian bytes in hex (one byte per element for sub-byte types) and answers [{"offset": ...}, ...].
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import sys

import numpy as np

logging.disable(logging.WARNING)
with contextlib.redirect_stderr(io.StringIO()):
    from coremltools.libmilstoragepython import _BlobStorageReader, _BlobStorageWriter

# dtype name -> (the name in coremltools' methods, element type in numpy)
DTYPES: dict[str, tuple[str, np.dtype]] = {
    "fp16": ("fp16", np.dtype("<u2")),
    "fp32": ("float", np.dtype("<f4")),
    "int8": ("int8", np.dtype("i1")),
    "uint8": ("uint8", np.dtype("u1")),
    "int16": ("int16", np.dtype("<i2")),
    "uint16": ("uint16", np.dtype("<u2")),
    "int32": ("int32", np.dtype("<i4")),
    "uint32": ("uint32", np.dtype("<u4")),
    "int4": ("int4", np.dtype("i1")),
    "uint1": ("uint1", np.dtype("u1")),
    "uint2": ("uint2", np.dtype("u1")),
    "uint3": ("uint3", np.dtype("u1")),
    "uint4": ("uint4", np.dtype("u1")),
    "uint6": ("uint6", np.dtype("u1")),
}


def read(path: str, requests: list[dict]) -> list[dict]:
    """The payload at each offset, as Apple's reader sees it."""
    reader = _BlobStorageReader(path)
    answers: list[dict] = []
    for request in requests:
        name, element = DTYPES[request["dtype"]]
        try:
            values = getattr(reader, f"read_{name}_data")(request["offset"])
            answers.append({"hex": np.asarray(values).astype(element, copy=False).tobytes().hex()})
        except (RuntimeError, ValueError, IndexError) as error:
            answers.append({"error": str(error)})
    return answers


def write(path: str, values: list[dict]) -> list[dict]:
    """A new file with one blob for each value."""
    writer = _BlobStorageWriter(path, True)
    answers = []
    for value in values:
        name, element = DTYPES[value["dtype"]]
        data = np.frombuffer(bytes.fromhex(value["hex"]), element)
        answers.append({"offset": int(getattr(writer, f"write_{name}_data")(data))})
    return answers


def main() -> None:
    """Runs one request list from standard input."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=("read", "write"))
    parser.add_argument("path")
    arguments = parser.parse_args()
    action = read if arguments.action == "read" else write
    json.dump(action(arguments.path, json.load(sys.stdin)), sys.stdout)
    print()


if __name__ == "__main__":
    main()
