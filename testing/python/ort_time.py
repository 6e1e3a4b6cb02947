"""Times an ONNX model in onnxruntime, one inference per request, so that a benchmark can interleave it.

    ort_time.py MODEL.onnx [--threads 2]

Protocol, one line each: it prints "ready <milliseconds to load>"; for each "run" on standard input it
runs once and prints "ms <milliseconds>"; at "quit" or the end of input it prints
"peak_rss_kib <n>" and ends. Inputs are seeded: normal floats, token ids below 1000, masks of ones.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np
import onnxruntime


def feeds_for(session: onnxruntime.InferenceSession) -> dict[str, np.ndarray]:
    """One array for each declared input; all dimensions must be fixed."""
    rng = np.random.default_rng(0)
    feeds = {}
    for port in session.get_inputs():
        if not all(isinstance(size, int) for size in port.shape):
            sys.exit(f"input {port.name} has a dynamic shape {port.shape}")
        if port.type == "tensor(int64)":
            mask = "mask" in port.name
            value = np.ones(port.shape) if mask else rng.integers(1, 1000, port.shape)
            feeds[port.name] = value.astype(np.int64)
        else:
            feeds[port.name] = rng.standard_normal(port.shape).astype(np.float32)
    return feeds


def main() -> None:
    """Loads, then serves requests."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    options.inter_op_num_threads = 1
    # Idle threads must not spin while the other side of an interleaved run is being timed.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    begin = time.perf_counter()
    session = onnxruntime.InferenceSession(
        arguments.model, options, providers=["CPUExecutionProvider"]
    )
    feeds = feeds_for(session)
    print(f"ready {(time.perf_counter() - begin) * 1e3:.1f}", flush=True)
    for line in sys.stdin:
        if line.strip() != "run":
            break
        begin = time.perf_counter()
        session.run(None, feeds)
        print(f"ms {(time.perf_counter() - begin) * 1e3:.4f}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, Linux kibibytes
    print(f"peak_rss_kib {peak // 1024 if sys.platform == 'darwin' else peak}", flush=True)


if __name__ == "__main__":
    main()
