"""Keep the value in the graph."""

from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.model import What
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import renamed
from autograd_explain.rewrite.transforms.create_graph import with_create_graph
from autograd_explain.rewrite.transforms.functional_layer import parameter_as_argument
from autograd_explain.rewrite.transforms.leave_no_grad import out_of_block, without_decorator

from .details import Details
from .reconnect import reconnected


def _reconnected(site: Site[Details]) -> Edits | None:
    events = [e for e in site.finding.events if e.what is What.CAUSE]
    places = [e.place for e in events if e.place is not None]
    return reconnected(site.program, places, site.finding.place(What.FAILED))


def _with_graph(site: Site[Details]) -> Edits | None:
    """`create_graph=True` in every call that is told."""
    events = [e for e in site.finding.events if e.what is What.CAUSE]
    return with_create_graph(site.program, [e.place for e in events])


def _recorded(site: Site[Details]) -> Edits | None:
    """Without the decorator, or out of the block, that kept the operations from being recorded."""
    off = site.details.off
    if off is not None and off.by is OffBy.DECORATOR:
        return without_decorator(site.program, off.place)
    if off is not None and off.by is OffBy.BLOCK:
        return out_of_block(site.program, off.place, off.inside)
    return None


propose: Propose[Details] = by_table(
    Fix("rsample", lambda s: renamed(s.program, s.details.drawn, "{owner}.rsample"), changes=True),
    Fix("argument", at_place(parameter_as_argument), changes=True),
    Fix("create_graph", _with_graph, when=lambda d: d.derivative, changes=True),
    Fix("record", _recorded, changes=True),
    Fix("reconnect", _reconnected, when=lambda d: d.repairable and not d.derivative, changes=True),
)
