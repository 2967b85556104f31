"""What torch's in-place operations are called when they make a new tensor instead.

Most are the same name without the underscore.  This file holds the others; the test compares
every method of torch.Tensor that ends in an underscore with what is said here.
"""

from __future__ import annotations

import inspect
from functools import lru_cache


def words(text: str) -> frozenset[str]:
    """A set of names written as one text."""
    return frozenset(text.split())


#: No out-of-place method exists: run the in-place one on a fresh tensor.  These overwrite every
#: element without reading the old ones, so an empty tensor will do …
FILLS_ALL = words(
    "normal_ uniform_ random_ cauchy_ exponential_ geometric_ log_normal_ bernoulli_ copy_"
)
#: … and these need the old values.
READS_OLD = words("apply_ map_ map2_ fill_diagonal_")
#: The out-of-place form gives a bool tensor, the in-place one keeps the dtype.
COMPARES = words(
    "eq_ ne_ lt_ le_ gt_ ge_ equal_ not_equal_ less_ less_equal_ greater_ greater_equal_ "
    "logical_and_ logical_or_ logical_xor_ logical_not_"
)
#: Not writes of values, or without any functional meaning.
NOT_WRITES = words(
    "requires_grad_ share_memory_ set_ resize_ resize_as_ resize_as_sparse_ sparse_resize_ "
    "sparse_resize_and_clear_ rename_ coalesced_ as_strided_ as_strided_scatter_"
)
#: They change shape or graph, not values: the new name is right, a saved value is not hurt.
RESHAPES = words("squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ detach_ moveaxis_ permute_")
#: Methods whose result shares memory with the tensor (always, or as a rule).
VIEWS = words(
    "view view_as reshape flatten t transpose permute movedim moveaxis swapaxes swapdims squeeze "
    "unsqueeze expand expand_as narrow select diagonal unfold unbind split chunk tensor_split "
    "hsplit vsplit as_strided detach numpy real imag contiguous T mT H mH data"
)


def is_inplace_method(name: str) -> bool:
    """Whether `x.name(…)` writes values of x."""
    return name.endswith("_") and name in _tensor_methods() and name not in NOT_WRITES


def out_of_place_name(name: str) -> str | None:
    """`add_` -> `add`; None where the same name without the underscore is missing or different."""
    short = name[:-1]
    if name in FILLS_ALL | READS_OLD | NOT_WRITES or short not in _tensor_methods():
        return None
    return short


@lru_cache(maxsize=256)
def inplace_position(full: str) -> int | None:
    """Where `inplace` stands among the arguments of a function or a module of torch.nn's."""
    import torch

    owner = torch.nn.functional if full.startswith("torch.nn.functional.") else torch.nn
    found = getattr(owner, full.rpartition(".")[2], None) if full.startswith("torch.nn.") else None
    try:
        names = list(inspect.signature(found).parameters) if callable(found) else []
    except ValueError:  # of C
        return None
    return names.index("inplace") if "inplace" in names else None


@lru_cache(maxsize=1)
def _tensor_methods() -> frozenset[str]:
    import torch

    return frozenset(n for n in dir(torch.Tensor) if not n.startswith("_"))
