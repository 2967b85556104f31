"""Where torch keeps the hooks of tensors and modules, by the method that registers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: torch keeps them in a dictionary, from which a handle takes its own.
OF_TENSOR: Mapping[str, str] = {
    "register_hook": "_backward_hooks",
    "register_post_accumulate_grad_hook": "_post_accumulate_grad_hooks",
}
OF_MODULE: Mapping[str, str] = {
    "register_forward_hook": "_forward_hooks",
    "register_forward_pre_hook": "_forward_pre_hooks",
    "register_full_backward_hook": "_backward_hooks",
    "register_full_backward_pre_hook": "_backward_pre_hooks",
}


def hooks_in(owner: Any, table: str) -> dict[Any, Any]:
    """The hooks of a tensor or a module, by the keys of their handles."""
    return getattr(owner, table, None) or {}
