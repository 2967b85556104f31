"""Keep the value in the graph."""

from autograd_explain.model import What
from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.functional_layer import parameter_as_argument

from .details import Details
from .reconnect import reconnected


def _reconnected(site: Site[Details]) -> Edits | None:
    events = [e for e in site.finding.events if e.what is What.CAUSE]
    places = [e.place for e in events if e.place is not None]
    return reconnected(site.program, places, site.finding.place(What.FAILED))


propose: Propose[Details] = by_table(
    Fix("argument", at_place(parameter_as_argument), changes=True),
    Fix("reconnect", _reconnected, when=lambda d: d.repairable, changes=True),
)
