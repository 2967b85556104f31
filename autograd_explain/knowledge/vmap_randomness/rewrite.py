"""`randomness="different"` in the call of `vmap`."""

from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table


def _different(site: Site[object]) -> Edits | None:
    found = list(index_of(site.program).calls("vmap", of="torch"))
    if len(found) != 1:
        return None
    source, call = found[0]
    return site.at(source.place(call.lineno, None, call)).given("randomness", '"different"')


propose: Propose[object] = by_table(Fix("different", _different))
