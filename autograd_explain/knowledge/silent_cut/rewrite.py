"""Keep the value in the graph."""

from autograd_explain.model import What
from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits

from .details import Details
from .functional_layer import parameter_as_argument
from .reconnect import reconnected


def _argument(site: Site[Details]) -> Edits | None:
    made = site.details.parameter
    return None if made is None else parameter_as_argument(site.program, made)


def _reconnected(site: Site[Details]) -> Edits | None:
    events = [e for e in site.finding.events if e.what is What.CAUSE]
    places = [e.place for e in events if e.place is not None]
    return reconnected(site.program, places, site.finding.place(What.FAILED))


propose: Propose[Details] = by_table(
    Fix("argument", _argument, changes=True),
    Fix(
        "reconnect", _reconnected, when=lambda d: d.repairable and d.parameter is None, changes=True
    ),
)
