"""The hook registered once, or taken away behind the backward that it is for."""

import libcst as cst

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.analysis.effects import bound_in, fresh, local_names, used_names
from autograd_explain.rewrite.engine.cst_tools import (
    block,
    make,
    method_name,
    positional_parameters,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import functions_in, statements_in
from autograd_explain.rewrite.transforms.kept_argument import constructor_of


def _in_init(site: Site[None]) -> Edits | None:
    """What only reads the object itself goes from its method to the end of `__init__`."""
    tree, own = site.tree, site.own
    whole = None if own is None else tree.alone_in(own, cst.For, cst.If)
    found = constructor_of(tree, whole)
    if whole is None or found is None or tree.outer(whole) is not found.method:
        return None
    method, itself = found.method, positional_parameters(found.method)[:1]
    init = functions_in(found.owner.body).get("__init__", method)
    if init is method or positional_parameters(init)[:1] != itself:
        return None
    if used_names(whole) & (local_names(method) - bound_in(whole) - {*itself}):
        return None
    return Draft(tree).move([whole], statements_in(init.body)[-1], after=True).edits()


def _removed(site: Site[None]) -> Edits | None:
    """`handle = w.register_hook(f)`, and `handle.remove()` behind the backward; handles in a list
    where a loop registers several."""
    tree, own = site.tree, site.own
    if not isinstance(own, cst.Expr):
        return None
    whole = tree.alone_in(own, cst.For, cst.If)
    inside, at = tree.siblings(whole)
    backward = [s for s in inside[at + 1 :] if any(method_name(n) == "backward" for n in walk(s))]
    run = inside[at : inside.index(backward[-1]) + 1] if backward else []
    if not run or any(isinstance(n, cst.Return) for s in run for n in walk(s)):
        return None
    draft = Draft(tree)
    if whole is own:
        handle = fresh(tree, own, "handle")
        draft.instead(own, [make(f"{handle} = {{x}}", x=own.value)])
        return draft.after(run[-1], [make(f"{handle}.remove()")]).edits()
    handle, handles = fresh(tree, own, "handle"), fresh(tree, own, "handles")
    draft.before(whole, [make(f"{handles} = []")])
    draft.instead(own, [make(f"{handles}.append({{x}})", x=own.value)])
    removed = block(f"for {handle} in {handles}:\n    {handle}.remove()")
    return draft.after(run[-1], [removed]).edits()


propose: Propose[None] = by_table(
    Fix("in_init", _in_init, changes=True),
    Fix("removed", _removed, changes=True),
)
