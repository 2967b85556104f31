"""Give the optimizer a leaf: compute first and ask for the gradient last, or give it the leaf."""

import ast
from collections.abc import Callable

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.edits import Step, merge
from autograd_explain.rewrite.transforms.casts import flag_moved, requires_grad_last
from autograd_explain.rewrite.transforms.hooks import only_part
from autograd_explain.rewrite.transforms.keep_gradient import new_leaf
from autograd_explain.rewrite.transforms.uncut import apply_patches, replacement

from .diagnose import Details
from .table_rewrite import plain_attribute

_AGAIN = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)


def _whole(site: Site[Details]) -> Edits | None:
    whole = site.details.whole
    return None if whole is None else site.at(whole.place).replaced(whole.code)


def _part(site: Site[Details]) -> Edits | None:
    """`row = w[3]` -> a hook of `w` that keeps this part's gradient.  It stays: where the line may
    run again for another part, the two would keep nothing."""
    whole, made, node = site.details.whole, site.statement, site.node
    again = any(isinstance(n, _AGAIN) for n in site.around)
    if whole is None or again or not isinstance(made, ast.Assign) or made.value is not node:
        return None
    named = len(made.targets) == 1 and isinstance(made.targets[0], ast.Name)
    if not named or not isinstance(node, ast.Subscript) or site.code(node.value) != whole.code:
        return None
    return merge(only_part(site, kept=True), _whole(site))


def _parameters(site: Site[Details]) -> Edits | None:
    """Every property in the call at once: the next one would be refused in its turn."""
    reads = site.details.properties
    return apply_patches(p for read in reads for p in replacement(site.program, *read))


def _at_all(transform: Step) -> Callable[[Site[Details]], Edits | None]:
    """The edit at every tensor that is refused for the same reason, or at the one where it cannot
    be made at each of the others."""

    def edit(site: Site[Details]) -> Edits | None:
        together = site.at(site.place, *site.details.others).each(transform)
        return together or transform(site.program, site.place)

    return edit


def _flag_last(site: Site[Details]) -> Edits | None:
    together = _at_all(requires_grad_last)(site)
    return together or flag_moved(site.program, site.finding)


def _computed(details: Details) -> bool:
    return not details.table and details.whole is None and not details.properties


propose: Propose[Details] = by_table(
    Fix("attribute", at_place(plain_attribute), when=lambda d: d.table and d.trained),
    Fix("parameter", _parameters, when=lambda d: d.properties != ()),
    Fix("part", _part, when=lambda d: d.alone, changes=True),
    Fix("whole", _whole, changes=True),
    Fix("requires_grad_last", _flag_last, when=_computed),
    Fix("new_leaf", _at_all(new_leaf), when=_computed, changes=True),
)
