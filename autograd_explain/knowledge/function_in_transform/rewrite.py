"""`forward` without its context, and `generate_vmap_rule = True` at the top of the class; of a
Function that is not the program's the same derivative without a transform."""

from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.draft import Draft

from .apart import context_apart, with_rule
from .by_backward import by_backward
from .diagnose import Details


def _set_apart(site: Site[Details]) -> Edits | None:
    details = site.details
    return context_apart(site.program, details.forward, details.tensors, details.batched)


def _generated(site: Site[Details]) -> Edits | None:
    classes = index_of(site.program).classes(site.details.function)[:1]
    at = site.at(*(source.place(node.lineno, None, node) for source, node in classes))
    return None if at.own is None else Draft(at.tree).change(at.own, with_rule).edits()


propose: Propose[Details] = by_table(
    Fix("setup_context", _set_apart, when=lambda d: d.forward is not None),
    Fix("generate_rule", _generated, when=lambda d: d.batching),
    Fix("by_backward", lambda s: by_backward(s.program, s.details.entered)),
)
