"""The right name for an argument of `apply`, where only one parameter is left for it."""

import ast
from dataclasses import replace

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, node_at

from .diagnose import Details


def _parameter_name(site: Site[Details]) -> Edits | None:
    source, call = site.program.source_at(site.place), node_at(site.program, site.place)
    if source is None or not isinstance(call, ast.Call):
        return None
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    inputs, given = site.details.inputs, {k.arg: k for k in call.keywords}
    left = [name for name in inputs[len(call.args) :] if name not in given]
    wrong = [k for name, k in given.items() if name not in inputs]
    if len(left) != 1 or len(wrong) != 1 or wrong[0].arg is None:
        return None
    span = source.span(wrong[0])
    if span is None:
        return None
    name = replace(span, end_line=span.line, end_column=span.column + len(wrong[0].arg))
    return apply_patches([Patch(source, name, left[0])])


propose: Propose[Details] = by_table(Fix("parameter_name", _parameter_name))
