"""Ascent by the option that is made for it."""

import ast
from dataclasses import replace

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import (
    apply_patches,
    keyword_added,
    node_at,
    replacement,
)

from .diagnose import Details


def _maximize(site: Site[Details]) -> Edits | None:
    program, place = site.program, site.place
    node, source = node_at(program, place), program.source_at(place)
    if source is None or not isinstance(node, ast.Call):
        return None
    given = next((k.value for k in node.keywords if k.arg == "lr"), None)
    given = given or (node.args[1] if len(node.args) > 1 else None)
    if given is None:
        return None
    flip = replacement(program, replace(place, span=source.span(given)), site.details.positive)
    return apply_patches([*flip, *keyword_added(program, place, "maximize", "True")])


propose: Propose[Details] = by_table(Fix("maximize", _maximize, when=lambda d: d.positive != ""))
