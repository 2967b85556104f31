"""Store the value without its graph, drop it before copying, or copy the values themselves."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograd_explain.model import Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import call_behind, line_before
from autograd_explain.rewrite.transforms.uncut import apply_patches, node_at, replacement

from .parametrization import parametrized


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, copied = finding.event(What.CAUSE), finding.places.get("copied", ())
    if cause is None or cause.place is None:
        return
    if cause.op == "detach":
        edits = call_behind(program, cause.place, "detach")
        if edits:
            yield Proposal("detach", edits)
    if cause.op in _NORMS:
        edits = parametrized(program, cause.op, finding.places.get("asked", ()))
        if edits and cause.op == "weight_norm":
            yield Proposal("parametrization", edits)
        elif edits:
            yield Proposal("other_start", edits, Safety.CHANGES_MEANING, intended_difference=True)
    if cause.op in ("detach", "clear") and copied and not finding.variant:
        name = _name_at(finding, program, copied[0])
        edits = line_before(program, copied[0], f"{name} = None\n") if name else None
        if edits:
            yield Proposal("drop", edits)
    if cause.op == "clone" and copied:
        edits = _values(program, copied[0])
        if edits:
            yield Proposal("values", edits, Safety.CHANGES_MEANING, intended_difference=True)


_NORMS = ("weight_norm", "spectral_norm")


def _name_at(finding: Finding, program: Program, copied: Place) -> str:
    """The attribute to drop, as it is called before the statement of the copy; "" where that is not
    known: in a comprehension, and in a function for names of the notebook, which may mean another
    object in the next call.
    """
    source, node = program.source_at(copied), node_at(program, copied)
    for around in ast.walk(source.tree) if source is not None else ():
        inner = isinstance(around, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
        if inner and any(n is node for n in ast.walk(around)):
            return ""
    start = finding.facts.get("copied", "") + "."
    names = [n for n in finding.tensors[0].names if n.isascii() and "." in n and n[-1] != "]"]
    own = [n for n in names if n.startswith(start)]
    return next(iter(own or ([] if copied.function else names)), "")


def _values(program: Program, place: Place) -> tuple | None:  # type: ignore[type-arg]
    """`copy.deepcopy(h)` -> `h.detach().clone()`"""
    source, node = program.source_at(place), node_at(program, place)
    if source is None or node is None:
        return None
    for call in ast.walk(source.tree):
        if isinstance(call, ast.Call) and call.args[:1] == [node]:
            code = ast.get_source_segment(source.python, node) or ast.unparse(node)
            atom = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
            text = f"{code if atom else f'({code})'}.detach().clone()"
            where = replace(place, span=source.span(call))
            return apply_patches(replacement(program, where, text))
    return None
