"""Compiling, saving, loading."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._errors import ArgumentError, UnsupportedError
from ._tensor import Tensor, _value

FORMATS = {"int8": "int8", "int4": "int4", "sparse": "sparse"}


class Model(_core.Program):
    """A compiled program on a device: call it with arrays in the order of its inputs, or by their names.

    Results are fp32 arrays, or keep their own type with ``dtype="native"``. Use it in ``with``, or call ``release``.
    """

    def input_view(self, name: str | None = None) -> np.ndarray[Any, Any]:
        """The memory of an input, the first one where no name is given: `execute` reads what is written there."""
        return self._view(False, self.inputs, name)

    def output_view(self, name: str | None = None) -> np.ndarray[Any, Any]:
        """The memory of an output, which `execute` overwrites."""
        return self._view(True, self.outputs, name)

    def _view(self, output: bool, ports: list[tuple[str, str, list[int]]], name: str | None) -> np.ndarray[Any, Any]:
        names = [port[0] for port in ports]
        if name is not None and name not in names:
            raise ArgumentError(f"there is no port {name!r}; there are {', '.join(names)}")
        index = 0 if name is None else names.index(name)
        _, dtype, shape = ports[index]
        memory = self.memory(output, index)
        kind = np.dtype({"fp16": "float16", "fp32": "float32"}.get(dtype, dtype))
        held = (ctypes.c_uint8 * memory.length).from_address(memory.address)
        held.owner = memory  # type: ignore[attr-defined]  # the view keeps the memory
        flat: np.ndarray[Any, Any] = np.frombuffer(held, kind, math.prod(shape))  # type: ignore[call-overload]
        return flat.reshape(shape)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Model({self.n_ops} operations on {self.device})"


def compile(
    out: Tensor | Sequence[Tensor] | Mapping[str, Tensor],
    int8: bool = False,
    build_dir: Any = None,
    opt: str | int | None = "routes",
    compress: str | None = None,
    compress_atol: float = 0.05,
    block_size: int = 32,
    validate: bool = False,
    target: str | None = None,
    *,
    device: str = "auto",
    dtype: str = "fp32",
) -> Model:
    """Compile one tensor, several, or a dictionary of them, and load the program on a device.

    ``device="auto"`` is the engine where there is one, else ``cpu``; ``Model.device`` says which. A device that is
    named and not here is an error.
    """
    if opt not in ("routes", 0, None, False):
        raise UnsupportedError(f"opt={opt!r}: choosing by measurement is not here yet; use opt='routes'")
    if compress_atol != 0.05:
        raise UnsupportedError(
            "compress_atol: every weight gets the named format; `aneforge compile --compress auto` weighs formats"
        )
    if validate:
        raise UnsupportedError("validate=True: the risks of fp16 are told by `aneforge check` for now")
    if dtype not in ("fp32", "native"):
        raise ArgumentError(f"dtype={dtype!r}: results are 'fp32' or 'native'")
    if isinstance(out, Tensor):
        form, named = "one", [("out", out)]
    elif isinstance(out, Mapping):
        form, named = "named", list(out.items())
    elif isinstance(out, (list, tuple)):
        form, named = "list", [(f"out{index}", tensor) for index, tensor in enumerate(out)]
    else:
        raise ArgumentError(f"out takes a Tensor, a list or a dictionary of them, got {type(out).__name__}")
    chosen = compress or ("int8" if int8 else None)
    if chosen == "auto":
        raise UnsupportedError("compress='auto' is not here yet; name a format: int8, int4, blockwise or sparse")
    if chosen == "blockwise":
        chosen = f"int8-block{block_size}"
    outputs = [(name, _value(tensor)) for name, tensor in named]
    model: Model = Model(_core.compile(outputs, form, device, target, chosen, dtype == "fp32"))
    if build_dir is not None:
        model.save(build_dir)
    return model


def load_program(folder: str | os.PathLike[str], *, device: str = "auto", dtype: str = "fp32") -> Model:
    """Loads what ``Model.save`` or ``aneforge compile`` wrote."""
    model: Model = Model(_core.load(folder, device, dtype == "fp32"))
    return model


def devices() -> dict[str, tuple[bool, str]]:
    """Every device: whether it is here, and what it is or why it is not."""
    return {name: (here, text) for name, here, text in _core.devices()}
