"""Calls and single statements changed as text: an argument, a name, a line before or behind."""

from __future__ import annotations

import ast
from dataclasses import replace

import libcst as cst

from ...model import Place
from ...program import Program
from ..engine.cst_tools import targets, unpacked, walk
from ..engine.draft import Draft
from ..engine.imports import torch_at
from ..engine.proposal import Edits
from ..engine.tree import position, statement_at
from .uncut import (
    apply_patches,
    argument_taken_out,
    called,
    code_of,
    keyword_added,
    node_at,
    replacement,
)


def call_behind(program: Program, place: Place | None, method: str) -> Edits | None:
    """`x` -> `x.mean()`, `a + b` -> `(a + b).mean()`; `method` is written without brackets."""
    return apply_patches(called(program, place, method))


def operand(program: Program, place: Place, node: ast.expr) -> str:
    """A node's text as a method can be called on it, in parentheses where it needs them."""
    code = code_of(program, place, node)
    atom = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return code if atom else f"({code})"


def text_behind(program: Program, place: Place | None, text: str) -> Edits | None:
    """`x` -> `x.to(y.dtype)`, in parentheses where it needs them."""
    node = node_at(program, place)
    if node is None or place is None:
        return None
    code = f"{operand(program, place, node)}.{text}"
    return apply_patches(replacement(program, place, code))


def expression_replaced(program: Program, place: Place | None, template: str) -> Edits | None:
    """Another expression for the one at the span; `{x}` in the template is its text."""
    node = node_at(program, place)
    if node is None or place is None:
        return None
    code = code_of(program, place, node)
    return apply_patches(replacement(program, place, template.replace("{x}", code)))


def torch_expression(program: Program, place: Place | None, template: str) -> Edits | None:
    """The same with `{torch}` for the name that torch has there; None where it has none."""
    torch = torch_at(program, place)
    code = template.replace("{torch}", torch or "")
    return expression_replaced(program, place, code) if torch else None


def call_removed(program: Program, place: Place | None) -> Edits | None:
    """`Net().half()` -> `Net()`: the method call at the span gone, its receiver left."""
    node = node_at(program, place)
    if place is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    return apply_patches(replacement(program, place, code_of(program, place, node.func.value)))


def keyword_set(program: Program, place: Place | None, name: str, value: str) -> Edits | None:
    """`name=value` in the call at the span, added or changed."""
    return apply_patches(keyword_added(program, place, name, value))


def torch_keyword(program: Program, place: Place | None, name: str, value: str) -> Edits | None:
    """`name=torch.value` in the call at the span; None where torch has no name there."""
    torch = torch_at(program, place)
    return keyword_set(program, place, name, f"{torch}.{value}") if torch else None


def keyword_removed(program: Program, place: Place | None, *names: str) -> Edits | None:
    """The call at the span without the first of these keyword arguments that it has."""
    source, node = program.source_at(place), node_at(program, place)
    if source is None or not isinstance(node, ast.Call):
        return None
    gone = next((k for k in node.keywords if k.arg in names), None)
    return None if gone is None else apply_patches(argument_taken_out(source, node, gone))


def arguments_emptied(program: Program, place: Place | None) -> Edits | None:
    """`scheduler.step(epoch)` -> `scheduler.step()`."""
    node = node_at(program, place)
    if not isinstance(node, ast.Call) or place is None:
        return None
    return apply_patches(replacement(program, place, f"{code_of(program, place, node.func)}()"))


def renamed(program: Program, place: Place | None, function: str) -> Edits | None:
    """Another function called with the same arguments: `{owner}` is what stands before the dot."""
    source, node = program.source_at(place), node_at(program, place)
    if source is None or place is None or not isinstance(node, ast.Call):
        return None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if owner is None and "{owner}." in function:
        function = function.replace("{owner}.", "")
    code = "" if owner is None else code_of(program, place, owner)
    where = replace(place, span=source.span(node.func))
    return apply_patches(replacement(program, where, function.replace("{owner}", code)))


def line_before(program: Program, place: Place | None, code: str) -> Edits | None:
    """Statements put before the one at the place."""
    return _inserted(program, place, code, after=False)


def line_behind(program: Program, place: Place | None, code: str) -> Edits | None:
    """Statements put behind the one at the place."""
    return _inserted(program, place, code, after=True)


def called_sooner(
    program: Program, place: Place | None, target_place: Place | None
) -> Edits | None:
    """A call of its own line put before another statement of its block.

    Unlike `move_before` it may pass statements that use the same objects, as where those fail
    because the call comes too late; not one that binds a name which the call reads.
    """
    tree, moved = statement_at(program, place)
    other, target = statement_at(program, target_place)
    if not isinstance(moved, cst.Expr) or target is None or other is not tree:
        return None
    order, last = tree.siblings(moved)
    if not order or tree.block_of(target) is not tree.block_of(moved):
        return None
    first = position(order, target)
    read = {n.value for n in walk(moved) if isinstance(n, cst.Name)}
    bound = {
        n.value for s in order[first:last] for t in targets(s) for n in unpacked(t)
        if isinstance(n, cst.Name)
    }  # fmt: skip
    if last <= first or read & bound:
        return None
    return Draft(tree).move([moved], target, after=False).edits()


def statement_replaced(program: Program, place: Place, code: str) -> Edits | None:
    """One statement in the place of another."""
    tree, statement = statement_at(program, place)
    if statement is None:
        return None
    return Draft(tree).instead(statement, _statements(code)).edits()


def _inserted(program: Program, place: Place | None, code: str, after: bool) -> Edits | None:
    tree, statement = statement_at(program, place)
    if statement is None:
        return None
    draft = Draft(tree)
    (draft.after if after else draft.before)(statement, _statements(code))
    return draft.edits()


def _statements(code: str) -> list[cst.BaseSmallStatement | cst.BaseCompoundStatement]:
    found: list[cst.BaseSmallStatement | cst.BaseCompoundStatement] = []
    for line in cst.parse_module(code).body:
        if isinstance(line, cst.SimpleStatementLine):
            found.extend(line.body)
        else:
            found.append(line)
    return found


def renamed_around(program: Program, place: Place | None, method: str) -> Edits | None:
    """Another method called on the expression at the span: `x.detach_()` -> `x.detach()`."""
    source, node = program.source_at(place), node_at(program, place)
    outer = None if source is None or node is None else source.parents.get(node)
    if source is None or place is None or not isinstance(outer, ast.Attribute):
        return None
    where = replace(place, span=source.span(outer))
    code = f"{code_of(program, place, outer.value)}.{method}"
    return apply_patches(replacement(program, where, code))


def without_keyword(program: Program, place: Place | None, name: str) -> str | None:
    """The text of the call at the span without one of its keyword arguments."""
    node = node_at(program, place)
    if place is None or not isinstance(node, ast.Call):
        return None
    given = [code_of(program, place, a) for a in node.args]
    given += [code_of(program, place, k) for k in node.keywords if k.arg != name]
    return f"{code_of(program, place, node.func)}({', '.join(given)})"
