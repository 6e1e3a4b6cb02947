"""The lazy tensor. Operators are the library's records; here stand names, positions and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsInt, Union

import numpy as np

from . import _core
from ._elementwise import Axes, Elementwise
from ._errors import ArgumentError, DTypeError

Operand = Union["Tensor", Any]  # evaluated on Python 3.10


class Tensor(Elementwise):
    """A value of a graph: nothing is computed until a program that contains it runs.

    ``==`` and ``hash`` are identity; ``< <= > >=`` build graphs.
    """

    __slots__ = ("__weakref__", "_value")
    __array_ufunc__ = None  # numpy hands `array + tensor` to the tensor

    def __init__(self, value: _core.Value) -> None:
        if not isinstance(value, _core.Value):
            raise DTypeError("a Tensor is made by af.input, af.parameter, af.constant or an operator")
        self._value = value

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each axis."""
        return tuple(self._value.shape)

    @property
    def dtype(self) -> str:
        """Element type: fp16, fp32, int32, uint8, bool, ..."""
        return self._value.dtype

    @property
    def op(self) -> str:
        """Name of the operator that it is a result of; ``input`` or ``const_array`` for what is none."""
        return self._value.op

    @property
    def srcs(self) -> list[Tensor]:
        """The tensors that it is made of."""
        return [Tensor(value) for value in self._value.srcs]

    @property
    def attrs(self) -> dict[str, Any]:
        """Settings of the operator."""
        return self._value.attrs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self._value.key == other._value.key

    def __hash__(self) -> int:
        return hash(self._value.key)

    def __repr__(self) -> str:
        return f"Tensor({self.op}, shape={self.shape}, dtype={self.dtype})"

    def __bool__(self) -> bool:
        raise DTypeError("a Tensor has no value before its program runs; use af.select for choices")

    def __len__(self) -> int:
        if not self.shape:
            raise DTypeError("a Tensor of rank 0 has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[index] for index in range(len(self)))

    def _apply(self, name: str, **attributes: Any) -> Tensor:
        return op(name, [self], **attributes)

    def _against(self, name: str, other: Any) -> Tensor:
        return op(name, [self, _like(other, self)])

    def _reduce(self, name: str, axes: Axes, keepdims: bool) -> Tensor:
        return op(name, [self], axes=_axes(axes, len(self.shape)), keep_dims=keepdims)

    # Arithmetic

    def __add__(self, other: Operand) -> Tensor:
        return op("add", [self, _like(other, self)])

    def __radd__(self, other: Operand) -> Tensor:
        return op("add", [_like(other, self), self])

    def __sub__(self, other: Operand) -> Tensor:
        return op("sub", [self, _like(other, self)])

    def __rsub__(self, other: Operand) -> Tensor:
        return op("sub", [_like(other, self), self])

    def __mul__(self, other: Operand) -> Tensor:
        return op("mul", [self, _like(other, self)])

    def __rmul__(self, other: Operand) -> Tensor:
        return op("mul", [_like(other, self), self])

    def __truediv__(self, other: Operand) -> Tensor:
        return op("real_div", [self, _like(other, self)])

    def __rtruediv__(self, other: Operand) -> Tensor:
        return op("real_div", [_like(other, self), self])

    def __pow__(self, other: Operand) -> Tensor:
        return op("pow", [self, _like(other, self)])

    def __rpow__(self, other: Operand) -> Tensor:
        return op("pow", [_like(other, self), self])

    def __neg__(self) -> Tensor:
        return op("mul", [self, _like(-1, self)])

    def __abs__(self) -> Tensor:
        return self.abs()

    def __matmul__(self, other: Operand) -> Tensor:
        return op("matmul", [self, constant(other)])

    def __rmatmul__(self, other: Operand) -> Tensor:
        return op("matmul", [constant(other), self])

    def __lt__(self, other: Operand) -> Tensor:
        return self.less(other)

    def __le__(self, other: Operand) -> Tensor:
        return self.less_equal(other)

    def __gt__(self, other: Operand) -> Tensor:
        return self.greater(other)

    def __ge__(self, other: Operand) -> Tensor:
        return self.greater_equal(other)

    def __getitem__(self, index: Any) -> Tensor:
        """Integers, slices, ``...`` and ``None``, as numpy."""
        items = index if isinstance(index, tuple) else (index,)
        if any(item is Ellipsis for item in items):
            at = next(place for place, item in enumerate(items) if item is Ellipsis)
            missing = len(self.shape) - sum(item is not None and item is not Ellipsis for item in items)
            items = items[:at] + (slice(None),) * max(missing, 0) + items[at + 1 :]
        begin: list[int] = []
        end: list[int] = []
        stride: list[int] = []
        gone: list[int] = []
        new: list[int] = []
        axis = 0
        for item in items:
            if item is None:
                new.append(axis - len(gone) + len(new))
                continue
            if axis >= len(self.shape):
                raise ArgumentError(f"{len(items)} indices for a tensor of shape {self.shape}")
            extent = self.shape[axis]
            if isinstance(item, slice):
                start, stop, step = item.indices(extent)
                if len(range(start, stop, step)) == 0:
                    raise ArgumentError(f"the slice of axis {axis} is empty; an extent is at least 1")
                if step < 0:
                    turned = self.reverse(axis)
                    backwards = slice(extent - 1 - start, extent - 1 - stop, -step)
                    place = next(place for place, other in enumerate(items) if other is item)
                    rest = (*items[:place], backwards, *items[place + 1 :])
                    return turned[rest]
            elif isinstance(item, (int, np.integer)) and not isinstance(item, bool):
                start = int(item) + (extent if item < 0 else 0)
                if not 0 <= start < extent:
                    raise IndexError(f"index {item} is outside of axis {axis} of extent {extent}")
                stop, step = start + 1, 1
                gone.append(axis)
            else:
                raise DTypeError(f"a tensor is indexed by integers and slices, not {type(item).__name__}")
            begin.append(start)
            end.append(min(stop, extent))
            stride.append(step)
            axis += 1
        taken = self
        if axis:
            tail = self.shape[axis:]
            begin, end, stride = begin + [0] * len(tail), end + list(tail), stride + [1] * len(tail)
            if all(step == 1 for step in stride):
                size = [stop - start for start, stop in zip(begin, end, strict=True)]
                if tuple(size) != self.shape:
                    taken = self.slice_by_size(begin, size)
            else:
                taken = op("slice_by_index", [self], begin=begin, end=end, stride=stride)
        if gone:
            taken = taken.squeeze(gone)
        return taken.expand_dims(new) if new else taken

    # What upstream calls otherwise than the operator table

    def adds(self, k: float) -> Tensor:
        """``self + k`` for a number ``k``."""
        return self + k

    def clip(self, lo: float, hi: float) -> Tensor:
        """Values held between two ends."""
        return op("clip", [self], alpha=lo, beta=hi)

    def clamp(self, lo: float, hi: float) -> Tensor:
        """The same as :meth:`clip`."""
        return self.clip(lo, hi)

    def pow(self, o: Operand) -> Tensor:
        """``self ** o``."""
        return self**o

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements under another shape; one extent may be -1."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], SupportsInt) else shape
        return op("reshape", [self], shape=_ints(wanted))

    def transpose(self, perm: Sequence[int]) -> Tensor:
        """The axes in another order."""
        return op("transpose", [self], perm=[axis % len(self.shape) for axis in _ints(perm)])

    def linear(self, W: Operand, bias: Operand = None) -> Tensor:
        """A dense layer with weights ``[out, in]``."""
        return op("linear", [self, constant(W), bias if bias is None else constant(bias)])

    def bmm_weight(self, W: Operand) -> Tensor:
        """A product with one constant matrix per batch, ``[batch, in, out]``."""
        return self @ W

    def prelu(self, alpha: Operand) -> Tensor:
        """``x`` above 0, ``alpha x`` below, one ``alpha`` per channel."""
        return op("prelu", [self, constant(alpha)])

    def max_pool(self, k: int, stride: int | None = None, pad: int = 0, ceil_mode: bool = False) -> Tensor:
        """The greatest value in each window of ``k`` by ``k``."""
        return op("max_pool", [self], **_window(self, k, stride, pad), ceil_mode=ceil_mode)

    def avg_pool(
        self, k: int, stride: int | None = None, pad: int = 0, ceil_mode: bool = False, exclude_pad: bool = False
    ) -> Tensor:
        """The mean of each window of ``k`` by ``k``."""
        settings = {"ceil_mode": ceil_mode, "exclude_padding_from_average": exclude_pad}
        return op("avg_pool", [self], **_window(self, k, stride, pad), **settings)

    def upsample(self, scale: int = 2) -> Tensor:
        """Each pixel repeated in height and width."""
        return op("upsample", [self], scale_factor=scale)

    def softmax(self, axis: int = -1) -> Tensor:
        """Exponentials divided by their sum along an axis."""
        return op("softmax", [self], axis=axis)

    def cumsum(self, axis: int = -1) -> Tensor:
        """Sums of all elements up to each one along an axis."""
        return op("cumsum", [self], axis=axis)

    def argmax(self, axis: int = -1) -> Tensor:
        """Place of the greatest element along an axis, as fp16."""
        return op("argmax", [self], axis=axis)

    def flatten2d(self, axis: int = 1) -> Tensor:
        """Two axes: those before ``axis`` merged, and the others merged."""
        return op("flatten2d", [self], axis=axis)

    def slice_by_size(self, begin: Sequence[int], size: Sequence[int]) -> Tensor:
        """The block that starts at ``begin`` and has shape ``size``."""
        return op("slice_by_size", [self], begin=_ints(begin), size=_ints(size))

    def tile(self, reps: Sequence[int]) -> Tensor:
        """Repeated along each axis."""
        return op("tile", [self], reps=_ints(reps))

    def squeeze(self, axes: Axes) -> Tensor:
        """Without some axes of extent 1."""
        return op("squeeze", [self], axes=_axes(axes, len(self.shape)))

    def expand_dims(self, axes: Axes) -> Tensor:
        """With axes of extent 1 where axes of the result say."""
        rank = len(self.shape) + len(_ints(axes))
        return op("expand_dims", [self], axes=_axes(axes, rank))

    def reverse(self, axes: Axes) -> Tensor:
        """Backwards along axes."""
        return op("reverse", [self], axes=_axes(axes, len(self.shape)))

    # Normalisation

    def l2_norm(self, axis: int = -1, eps: float = 1e-12) -> Tensor:
        """Divided by its Euclidean length along an axis."""
        return op("l2_norm", [self], axis=axis, epsilon=eps)

    def rms_norm(self, gamma: Operand, eps: float = 1e-05) -> Tensor:
        """Divided by its root mean square along the last axis, times ``gamma``."""
        return op("rms_norm", [self, _vector(gamma)], axis=-1, epsilon=eps)

    def layer_norm(self, gamma: Operand, beta: Operand, eps: float = 1e-05) -> Tensor:
        """Mean 0 and variance 1 along the last axis, times ``gamma``, plus ``beta``."""
        return op("layer_norm", [self, _vector(gamma), _vector(beta)], axes=[-1], epsilon=eps)

    def group_norm(self, gamma: Operand, beta: Operand, num_groups: int, eps: float = 1e-05) -> Tensor:
        """Mean 0 and variance 1 in each group of channels."""
        return op("group_norm", [self, _vector(gamma), _vector(beta)], num_groups=num_groups, epsilon=eps)

    def channel_layer_norm(self, gamma: Operand, beta: Operand, eps: float = 1e-05) -> Tensor:
        """Mean 0 and variance 1 over the channels of each place."""
        return op("channel_layer_norm", [self, _vector(gamma), _vector(beta)], epsilon=eps)


def op(name: str, inputs: Sequence[Any], **attributes: Any) -> Tensor:
    """The first result of an operator of the table."""
    return ops(name, inputs, **attributes)[0]


def ops(name: str, inputs: Sequence[Any], **attributes: Any) -> list[Tensor]:
    """All results of an operator of the table; an input is a tensor, a list of tensors, or None."""
    lists = []
    for given in inputs:
        several = given if isinstance(given, (list, tuple)) else [] if given is None else [given]
        lists.append([_value(tensor) for tensor in several])
    return [Tensor(value) for value in _core.apply(name, lists, attributes)]


def constant(value: Operand, dtype: str | None = None) -> Tensor:
    """A constant from anything that numpy makes an array of; a tensor stays as it is."""
    return value if isinstance(value, Tensor) else Tensor(_core.constant(value, dtype))


def _value(tensor: Any) -> _core.Value:
    if not isinstance(tensor, Tensor):
        raise DTypeError(f"takes a Tensor, got {type(tensor).__name__}")
    return tensor._value


def _like(value: Operand, other: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else constant(value, other.dtype if other.dtype != "bool" else None)


def _vector(value: Operand) -> Tensor | None:
    if value is None or isinstance(value, Tensor):
        return value
    return constant(np.asarray(value).reshape(-1))


def _ints(values: Any) -> list[int]:
    try:
        return [int(values)] if isinstance(values, SupportsInt) else [int(value) for value in values]
    except (TypeError, ValueError, OverflowError) as error:
        raise DTypeError(f"takes integers, got {values!r:.80}") from error


def _axes(axes: Axes, rank: int) -> list[int]:
    return [axis + rank if -rank <= axis < 0 else axis for axis in _ints(axes)]


def _window(x: Tensor, k: int, stride: int | None, pad: int) -> dict[str, Any]:
    """Square windows over the spatial axes."""
    count = max(len(x.shape) - 2, 1)
    steps = None if stride is None else _ints(stride) * count
    return {"kernel_sizes": _ints(k) * count, "strides": steps, "pad": _ints(pad) * (2 * count)}
