"""The hook registered once, or taken away behind the backward that it is for."""

import libcst as cst

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.analysis.effects import bound_in, fresh, used_names
from autograd_explain.rewrite.engine.cst_tools import make, method_name, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import statement_at


def _before_loop(site: Site[None]) -> Edits | None:
    """A hook of which no name is given another value in a round goes in front of the loop."""
    tree, own = statement_at(site.program, site.place)
    loop = None if own is None else next(iter(tree.loops(own)), None)
    if own is None or loop is None or tree.block_of(own) is not loop.body:
        return None
    if used_names(own) & bound_in(loop):
        return None
    return Draft(tree).move([own], loop, after=False).edits()


def _removed(site: Site[None]) -> Edits | None:
    """`handle = w.register_hook(f)`, and `handle.remove()` behind the backward."""
    tree, own = statement_at(site.program, site.place)
    if not isinstance(own, cst.Expr):
        return None
    inside, at = tree.siblings(own)
    later = (s for s in inside[at + 1 :] if any(method_name(n) == "backward" for n in walk(s)))
    backward = next(later, None)
    if backward is None:
        return None
    handle = fresh(tree, own, "handle")
    draft = Draft(tree).instead(own, [make(f"{handle} = {{x}}", x=own.value)])
    return draft.after(backward, [make(f"{handle}.remove()")]).edits()


propose: Propose[None] = by_table(
    Fix("before_loop", _before_loop, changes=True),
    Fix("removed", _removed, changes=True),
)
