"""Rewrites of the user's program that keep its comments and layout (LibCST).

Every transformer takes the program and a place of the report and returns the edits, or None where
it cannot be done honestly here.  Nothing is run.  LibCST is imported with the first call.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .backward import detach_after, keep_graph
    from .casts import as_new_leaf, dtype_in_constructor, requires_grad_last
    from .clone import (
        clone_alias,
        clone_argument,
        clone_before_write,
        clone_operand,
        clone_result,
        clone_unpacked,
    )
    from .detach import detach_before, detach_expression, detach_use, store_number
    from .edits import Edited, apply, merge
    from .functional import out_of_place
    from .grad_mode import block_instead_of_switch, remove_grad_switch, under_no_grad
    from .imports import torch_at
    from .index_write import IndexFacts, functional_write
    from .modules import module_not_inplace
    from .move import move_after, move_before, toggled_run
    from .proposal import Proposal
    from .retain import requires_grad_after, retain_grad_after

_HOME = {
    "backward": ("detach_after", "keep_graph"),
    "casts": ("as_new_leaf", "dtype_in_constructor", "requires_grad_last"),
    "clone": (
        "clone_alias",
        "clone_argument",
        "clone_before_write",
        "clone_operand",
        "clone_result",
        "clone_unpacked",
    ),
    "detach": ("detach_before", "detach_expression", "detach_use", "store_number"),
    "edits": ("Edited", "apply", "merge"),
    "grad_mode": ("block_instead_of_switch", "remove_grad_switch", "under_no_grad"),
    "imports": ("torch_at",),
    "index_write": ("IndexFacts", "functional_write"),
    "modules": ("module_not_inplace",),
    "move": ("move_after", "move_before", "toggled_run"),
    "functional": ("out_of_place",),
    "proposal": ("Proposal",),
    "retain": ("requires_grad_after", "retain_grad_after"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Edited",
    "IndexFacts",
    "Proposal",
    "apply",
    "as_new_leaf",
    "block_instead_of_switch",
    "clone_alias",
    "clone_argument",
    "clone_before_write",
    "clone_operand",
    "clone_result",
    "clone_unpacked",
    "detach_after",
    "detach_before",
    "detach_expression",
    "detach_use",
    "dtype_in_constructor",
    "functional_write",
    "keep_graph",
    "merge",
    "module_not_inplace",
    "move_after",
    "move_before",
    "out_of_place",
    "remove_grad_switch",
    "requires_grad_after",
    "requires_grad_last",
    "retain_grad_after",
    "store_number",
    "toggled_run",
    "torch_at",
    "under_no_grad",
]


def __getattr__(name: str) -> object:
    """Import a transformer's module when the transformer is first asked for."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE[name]}"), name)
