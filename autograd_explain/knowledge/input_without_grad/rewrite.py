"""Ask for the gradient where the tensor is made, or leave the frozen parameters out."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced, keyword_set
from autograd_explain.rewrite.transforms.embedded_vectors import gradient_of_vectors
from autograd_explain.rewrite.transforms.uncut import node_at

from .diagnose import Details, Way
from .retain import requires_grad_after


def _flag(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _TAKE_FLAG:
        return keyword_set(site.program, site.place, "requires_grad", "True")
    return requires_grad_after(site.program, site.place)


def _vectors(site: Site[Details]) -> Edits | None:
    ids = site.details.ids
    return None if ids is None else gradient_of_vectors(site.program, ids)


#: torch's constructors that take `requires_grad`.
_TAKE_FLAG = frozenset(
    "tensor zeros ones full empty rand randn linspace logspace arange eye normal zeros_like "
    "ones_like full_like rand_like randn_like empty_like".split()
)

propose: Propose[Details] = by_table(
    Fix(
        "leave_out",
        at_place(expression_replaced, "[p for p in {x} if p.requires_grad]"),
        when=lambda d: d.way is Way.FILTER,
        changes=True,
    ),
    Fix("vectors", _vectors, changes=True),
    Fix("flag", _flag, when=lambda d: d.way is Way.FLAG),
)
