"""The MiniLM sentence encoder written down as an ONNX graph, from the published weights alone.

An oracle for the Rust model: it shares the safetensors file with it and nothing else. Shapes are
B sentences, S tokens, H heads, D = 384 features. Dropout is absent, as at inference.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17  # the first with LayerNormalization
# BERT masks keys by adding the lowest float; any score this low has weight 0 after the softmax.
MASKED = -3.0e38


def load_safetensors(path: Path) -> dict[str, np.ndarray]:
    """All F32 tensors of a safetensors file, mapped rather than read."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = data[begin:end].view("<f4").reshape(entry["shape"])
    return tensors


class GraphWriter:
    """Collects nodes and initialisers; each method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.names: set[str] = set()

    def constant(self, name: str, value: np.ndarray) -> str:
        """An initialiser, stored once per name."""
        if name not in self.names:
            self.names.add(name)
            self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def ints(self, *values: int) -> str:
        """A one-dimensional int64 constant."""
        name = "ints_" + "_".join(str(value) for value in values).replace("-", "minus")
        return self.constant(name, np.array(values, np.int64))

    def scalar(self, value: float) -> str:
        """A float32 constant of rank 0."""
        return self.constant(f"scalar_{value!r}", np.array(value, np.float32))

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Adds one operator with a single result."""
        result = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [result], result, **attributes))
        return result


class MiniLm:
    """Builds the graph layer by layer."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = load_safetensors(folder / "model.safetensors")
        self.writer = GraphWriter()
        self.heads = self.config["num_attention_heads"]
        self.width = self.config["hidden_size"]
        if self.config["hidden_act"] != "gelu":
            raise SystemExit(f"hidden_act {self.config['hidden_act']!r} is not the erf gelu")

    def weight(self, name: str) -> str:
        """A weight under its own name."""
        return self.writer.constant(name, self.weights[name])

    def linear(self, x: str, name: str) -> str:
        """x W^T + b; the transposed weight is stored."""
        transposed = self.writer.constant(f"{name}.weight.T", self.weights[f"{name}.weight"].T)
        product = self.writer.node("MatMul", x, transposed)
        return self.writer.node("Add", product, self.weight(f"{name}.bias"))

    def layer_norm(self, x: str, name: str) -> str:
        """Over the last axis, with the file's own epsilon (1e-12)."""
        return self.writer.node(
            "LayerNormalization",
            x,
            self.weight(f"{name}.weight"),
            self.weight(f"{name}.bias"),
            axis=-1,
            epsilon=self.config["layer_norm_eps"],
        )

    def gelu(self, x: str) -> str:
        """x (1 + erf(x / sqrt 2)) / 2."""
        writer = self.writer
        inner = writer.node("Erf", writer.node("Div", x, writer.scalar(float(np.sqrt(2.0)))))
        grown = writer.node("Mul", x, writer.node("Add", inner, writer.scalar(1.0)))
        return writer.node("Mul", grown, writer.scalar(0.5))

    def embeddings(self) -> str:
        """Word, position and (all zero) segment embeddings, normalised."""
        writer = self.writer
        words = writer.node("Gather", self.weight("embeddings.word_embeddings.weight"), "input_ids")
        length = writer.node("Shape", "input_ids", start=1, end=2)
        positions = writer.node(
            "Slice",
            self.weight("embeddings.position_embeddings.weight"),
            writer.ints(0),
            length,
            writer.ints(0),
        )
        segment = writer.constant(
            "segment_0", self.weights["embeddings.token_type_embeddings.weight"][0]
        )
        total = writer.node("Add", writer.node("Add", words, positions), segment)
        return self.layer_norm(total, "embeddings.LayerNorm")

    def attention(self, x: str, bias: str, prefix: str) -> str:
        """softmax(Q K^T / sqrt(D / H) + bias) V, then the output projection."""
        writer = self.writer
        split = writer.ints(0, 0, self.heads, self.width // self.heads)

        def heads(name: str, permutation: list[int]) -> str:
            projected = self.linear(x, f"{prefix}.self.{name}")
            shaped = writer.node("Reshape", projected, split)
            return writer.node("Transpose", shaped, perm=permutation)

        query = heads("query", [0, 2, 1, 3])
        key = heads("key", [0, 2, 3, 1])
        value = heads("value", [0, 2, 1, 3])
        scale = writer.scalar(float(np.sqrt(self.width // self.heads)))
        scores = writer.node("Div", writer.node("MatMul", query, key), scale)
        weights = writer.node("Softmax", writer.node("Add", scores, bias), axis=-1)
        mixed = writer.node("Transpose", writer.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        joined = writer.node("Reshape", mixed, writer.ints(0, 0, self.width))
        return self.linear(joined, f"{prefix}.output.dense")

    def layer(self, x: str, bias: str, index: int) -> str:
        """One post-norm transformer layer."""
        writer, prefix = self.writer, f"encoder.layer.{index}"
        attended = writer.node("Add", x, self.attention(x, bias, f"{prefix}.attention"))
        x = self.layer_norm(attended, f"{prefix}.attention.output.LayerNorm")
        grown = self.gelu(self.linear(x, f"{prefix}.intermediate.dense"))
        added = writer.node("Add", x, self.linear(grown, f"{prefix}.output.dense"))
        return self.layer_norm(added, f"{prefix}.output.LayerNorm")

    def pool(self, x: str, mask: str) -> str:
        """Mean over the unmasked tokens, scaled to length 1."""
        writer = self.writer
        column = writer.node("Unsqueeze", mask, writer.ints(2))
        total = writer.node("ReduceSum", writer.node("Mul", x, column), writer.ints(1), keepdims=0)
        count = writer.node("ReduceSum", column, writer.ints(1), keepdims=0)
        mean = writer.node("Div", total, count)
        norm = writer.node("ReduceL2", mean, axes=[1], keepdims=1)
        return writer.node("Div", mean, writer.node("Max", norm, writer.scalar(1e-12)))

    def build(self, batch: int | None, length: int | None) -> onnx.ModelProto:
        """The whole model; `None` leaves a dimension dynamic."""
        writer = self.writer
        mask = writer.node("Cast", "attention_mask", to=TensorProto.FLOAT)
        hidden = writer.node("Sub", writer.scalar(1.0), mask)
        bias = writer.node(
            "Unsqueeze", writer.node("Mul", hidden, writer.scalar(MASKED)), writer.ints(1, 2)
        )
        x = self.embeddings()
        for index in range(self.config["num_hidden_layers"]):
            x = self.layer(x, bias, index)
        result = self.pool(x, mask)
        writer.nodes.append(helper.make_node("Identity", [result], ["embedding"], "embedding"))
        shape = [
            batch if batch is not None else "batch",
            length if length is not None else "length",
        ]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape)
            for name in ("input_ids", "attention_mask")
        ]
        outputs = [
            helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [shape[0], self.width])
        ]
        graph = helper.make_graph(writer.nodes, "minilm", inputs, outputs, writer.initializers)
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
        onnx.checker.check_model(model)
        return model


def build(folder: Path, batch: int | None = None, length: int | None = None) -> onnx.ModelProto:
    """The encoder of a Hugging Face folder as an ONNX model of (input_ids, attention_mask)."""
    return MiniLm(folder).build(batch, length)
