"""`None` in the places of the inputs that need no gradient."""

import ast
from dataclasses import replace

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches

from .diagnose import Details, Why
from .missing import derivative_by_autograd


def _with_none(site: Site[Details]) -> Edits | None:
    values = _values(site)
    new = None if values is None else _new_values(site.details, values)
    return None if new is None else site.replaced("{values}", values=", ".join(new))


def _values(site: Site[Details]) -> list[str] | None:
    """What stands at the place, one text for each value."""
    node = site.node
    if node is None:
        return None
    elements = node.elts if isinstance(node, ast.Tuple) else [node]
    return [site.code(n) for n in elements]


def _times_incoming(site: Site[Details]) -> Edits | None:
    """`return s * (1 - s)` -> `return grad * (s * (1 - s))`"""
    return site.at(*site.details.places).replaced("{g} * {x}", g=site.details.gradient)


def _new_values(details: Details, values: list[str]) -> list[str] | None:
    """The returned values with `None` where nothing is owed; None where that is not certain."""
    if details.why is Why.NUMBER:
        return _filled_up(details, values)
    if details.why is Why.PLAIN:
        position = details.index - 1
        if not 0 <= position < len(values) or position not in details.unneeded:
            return None
        return [v if i != position else "None" for i, v in enumerate(values)]
    numbers = [i for i, v in enumerate(values) if v.replace(".", "", 1).isdigit()]
    if details.why is Why.TYPE and numbers and details.unneeded.issuperset(numbers):
        return ["None" if i in numbers else v for i, v in enumerate(values)]
    return None


def _filled_up(details: Details, values: list[str]) -> list[str] | None:
    missing = range(len(values), details.expected)
    # A tensor that requires grad is owed a gradient: which one is for the author to say.
    if len(values) != details.count or not missing or not details.unneeded.issuperset(missing):
        return None
    return [*values, *("None" for _ in missing)]


def _added_by_autograd(site: Site[Details]) -> Edits | None:
    """`return g` -> `return g, torch.autograd.functional.vjp(…)[1]`"""
    details, values = site.details, _values(site)
    if values is None or len(values) != details.count or not details.input:
        return None

    def written(derivative: str) -> str:
        missing = range(details.count, details.expected)
        return ", ".join(
            [*values, *("None" if n in details.unneeded else derivative for n in missing)]
        )

    return derivative_by_autograd(
        site.program, site.place, details.input, details.gradient, details.tensors, written
    )


def _by_autograd(site: Site[Details]) -> Edits | None:
    """`return g, None` -> `return g, torch.autograd.functional.vjp(…)[1]`"""
    details = site.details
    if len(details.places) != 1:
        return None
    return derivative_by_autograd(site.program, details.places[0], details.input, details.gradient)


def _taken(site: Site[Details]) -> Edits | None:
    """`def backward(ctx, g):` -> `def backward(ctx, g, grad_index):`"""
    source, span, more = site.source, site.place.span, site.details.more
    if source is None or span is None or not more:
        return None
    end = replace(span, line=span.end_line, column=span.end_column)
    return apply_patches([Patch(source, end, "".join(f", {name}" for name in more))])


_OWED = (Why.MISSING, Why.PARTLY)
_ELSEWHERE = (Why.NUMBER, Why.DTYPE, Why.IGNORED, *_OWED)

propose: Propose[Details] = by_table(
    Fix("none_for_rest", _with_none, when=lambda d: d.why is Why.NUMBER),
    Fix("by_autograd", _added_by_autograd, when=lambda d: d.why is Why.NUMBER),
    Fix("none_at_position", _with_none, when=lambda d: d.why not in _ELSEWHERE),
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
