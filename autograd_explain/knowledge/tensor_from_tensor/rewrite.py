"""The copy spelled out; where the source requires grad, also the copy that keeps the graph."""

import ast
from functools import partial

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .copies import tensor_copy
from .diagnose import Details

#: What `torch.as_tensor` takes, and other options, which it is not known to.
_OPTIONS = frozenset({"dtype", "device", None})


def _copied(site: Site[Details], method: str = "detach().clone") -> Edits | None:
    """Of a tensor by its own method; of what may be a list, or with other options, by a call."""
    keep = method == "clone"
    own = None if site.details.mixed else tensor_copy(site.program, site.place, keep_graph=keep)
    return own or _of_any(site, method)


def _of_any(site: Site[Details], method: str) -> Edits | None:
    call = site.call
    plain = call is not None and site.imports.full(ast.unparse(call.func)) == "torch.tensor"
    if call is None or site.details.asked or not plain:
        return None
    if not {k.arg for k in call.keywords} <= _OPTIONS:
        return None
    return site.replaced(f"{{torch.as_tensor}}{{arguments}}.{method}()")


_keeping_graph = partial(_copied, method="clone")

propose: Propose[Details] = by_table(
    Fix(
        "clone",
        _keeping_graph,
        when=lambda d: d.loss or (d.graph and d.goes_on and not d.asked),
    ),
    Fix("detach_clone", _copied, changes=False),
    Fix("clone", _keeping_graph, when=lambda d: d.graph and not d.asked),
    changes=True,
)
