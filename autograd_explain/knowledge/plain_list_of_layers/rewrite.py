"""A container that registers what is in it, or a module in the place of a plain object."""

import libcst as cst

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.cst_tools import expression, make
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.engine.tree import functions_in, opening, statement_at
from autograd_explain.rewrite.transforms.training_step import module_list

from .diagnose import Details


def _made_module(site: Site[Details]) -> Edits | None:
    """`class Fields(nn.Module)`, and the container in it; None where the class inherits, is
    decorated, or has no `__init__` of its own."""
    tree, found = statement_at(site.program, site.details.plain)
    base = site.at(site.details.plain).imports.local("torch.nn.Module")
    if not isinstance(found, cst.ClassDef) or found.bases or found.decorators or base is None:
        return None
    init = functions_in(found.body).get("__init__")
    first = None if init is None else opening(init.body)
    if first is None:
        return None
    draft = Draft(tree).before(first, [make("super().__init__()")])
    inherits = [cst.Arg(expression(base))]
    draft.change(found, lambda cls: cls.with_changes(bases=inherits))
    edits = draft.edits()
    for kept in site.details.kept:
        edits = then(site.program, edits, module_list, kept) or edits
    return edits


propose: Propose[Details] = by_table(
    Fix("module_class", _made_module, when=lambda d: d.plain is not None, changes=True),
    Fix("module_list", at_place(module_list), when=lambda d: d.plain is None, changes=True),
)
