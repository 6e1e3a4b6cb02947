"""What is released is gone."""

import pathlib

import aneforge as af
import numpy as np
import pytest


def resident() -> int:
    """Bytes of this process in memory."""
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def test_a_thousand_programs_leave_less_than_five_megabytes():
    if not pathlib.Path("/proc/self/statm").exists():
        pytest.skip("the system tells no resident memory this way")
    weights = np.ones((64, 64), np.float16)
    data = np.ones((4, 64), np.float32)

    def cycle() -> None:
        x = af.input((4, 64))
        with af.compile((x @ weights).relu() + 1, device="cpu") as net:
            assert net(data)[0, 0] == 65

    for _ in range(200):
        cycle()
    before = resident()
    for _ in range(1000):
        cycle()
    assert resident() - before < 5 << 20
