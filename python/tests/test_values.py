"""Values against numpy and PyTorch, through compile and call on `cpu`."""

import threading

import aneforge as af
import numpy as np
import pytest

RNG = np.random.default_rng(7)
X = RNG.uniform(0.2, 1.5, (2, 6)).astype(np.float32)
UNARY = {
    "abs": np.abs, "atan": np.arctan, "ceil": np.ceil, "cos": np.cos, "exp": np.exp, "exp2": np.exp2, "floor": np.floor,
    "log": np.log, "relu": lambda x: np.maximum(x, 0), "sign": np.sign, "sin": np.sin, "sqrt": np.sqrt,
    "square": np.square, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "inverse": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x),
    "silu": lambda x: x / (1 + np.exp(-x)), "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)), "relu6": lambda x: np.clip(x, 0, 6),
}  # fmt: skip
REDUCE = {
    "amax": np.max, "amin": np.min, "mean": np.mean, "sum": np.sum,
    "l1_norm": lambda x, **k: np.sum(np.abs(x), **k), "sum_square": lambda x, **k: np.sum(x * x, **k),
    "log_sum": lambda x, **k: np.log(np.sum(x, **k)),
    "reduce_log_sum_exp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
}  # fmt: skip


def run(build, *arrays):
    inputs = [af.input(array.shape) for array in arrays]
    with af.compile(build(*inputs), device="cpu") as net:
        return net(*arrays)


@pytest.mark.parametrize("name", UNARY)
def test_an_operator_of_one_tensor(name):
    np.testing.assert_allclose(run(lambda x: getattr(x, name)(), X), UNARY[name](X), rtol=4e-3, atol=2e-3)


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("keep", [True, False])
def test_a_reduction(name, keep):
    found = run(lambda x: getattr(x, name)(-1, keepdims=keep), X)
    np.testing.assert_allclose(found, REDUCE[name](X, axis=-1, keepdims=keep), rtol=4e-3, atol=2e-3)


ARITHMETIC = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: 1 - x,
    lambda x, y: 2 / x, lambda x, y: -x + 3, lambda x, y: x**2, lambda x, y: 2**x, lambda x, y: y + x,
]  # fmt: skip


@pytest.mark.parametrize("form", range(len(ARITHMETIC)))
def test_operators_on_either_side_of_tensors_arrays_and_numbers(form):
    y = RNG.uniform(0.5, 1.5, X.shape).astype(np.float32)
    build = ARITHMETIC[form]
    found = run(build, X, y) if form < 4 else run(lambda a: build(a, y), X)
    np.testing.assert_allclose(found, build(X, y), rtol=4e-3, atol=2e-3)


INDICES = [np.s_[0], np.s_[:, 1:4], np.s_[..., -1], np.s_[:, ::2], np.s_[:, ::-1], np.s_[None, 1], np.s_[:, 4:0:-2]]


@pytest.mark.parametrize("at", range(len(INDICES)))
def test_indexing_is_numpys(at):
    found = run(lambda x: x[INDICES[at]] * 1, X)
    np.testing.assert_allclose(found, X[INDICES[at]], rtol=2e-3)


def test_layers_against_pytorch():
    torch = pytest.importorskip("torch")
    x = RNG.normal(size=(1, 4, 8, 8)).astype(np.float32)
    w = RNG.normal(size=(6, 2, 3, 3)).astype(np.float32)
    b = RNG.normal(size=6).astype(np.float32)
    wanted = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), torch.tensor(b), 2, 1, 1, 2)
    np.testing.assert_allclose(run(lambda t: af.conv(t, w, 2, 1, 1, 2, b), x), wanted.numpy(), rtol=1e-2, atol=2e-2)
    wanted = torch.nn.functional.max_pool2d(torch.tensor(x), 3, 2, 1)
    np.testing.assert_allclose(run(lambda t: t.max_pool(3, 2, 1), x), wanted.numpy(), rtol=2e-3, atol=2e-3)
    wanted = torch.nn.functional.avg_pool2d(torch.tensor(x), 2)
    np.testing.assert_allclose(run(lambda t: t.avg_pool(2), x), wanted.numpy(), rtol=4e-3, atol=2e-3)
    g, h = RNG.normal(size=(2, 4)).astype(np.float32)
    wanted = torch.nn.functional.group_norm(torch.tensor(x), 2, torch.tensor(g), torch.tensor(h))
    np.testing.assert_allclose(run(lambda t: t.group_norm(g, h, 2), x), wanted.numpy(), rtol=1e-2, atol=2e-2)


