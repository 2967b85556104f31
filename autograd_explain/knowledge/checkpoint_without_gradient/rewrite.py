"""`use_reentrant=False`, in every checkpoint that would go on unrecorded."""

import ast

from autograd_explain.model import Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_all,
    keyword_added,
    node_at,
    replacement,
)


def _non_reentrant(site: Site[object]) -> Edits | None:
    causes = [e for e in site.finding.events if e.what is What.CAUSE]
    return apply_all(_turned_off(site.program, e.place) for e in causes)


def _turned_off(program: Program, place: Place | None) -> list[Patch]:
    """At a checkpoint, at the `True` of such an option, or at a library's switch."""
    node = node_at(program, place)
    if isinstance(node, ast.Constant):
        return replacement(program, place, "False")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr.endswith("_enable"):
            kind = '{"use_reentrant": False}'
            return keyword_added(program, place, "gradient_checkpointing_kwargs", kind)
    return keyword_added(program, place, "use_reentrant", "False")


propose: Propose[object] = by_table(Fix("non_reentrant", _non_reentrant))
