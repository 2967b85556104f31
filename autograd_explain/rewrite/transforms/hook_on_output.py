"""A full backward hook of a module, put on the output's tensor instead."""

from __future__ import annotations

from functools import partial

from ...model import Edits, Place
from ...program import Program
from ..engine.edits import then
from .call_edits import expression_replaced, line_before


def hook_on_output(program: Program, place: Place, module: str, hook: str) -> Edits | None:
    """`net.body.register_full_backward_hook(keep)` at a place, with these two expressions, becomes
    a forward hook that registers `keep` on the output, for one that only looks at its gradient."""
    function = (
        f"def hook_output(module, args, output, hook={hook}):\n"
        "    if output.requires_grad:\n"
        "        output.register_hook(lambda grad: hook(module, None, (grad,)))\n"
    )
    defined = line_before(program, place, function)
    registered = f"{module}.register_forward_hook(hook_output)"
    return then(program, defined, partial(expression_replaced, template=registered), place)
