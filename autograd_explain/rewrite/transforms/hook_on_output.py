"""A full backward hook of a module, put on the output's tensor instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model import Edits
from ...program import Program
from ..engine.edits import then
from .spot import Spot

if TYPE_CHECKING:
    from ...inspect.facts.user_hooks import ModuleHook


def hook_on_output(program: Program, found: ModuleHook | None) -> Edits | None:
    """`net.body.register_full_backward_hook(keep)` becomes a forward hook that registers `keep` on
    the output, for one that only looks at its gradient."""
    if found is None or not found.looks:
        return None
    function = (
        "def hook_output(module, args, output, hook={hook}):\n"
        "    if output.requires_grad:\n"
        "        output.register_hook(lambda grad: hook(module, None, (grad,)))\n"
    )
    defined = Spot(program, found.place).before(function, hook=found.hook)
    registered = f"{found.module}.register_forward_hook(hook_output)"
    return then(program, defined, lambda p, at: Spot(p, at).replaced(registered), found.place)
