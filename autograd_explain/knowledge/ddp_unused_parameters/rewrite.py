"""`find_unused_parameters=True`, in place of `static_graph=True` where that was promised."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

_PROMISE, _SEARCH = "static_graph", "find_unused_parameters"


def _searched(site: Site[object]) -> Edits | None:
    given = {k.arg for k in getattr(site.node, "keywords", ())}
    known = given & {_PROMISE, _SEARCH}
    return None if known else site.given(_SEARCH, "True")


propose: Propose[object] = by_table(
    Fix("no_static_graph", lambda s: s.renamed(_PROMISE, _SEARCH)),
    Fix("find_unused", _searched),
)