def test_attention_against_numpy():
    x = RNG.normal(size=(5, 8)).astype(np.float32)
    w = RNG.normal(size=(4, 8, 8)).astype(np.float32) / 3

    def softmax(s):
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    q, k, v = (np.transpose((x @ m.T).reshape(5, 2, 4), (1, 0, 2)) for m in w[:3])
    mixed = softmax(q @ np.transpose(k, (0, 2, 1)) / 2) @ v
    wanted = np.transpose(mixed, (1, 0, 2)).reshape(5, 8) @ w[3].T
    found = run(lambda t: af.mha(t, w[0], None, w[1], None, w[2], None, w[3], None, 2), x)
    np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=2e-2)
    found = run(lambda t: af.einsum("ij,kj->ik", t, w[0]), x)
    np.testing.assert_allclose(found, x @ w[0].T, rtol=2e-2, atol=2e-2)


def test_gradients_are_those_of_the_closed_form():
    x, w = af.input((3, 4)), af.parameter(RNG.normal(size=(4, 2)))
    slope = af.backward((x @ w).square().mean((0, 1)), [w], loss_scale=4.0)[w]
    assert slope.shape == (4, 2)
    values = RNG.normal(size=(3, 4)).astype(np.float32)
    weights = RNG.normal(size=(4, 2)).astype(np.float32)
    x2, w2 = af.input((3, 4)), af.input((4, 2))
    slope = af.backward((x2 @ w2).square().mean((0, 1)), [w2], loss_scale=4.0)[w2]
    found = af.compile(slope, device="cpu")(values, weights)
    np.testing.assert_allclose(found, 4 * 2 * values.T @ (values @ weights) / 6, rtol=2e-2, atol=2e-2)


def test_the_upstream_quickstart_runs_on_the_automatic_device():
    x = af.input((1, 3, 8, 8))
    w = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)
    net = af.compile(af.conv(x, w, pad=1).relu().mean((2, 3)), int8=True)
    assert net.device in ("cpu", "ane")
    data = RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)
    exact = af.compile(af.conv(x, w, pad=1).relu().mean((2, 3)), device="reference")
    np.testing.assert_allclose(net(data), exact(data), rtol=3e-2, atol=3e-2)


def test_several_outputs_names_and_what_is_saved(tmp_path):
    a, b = af.input((2, 3), name="a"), af.input((2, 3), name="b")
    net = af.compile({"sum": a + b, "less": a < b}, device="cpu")
    ones, twos = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float16)
    found = net(b=twos, a=ones)
    assert found["sum"].tolist() == [[3.0] * 3] * 2
    assert found["less"].all()
    assert found["less"].dtype == bool
    assert [out.tolist() for out in af.compile([a, a + a], device="cpu")(ones)] == [ones.tolist(), (2 * ones).tolist()]
    assert "less" in net.mil
    assert net.n_ops >= 2
    net.save(tmp_path / "net")
    # Like any folder, not a temporary one's owner alone.
    (tmp_path / "any").mkdir()
    assert (tmp_path / "net").stat().st_mode == (tmp_path / "any").stat().st_mode
    again = af.load_program(tmp_path / "net", device="reference")
    assert again(ones, twos)["sum"].tolist() == found["sum"].tolist()
    half = af.compile(a + b, device="cpu", dtype="native")
    assert half(ones, twos).dtype == np.float16


def test_views_are_the_programs_own_memory_and_outlive_it():
    x = af.input((2, 3))
    net = af.compile(x * 2, device="cpu")
    view, result = net.input_view(), net.output_view()
    assert view.ctypes.data == net.input_view().ctypes.data
    assert result.ctypes.data == net.output_view().ctypes.data
    view[...] = X[:, :3]
    net.execute()
    np.testing.assert_allclose(result, 2 * X[:, :3].astype(np.float16), rtol=2e-3)
    net.release()
    del net
    view[...] = 3
    assert (view == 3).all()


def test_eight_threads_share_a_program():
    x = af.input((16, 16))
    net = af.compile((x @ np.eye(16, dtype=np.float32)) * 2, device="cpu")
    wrong = []

    def work(number):
        data = np.full((16, 16), number, np.float32)
        for _ in range(200):
            if not (net(data) == 2 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_chain_of_a_hundred_thousand_nodes_goes_away_without_a_stack():
    x = af.input((1,))
    for _ in range(100_000):
        x = -x
    del x
