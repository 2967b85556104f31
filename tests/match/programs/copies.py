"""numpy, copies, other processes."""

from __future__ import annotations

import copy
import io
from multiprocessing.reduction import ForkingPickler

import torch
import torch.multiprocessing

from . import raises, warns
from .inplace import leaf


@raises("numpy-requires-grad")
def to_numpy() -> None:
    leaf(2).numpy()


@raises("numpy-other-device", device="meta")
def meta_to_numpy() -> None:
    torch.ones(2, device="meta").numpy()


@warns("scalar-conversion-warning")
def to_float() -> None:
    float(leaf(1) * 2)


@warns("copy-construct-warning", call="torch.tensor(sourceTensor)")
def tensor_of_tensor() -> None:
    torch.tensor(torch.ones(2))


@warns("complex-cast-to-real")
def complex_to_float() -> None:
    torch.ones(2, dtype=torch.cfloat).float()


@raises("deepcopy-nonleaf")
def copy_result() -> None:
    copy.deepcopy(leaf(2) * 2)


@raises("multiprocessing-nonleaf")
def send_result() -> None:
    ForkingPickler(io.BytesIO()).dump(leaf(2) * 2)


@raises("dlpack-requires-grad")
def export() -> None:
    leaf(2).__dlpack__()
