"""`randomness="different"` in the call of `vmap`."""

from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_set


def _different(site: Site[object]) -> Edits | None:
    found = list(index_of(site.program).calls("vmap", of="torch"))
    if len(found) != 1:
        return None
    source, call = found[0]
    place = source.place(call.lineno, None, call)
    return keyword_set(site.program, place, "randomness", '"different"')


propose: Propose[object] = by_table(Fix("different", _different))
