"""Faults: each kind has its class, says what to do, and nothing ends the interpreter."""

import random
import time

import aneforge as af
import numpy as np
import pytest

CASES = {
    "shapes": (lambda: af.input((2, 3)) + af.input((4, 5)), af.ShapeError, ValueError),
    "rank": (lambda: af.input((1,) * 6), af.LimitError, ValueError),
    "type": (lambda: af.input((2,), "float99"), af.ArgumentError, ValueError),
    "axis": (lambda: af.input((2, 3)).softmax("last"), af.DTypeError, TypeError),
    "range": (lambda: af.constant([1e9]), af.LimitError, ValueError),
    "device": (lambda: af.compile(af.input((2,)) + 1, device="gpu"), af.ArgumentError, ValueError),
    "not here": (lambda: af.compile(af.input((2,)) + 1, device="fake"), af.DeviceError, RuntimeError),
    "target": (lambda: af.compile(af.input((2,)) + 1, target="m99"), af.ArgumentError, ValueError),
    "format": (lambda: af.compile(af.input((2,)) + 1, compress="zip"), af.ArgumentError, ValueError),
    "gate": (
        lambda: af.compile(af.input((2,)) + 1, compress="int4", compress_atol=0.1),
        af.UnsupportedError,
        NotImplementedError,
    ),
    "risks": (lambda: af.compile(af.input((2,)) + 1, validate=True), af.UnsupportedError, NotImplementedError),
    "objects": (lambda: af.constant([object()]), af.DTypeError, TypeError),
    "absent": (lambda: af.load_llm, af.UnsupportedError, NotImplementedError),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fault_has_the_class_of_its_kind(name, monkeypatch):
    monkeypatch.delenv("ANEFORGE_FAKE_APPLE", raising=False)
    fault, kind, builtin = CASES[name]
    with pytest.raises(kind) as caught:
        fault()
    assert isinstance(caught.value, builtin)
    assert isinstance(caught.value, af.Error)
    assert str(caught.value)


def test_a_wrong_call_says_what_the_program_takes():
    net = af.compile(af.input((2, 3), name="pixels") + 1, device="cpu")
    with pytest.raises(af.ArgumentError, match="pixels"):
        net()
    with pytest.raises(af.ShapeError, match=r"pixels.*\[2, 3\].*\[3, 2\]"):
        net(np.zeros((3, 2), np.float32))
    with pytest.raises(af.ArgumentError, match="pixels"):
        net(image=np.zeros((2, 3), np.float32))
    net.release()
    with pytest.raises(af.DeviceError, match="released"):
        net(np.zeros((2, 3), np.float32))


def test_random_arguments_return_or_raise():
    random.seed(11)
    x = af.input((2, 3))
    pool = [x, x.mean(-1), None, -1, 0, 3, 1 << 70, 1.5, float("nan"), "relu", (), (1, 2), [x, x], {}, b"",
            np.zeros((3, 2), np.float32), np.zeros(0), np.array("a"), object(), True, [[1], [2, 3]]]  # fmt: skip
    skipped = {"compile", "load_program", "devices"}
    functions = [getattr(af, name) for name in af.__all__ if name not in skipped and callable(getattr(af, name))]
    methods = [getattr(x, name) for name in dir(x) if not name.startswith("_") and callable(getattr(x, name))]
    for _ in range(10_000):
        function, arguments = random.choice(functions + methods), random.choices(pool, k=random.randrange(5))
        start = time.thread_time()
        try:
            function(*arguments)
        except Exception as error:
            assert type(error).__name__ != "PanicException", error
        assert time.thread_time() - start < 1, f"{function.__name__}{arguments}"
