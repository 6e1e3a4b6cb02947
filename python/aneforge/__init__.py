"""Compute on the Apple Neural Engine without Core ML, and anywhere else with the same program.

>>> import aneforge as af, numpy as np
>>> x = af.input((1, 4))
>>> net = af.compile((x * 2 + 1).relu(), device="cpu")
>>> net(np.array([[-1, 0, 1, 2]], np.float32)).tolist()
[[0.0, 1.0, 3.0, 5.0]]
"""

from ._absent import ABSENT
from ._absent import __getattr__ as __getattr__
from ._errors import *
from ._functions import *
from ._functions import input, sort
from ._program import Model, compile, devices, load_program
from ._tensor import Tensor, constant

__all__ = [
    "ABSENT",
    "ArgumentError",
    "CompileBackoffError",
    "CompileError",
    "CrossChipFP16Warning",
    "DTypeError",
    "DeviceError",
    "DispatchFloorWarning",
    "Error",
    "LimitError",
    "Model",
    "PrecisionWarning",
    "ShapeError",
    "Tensor",
    "UnsupportedError",
    "affine",
    "backward",
    "batch_norm",
    "batch_to_space",
    "channel_to_space",
    "compile",
    "concat",
    "constant",
    "conv",
    "conv_transpose",
    "cost_volume",
    "crop",
    "cross_attention",
    "cross_correlation",
    "cross_product",
    "depth_to_space",
    "devices",
    "dynamic_conv",
    "dynamic_slice",
    "einsum",
    "einsum_native",
    "flatten",
    "fps",
    "gather",
    "geglu",
    "image_input",
    "input",
    "input_view",
    "instance_norm",
    "load_program",
    "local_response_norm",
    "lrn",
    "maximum",
    "mha",
    "minimum",
    "minmax_norm",
    "mse",
    "parameter",
    "pixel_shuffle",
    "pixel_unshuffle",
    "radius_search",
    "resize_bilinear",
    "resize_nearest_neighbor",
    "scaled_elementwise",
    "sdpa",
    "select",
    "sort",
    "space_to_batch",
    "space_to_channel",
    "space_to_depth",
    "split",
    "stack",
    "topk",
    "upsample_bilinear",
    "where",
]
