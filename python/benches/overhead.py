"""Time of one call through Python on `null`: a 16-element fp32 array in and out, median of 100,000 calls."""

import statistics
import time

import aneforge as af
import numpy as np

net = af.compile(af.input((16,)) * 2, device="null")
data = np.zeros(16, np.float32)
times = []
for _ in range(100_000):
    start = time.perf_counter_ns()
    net(data)
    times.append(time.perf_counter_ns() - start)
print(f"{statistics.median(times) / 1000:.2f} microseconds")
