"""Sentence embeddings by onnxruntime, to compare ours with.

    minilm_reference.py MODEL_FOLDER --sentences FILE --output FILE [--ids FILE] [--onnx FILE]

FILE of sentences: a JSON array of strings, or text with one sentence a line. The output is [n, 384]
float32, as .npy, or as raw little-endian values for any other suffix. Each sentence runs alone and
unpadded, so the reference knows nothing of buckets, batches or masks. Results are cached by the hash
of all inputs: a repeated run imports neither numpy nor onnxruntime.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

MAX_TOKENS = 512  # rows of the position table; the tokenizer file's own 128 is overridden


def read_sentences(path: Path) -> list[str]:
    """Sentences from JSON or from lines of text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        sentences = json.loads(text)
        if not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
            sys.exit(f"{path}: expected a JSON array of strings")
        return sentences
    return text.removesuffix("\n").split("\n")


def cache_key(model: Path, sentences: list[str]) -> str:
    """A hash of everything that the answer depends on."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in (
        Path(__file__),
        here / "minilm_graph.py",
        model / "config.json",
        model / "tokenizer.json",
        model / "model.safetensors",
    ):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update(json.dumps(sentences).encode())
    return digest.hexdigest()[:24]


def tokenize(model: Path, sentences: list[str]) -> list[list[int]]:
    """Token ids of each sentence, cut at 512 and never padded."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return [tokenizer.encode(sentence).ids for sentence in sentences]


def embed(model: Path, ids: list[list[int]], onnx_path: Path) -> bytes:
    """Embeddings as the bytes of an .npy file; leaves the graph at `onnx_path`."""
    import io

    import minilm_graph
    import numpy as np
    import onnx
    import onnxruntime

    temporary = onnx_path.with_name(f"{onnx_path.name}.{os.getpid()}")
    onnx.save(minilm_graph.build(model), temporary)
    temporary.replace(onnx_path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(
        str(onnx_path), options, providers=["CPUExecutionProvider"]
    )
    rows = []
    for row in ids:
        tokens = np.array([row], np.int64)
        feeds = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        rows.append(session.run(["embedding"], feeds)[0][0])
    buffer = io.BytesIO()
    np.save(buffer, np.stack(rows).astype("<f4"))
    return buffer.getvalue()


def write(path: Path, data: bytes) -> None:
    """Writes through a temporary name, so that no half of a file is ever seen."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)


def main() -> None:
    """Parses the command line and answers from the cache where it can."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, help="folder in Hugging Face layout")
    parser.add_argument("--sentences", type=Path, required=True, help=".json array or text lines")
    parser.add_argument("--output", type=Path, required=True, help=".npy, or raw float32")
    parser.add_argument("--ids", type=Path, help="also write the token ids as JSON")
    parser.add_argument("--onnx", type=Path, help="also keep the ONNX graph here")
    parser.add_argument("--cache", type=Path, default=Path(".cache/reference"))
    arguments = parser.parse_args()

    sentences = read_sentences(arguments.sentences)
    arguments.cache.mkdir(parents=True, exist_ok=True)
    key = cache_key(arguments.model, sentences)
    rows, ids = arguments.cache / f"{key}.npy", arguments.cache / f"{key}.json"
    if not (rows.exists() and ids.exists()) or arguments.onnx:
        tokens = tokenize(arguments.model, sentences)
        graph = arguments.onnx or arguments.cache / f"{key}.onnx"
        write(rows, embed(arguments.model, tokens, graph))
        write(ids, json.dumps(tokens).encode())
        if not arguments.onnx:
            graph.unlink()
    if arguments.ids:
        shutil.copyfile(ids, arguments.ids)
    if arguments.output.suffix == ".npy":
        shutil.copyfile(rows, arguments.output)
    else:
        # An .npy file is a header of the length that it states, then the values.
        data = rows.read_bytes()
        write(arguments.output, data[10 + int.from_bytes(data[8:10], "little") :])


if __name__ == "__main__":
    main()
