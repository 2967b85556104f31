"""The right name for an argument of `apply`, where only one parameter is left for it."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details


def _parameter_name(site: Site[Details]) -> Edits | None:
    call = site.call
    if call is None or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    inputs, given = site.details.inputs, [k.arg for k in call.keywords]
    left = [name for name in inputs[len(call.args) :] if name not in given]
    wrong = [name for name in given if name not in inputs]
    if len(left) != 1 or len(wrong) != 1 or wrong[0] is None:
        return None
    return site.renamed(wrong[0], left[0])


propose: Propose[Details] = by_table(Fix("parameter_name", _parameter_name))
