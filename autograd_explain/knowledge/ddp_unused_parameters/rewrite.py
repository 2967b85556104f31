"""`find_unused_parameters=True`, in place of `static_graph=True` where that was promised."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_renamed, keyword_set
from autograd_explain.rewrite.transforms.uncut import node_at

_PROMISE, _SEARCH = "static_graph", "find_unused_parameters"


def _searched(site: Site[object]) -> Edits | None:
    given = {k.arg for k in getattr(node_at(site.program, site.place), "keywords", ())}
    known = given & {_PROMISE, _SEARCH}
    return None if known else keyword_set(site.program, site.place, _SEARCH, "True")


propose: Propose[object] = by_table(
    Fix("no_static_graph", at_place(keyword_renamed, _PROMISE, _SEARCH)),
    Fix("find_unused", _searched),
)
