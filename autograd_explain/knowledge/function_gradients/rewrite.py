"""`None` in the places of the inputs that need no gradient."""

import ast
from dataclasses import replace

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches

from .diagnose import Details, Why
from .missing import derivative_by_autograd


def _with_none(site: Site[Details]) -> Edits | None:
    """`None` for the values that nothing is owed; None where that is not certain."""
    details, values = site.details, _values(site)
    positions = {
        Why.NUMBER: [*range(details.count, details.expected)],
        Why.PLAIN: [details.index - 1],
        Why.TYPE: [i for i, v in enumerate(values) if v.replace(".", "", 1).isdigit()],
    }.get(details.why, [])
    # A tensor that requires grad is owed a gradient: which one is for the author to say.
    if not positions or not details.unneeded.issuperset(positions):
        return None
    if details.why is Why.NUMBER and len(values) == details.count:
        values += [""] * len(positions)
    if positions[-1] >= len(values):
        return None
    new = ("None" if i in positions else value for i, value in enumerate(values))
    return site.replaced("{values}", values=", ".join(new))


def _values(site: Site[Details]) -> list[str]:
    """What stands at the place, one text for each value."""
    node = site.node
    elements = node.elts if isinstance(node, ast.Tuple) else [node] if node is not None else []
    return [site.code(n) for n in elements]


def _times_incoming(site: Site[Details]) -> Edits | None:
    """`return s * (1 - s)` -> `return grad * (s * (1 - s))`"""
    return site.at(*site.details.places).replaced("{g} * {x}", g=site.details.gradient)


def _by_autograd(site: Site[Details]) -> Edits | None:
    """`return g` -> `return g, torch.autograd.functional.vjp(…)[1]`, where one value is owed and
    not returned; the same for the `None` of `return g, None`."""
    details, values, program = site.details, _values(site), site.program
    owed = (details.input, details.gradient)
    if details.why is not Why.NUMBER:
        alone = len(details.places) == 1
        return derivative_by_autograd(program, details.places[0], *owed) if alone else None
    if len(values) != details.count or not details.input:
        return None

    def written(derivative: str) -> str:
        missing = range(details.count, details.expected)
        return ", ".join(
            [*values, *("None" if n in details.unneeded else derivative for n in missing)]
        )

    return derivative_by_autograd(program, site.place, *owed, details.tensors, written)


def _taken(site: Site[Details]) -> Edits | None:
    """`def backward(ctx, g):` -> `def backward(ctx, g, grad_index):`"""
    source, span, more = site.source, site.place.span, site.details.more
    if source is None or span is None or not more:
        return None
    end = replace(span, line=span.end_line, column=span.end_column)
    return apply_patches([Patch(source, end, "".join(f", {name}" for name in more))])


_OWED = (Why.NUMBER, Why.MISSING, Why.PARTLY)

propose: Propose[Details] = by_table(
    Fix("none_for_rest", _with_none, when=lambda d: d.why is Why.NUMBER),
    Fix("none_at_position", _with_none, when=lambda d: d.why is not Why.NUMBER),
    Fix(
        "cast_operand",
        lambda s: s.replaced("{x}.to({like}.dtype)", like=s.details.like),
        when=lambda d: d.why is Why.DTYPE,
        changes=True,
    ),
    Fix("times_incoming", _times_incoming, when=lambda d: d.why is Why.IGNORED),
    Fix("by_autograd", _by_autograd, when=lambda d: d.why in _OWED),
    Fix("take_unused", _taken, when=lambda d: not d.used),
    Fix("take_used", _taken, when=lambda d: d.used, changes=True),
)
