"""Writes the benchmark models as ONNX: ResNet-18 and ViT-B/16 at batch 1, MiniLM at 128 tokens.

    onnx_models.py OUTPUT_FOLDER --torchvision FOLDER --minilm FOLDER

The first two come from the safetensors that torchvision_models.py wrote, through PyTorch's exporter.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import minilm_graph
import onnx
import torch
import torchvision
from safetensors.torch import load_file

TOKENS = 128


def export(name: str, weights: Path, target: Path) -> None:
    """One torchvision model with constants folded; refuses weights that do not fit it."""
    model = getattr(torchvision.models, name)(weights=None)
    model.load_state_dict(load_file(weights), strict=True)
    # The fused attention of torch has no ONNX form.
    torch.backends.mha.set_fastpath_enabled(False)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.eval(),
            (torch.zeros(1, 3, 224, 224),),
            str(target),
            input_names=["image"],
            output_names=["logits"],
            opset_version=17,
            dynamo=False,
        )


def main() -> None:
    """Writes each file that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torchvision", type=Path, required=True, help="safetensors folder")
    parser.add_argument("--minilm", type=Path, required=True, help="Hugging Face folder")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in ("resnet18", "vit_b_16", "minilm_128"):
        target = arguments.folder / f"{name}.onnx"
        if target.exists():
            continue
        temporary = arguments.folder / f"{name}.{os.getpid()}"
        if name == "minilm_128":
            onnx.save(minilm_graph.build(arguments.minilm, 1, TOKENS), temporary)
        else:
            export(name, arguments.torchvision / f"{name}.safetensors", temporary)
        temporary.replace(target)
        print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
