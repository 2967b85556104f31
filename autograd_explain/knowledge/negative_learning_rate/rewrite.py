"""Ascent by the option that is made for it."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import apply_all

from .diagnose import Details


def _maximize(site: Site[Details]) -> Edits | None:
    rate = site.argument("lr", 1).with_code("{rate}", rate=site.details.positive)
    return apply_all([rate, site.with_argument("maximize", "True")])


propose: Propose[Details] = by_table(Fix("maximize", _maximize))
