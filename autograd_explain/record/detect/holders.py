"""Whether anybody but the program's own names holds a tensor: a graph that saved it does.

Counts are read that torch keeps itself; where it does not show them, everything may be saved.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from ..observe.tensor_facts import storage, unseen

# Private: the tensor's from torch 2.8 on, the storage's from 2.3 on.
_count_tensor = getattr(Tensor, "_use_count", None)
_count_storage = getattr(torch._C, "_storage_Use_Count", None)


def may_be_saved(tensor: Tensor, *, aliases: int, gradient: bool = False) -> bool:
    """Whether a graph may have saved a tensor or one on its memory; so many `aliases` are known.
    A `gradient` is held by its leaf as well."""
    if may_be_original(tensor, also=gradient) or _count_storage is None:
        return True
    return bool(_count_storage(storage(tensor)) > _alone()[1] + aliases)


def may_be_original(tensor: Tensor, *, also: int = 0) -> bool:
    """Whether a graph may have saved the tensor itself, as it does with leaves and inputs.

    The node that accumulates a leaf's gradient holds the leaf as well.  A result is in the graph
    of its node: whoever uses it from now on is in it, too.  So many `also` hold it that are none.
    """
    if _count_tensor is None or tensor._base is not None or tensor.grad_fn is not None:
        return True
    return bool(_count_tensor(tensor) > _alone()[0] + tensor.requires_grad + also)


@cache
def _alone() -> tuple[int, int]:
    """The counts of a tensor that one name holds (its Python objects may count as well)."""
    assert _count_tensor is not None
    with unseen():
        tensor = torch.empty(1, device="cpu")
    kept = 0 if _count_storage is None else _count_storage(storage(tensor))
    return int(_count_tensor(tensor)), int(kept)
