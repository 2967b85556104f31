"""Detach a value that should carry no gradient; ask for the gradient of one that should."""

from functools import partial

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.edits import each
from autograd_explain.rewrite.transforms.call_edits import detached_instead
from autograd_explain.rewrite.transforms.hooks import without_part
from autograd_explain.rewrite.transforms.keep_gradient import new_leaf
from autograd_explain.rewrite.transforms.spot import Spot

from .computed_weight import Instead
from .diagnose import Details


def _instead(site: Site[Details]) -> Edits | None:
    instead = site.details.instead
    return each(site.program, ((partial(_made, part=part), part.place) for part in instead))


def _made(program: Program, place: Place, part: Instead) -> Edits | None:
    spot = Spot(program, place)
    return (spot.replaced if part.element else spot.instead)("{code}", code=part.code)


def _is_kept(details: Details) -> bool:
    return details.wanted and not (details.replaced or details.instead or details.library)


def _detached(site: Site[Details]) -> Edits | None:
    """Of what a library is handed the whole expression."""
    if site.details.library:
        return site.called("detach")
    return detached_instead(site.program, site.place)


propose: Propose[Details] = by_table(
    Fix("parameters", _instead, when=lambda d: bool(d.instead)),
    Fix("new_leaf", at_place(new_leaf, flagged=True), when=lambda d: d.replaced),
    Fix("retain_grad", lambda s: s.instead("{name}.retain_grad()"), when=_is_kept),
    Fix("switch", lambda s: s.at(s.details.call).before(s.details.switch)),
    Fix("rows", without_part, when=lambda d: d.part and not (d.wanted or d.instead)),
    Fix("detach", _detached, when=lambda d: not (d.wanted or d.instead or d.part or d.read)),
)
