"""Let autograd see the write, give it memory of its own, or let it wait for backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, Place, Safety, What
from autograd_explain.program import Program, Source, called_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import (
    clone_alias,
    clone_operand,
    functional_write,
    move_after,
    out_of_place,
)
from autograd_explain.rewrite.engine.proposal import Proposal

from .alias import through_tensor
from .defer_to_caller import wait_outside

Edits = tuple[Edit, ...] | None
_FROM_NUMPY = ("from_numpy", "as_tensor", "asarray")


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    if finding.variant == "unrecorded":
        yield from _unrecorded(finding, program)
        return
    write = _place(finding, What.CHANGED)
    if write is None:
        return
    # An array of a parameter is written for the parameter's sake.
    if finding.variant == "numpy" and finding.facts["parameter"] == "no":
        yield from _made("copy_array", _own_memory(finding, program))
    if finding.variant == "function":
        yield from _made("save_copy", _saved_copy(program, write, finding.facts["written"]))
    alias = _place(finding, What.CREATED)
    if alias is not None:
        yield from _made("clone_alias", clone_alias(program, alias))
    yield from _another_way(finding, program, write, alias)
    saver = _place(finding, What.SAVED)
    if saver is not None and finding.facts["operand"]:
        yield from _made("save_value", clone_operand(program, saver, finding.facts["operand"]))


def _unrecorded(finding: Finding, program: Program) -> Iterator[Proposal]:
    write = _place(finding, What.CAUSE)
    if write is not None:
        yield from _recorded(program, write, _place(finding, What.CREATED))


def _another_way(
    finding: Finding, program: Program, write: Place, alias: Place | None
) -> Iterator[Proposal]:
    """The write is recorded, or it waits; what an object keeps from round to round better stays
    the same tensor."""
    kept = "." in finding.facts["alias"].removesuffix(".data")
    if kept:
        yield from _waiting(finding, program)
    if finding.variant in ("data", "function", "context") and finding.facts["parameter"] == "no":
        yield from _recorded(program, write, alias)
    if not kept:
        yield from _waiting(finding, program)


def _waiting(finding: Finding, program: Program) -> Iterator[Proposal]:
    if finding.variant in ("data", "set_data", "step", "numpy"):
        yield from _made("move_write", _later(finding, program))


def _later(finding: Finding, program: Program) -> Edits:
    """The write waits, alone or as the call of a helper that makes it."""
    for write in finding.places.get("write", ()):
        for failed in finding.places.get("failed", ()):
            edits = move_after(program, write, failed)
            inner = finding.places.get("inner", ())
            return edits or (wait_outside(program, write, inner[0], failed) if inner else None)
    return None


def _recorded(program: Program, write: Place, alias: Place | None) -> Iterator[Proposal]:
    """The write makes a new tensor that later lines use: its effect then counts in the gradient."""
    if alias is None:
        edits = _new_tensor(program, write)
    else:
        edits = through_tensor(program, alias, write, _new_tensor)
    if edits:
        yield Proposal("recorded_write", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _new_tensor(program: Program, write: Place) -> Edits:
    return out_of_place(program, write) or functional_write(program, write)


def _made(fix: str, edits: Edits) -> Iterator[Proposal]:
    if edits:
        yield Proposal(fix, edits)


def _own_memory(finding: Finding, program: Program) -> Edits:
    """A copy where a tensor and an array came to share memory; None where several lines may be."""
    for place in finding.places.get("shared", ()):
        return clone_alias(program, place)
    written = finding.facts["written"]
    shared = [found for source in index_of(program).sources for found in _sharing(source)]
    named = [place for name, place in shared if name == written]
    found = named or [place for _, place in shared]
    return clone_alias(program, found[0]) if len(found) == 1 else None


def _sharing(source: Source) -> Iterator[tuple[str, Place]]:
    """`torch.from_numpy(buffer)`, or `buffer = t.detach().numpy()`: the array's name, and where."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and called_name(node) in _FROM_NUMPY and node.args:
            yield _base(node.args[0]), source.place(node.lineno, None, node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if called_name(node.value) == "numpy":
                place = source.place(node.lineno, None, node.value)
                yield from ((ast.unparse(t), place) for t in node.targets)


def _saved_copy(program: Program, write: Place, written: str) -> Edits:
    """`ctx.save_for_backward(x)` -> `ctx.save_for_backward(x.clone())` in the writing function."""
    source = program.source_at(write)
    if source is None:
        return None
    line = write.line - source.offset
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        if function.lineno <= line <= (function.end_lineno or function.lineno):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and called_name(node) == "save_for_backward":
                    if written in map(ast.unparse, node.args):
                        return clone_operand(program, source.place(node.lineno), written)
    return None


def _base(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node)


def _place(finding: Finding, what: What) -> Place | None:
    event = finding.event(what)
    return None if event is None else event.place
