"""A program as people write them, for type checkers."""

import aneforge as af
import numpy as np

x = af.input((2, 3), name="x")
w = af.constant(np.ones((4, 3), np.float16))
y: af.Tensor = (1 - x).relu().linear(w)[:, 1:].softmax() + af.maximum(x.mean(-1), 0.5)
shape: tuple[int, ...] = y.shape
with af.compile({"y": y}, device="cpu", target="m1") as net:
    found = net(np.zeros((2, 3), np.float32))
    view = net.input_view("x")
    print(net.device, net.n_ops, view.shape, len(net.mil), found)
