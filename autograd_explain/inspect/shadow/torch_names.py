"""torch's names of operations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch

from .unknown import words

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

#: Calls of Python's and numpy's generators, whose numbers hang on chance.
CHANCE = frozenset(("random", "uniform", "randrange", "gauss", "choice", "shuffle", "sample"))


def operation_of_module(module: torch.nn.Module) -> str:
    """What calling one of torch's modules does: `linear`, `relu_` where it works in place."""
    kind = type(module).__name__
    name = _MODULES.get(kind) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()
    return f"{name}_" if getattr(module, "inplace", False) else name


_OPERATORS = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "and_": "bitwise_and", "or_": "bitwise_or",
    "xor": "bitwise_xor", "invert": "bitwise_not",
}  # fmt: skip


def operator_name(name: str) -> str:
    """torch's name of a Python operator (`truediv`; `iadd` is `add_`) on tensors."""
    in_place = name.startswith("i") and name not in ("invert", "inv")
    if in_place and name in _AUGMENTED:
        plain = name[1:] if name not in ("iand", "ior") else f"{name[1:]}_"
        return _OPERATORS.get(plain, plain) + "_"
    return _OPERATORS.get(name, name)


_AUGMENTED = words(
    """iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift
    irshift"""
)


def operation(function: Any, name: str, kwargs: Mapping[str, Any]) -> str:
    """torch's name of what a call does: `relu`, `relu_` for nn.ReLU(inplace=True), `step`."""
    if isinstance(function, torch.nn.Module):
        return operation_of_module(function)
    in_place = kwargs.get("inplace") is True and not isinstance(function, type)
    return f"{name}_" if in_place and not name.endswith("_") else name
