"""Names of the PyPI package aneforge 0.4 whose ground is missing here, each with the reason."""

from typing import Any

from ._errors import UnsupportedError

_CATALOG = "the operator catalog is not bound to Python yet; `aneforge ops` prints it"
_TUNER = "choosing by measurement is not bound to Python yet"
_COST = "the cost model is not bound to Python yet; `aneforge estimate` prints it"
_TRAIN = "trainers are not bound to Python yet; `aneforge train` and the Rust crate have them"
_MODELS = "model loaders are not bound to Python yet; `aneforge embed` and the Rust crate have some"
_LLM = "language models are not here yet"
_ONNX = "the ONNX importer is not here yet"
_ONE = "nothing is refused for earlier failures, and every program is a Model"
_MATHS = "this module is not here yet"

ABSENT: dict[str, str] = {
    **dict.fromkeys("OP_CATALOG op_info device_status is_native ops_on min_native_family".split(), _CATALOG),
    **dict.fromkeys("walled_everywhere categories".split(), _CATALOG),
    **dict.fromkeys("tune tune_precision tune_attention attention_tiles reduce_sum_to_matmul".split(), _TUNER),
    **dict.fromkeys("estimate estimate_provenance precision_risk project_peak".split(), _COST),
    **dict.fromkeys(
        "reset_compile_breaker SegmentedModel".split(),
        _ONE,
    ),
    **dict.fromkeys("paired Paired paired_subtract".split(), "paired fp16 is not bound to Python yet"),
    **dict.fromkeys("backward_from SGD Adam adam_step Trainer UnrolledTrainer CheckpointedStack".split(), _TRAIN),
    **dict.fromkeys("softmax_cross_entropy conv_param conv2d conv_block cifar_cnn group_norm_train".split(), _TRAIN),
    **dict.fromkeys("load load_resnet load_resnet18 load_vit Encoder Vision ViT".split(), _MODELS),
    **dict.fromkeys("load_clip load_whisper CLIP Whisper".split(), _MODELS),
    **dict.fromkeys("load_gpt2 GPT2 LlamaConfig LlamaPrefill load_llm rope rope_tables prefill_block".split(), _LLM),
    **dict.fromkeys("load_onnx onnx_to_tensor onnx_to_features".split(), _ONNX),
    **dict.fromkeys("fft linalg special dsp".split(), _MATHS),
}


def __getattr__(name: str) -> Any:
    if name in ABSENT:
        raise UnsupportedError(f"aneforge.{name}: {ABSENT[name]}")
    raise AttributeError(f"module 'aneforge' has no attribute {name!r}")
