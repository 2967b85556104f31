"""torch's names of operations."""

from __future__ import annotations

import re

import torch

_MODULES = {
    "Linear": "linear", "Conv1d": "conv1d", "Conv2d": "conv2d", "Conv3d": "conv3d",
    "BatchNorm1d": "batch_norm", "BatchNorm2d": "batch_norm", "BatchNorm3d": "batch_norm",
    "LayerNorm": "layer_norm", "GroupNorm": "group_norm", "ReLU": "relu", "ReLU6": "relu6",
    "LeakyReLU": "leaky_relu", "ELU": "elu", "SELU": "selu", "CELU": "celu", "SiLU": "silu",
    "GELU": "gelu", "Hardtanh": "hardtanh", "Hardswish": "hardswish", "RReLU": "rrelu",
    "Hardsigmoid": "hardsigmoid", "Mish": "mish", "Threshold": "threshold", "LSTM": "lstm",
    "GRU": "gru", "RNN": "rnn", "LSTMCell": "lstm_cell", "GRUCell": "gru_cell",
    "RNNCell": "rnn_cell", "Dropout1d": "dropout1d", "Dropout2d": "dropout2d", "PReLU": "prelu",
}  # fmt: skip


def operation_of_module(module: torch.nn.Module) -> str:
    """What calling one of torch's modules does: `linear`, `relu_` where it works in place."""
    kind = type(module).__name__
    name = _MODULES.get(kind) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()
    return f"{name}_" if getattr(module, "inplace", False) else name
