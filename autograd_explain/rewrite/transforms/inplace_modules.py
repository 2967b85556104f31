"""Modules that overwrite their input: `nn.ReLU(inplace=True)` -> `nn.ReLU()`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ...model import Place
from ...program import Program, called_name, first_line
from ...program_index import index_of
from ..analysis.effects import fresh
from ..analysis.inplace_names import MODULE_INPLACE_POSITION
from ..analysis.written_target import assigned
from ..engine.cst_tools import (
    dotted,
    head,
    keyword,
    literal_bool,
    positional,
    same,
    targets,
    walk,
    without,
)
from ..engine.draft import Draft
from ..engine.imports import Imports, imports_at
from ..engine.proposal import Edits
from ..engine.tree import Tree, statement_at, tree_at, tree_of
from .call_edits import line_before, line_behind

_DEPTH = 3  #: how many functions and classes are followed from a call to a constructor


@dataclass(frozen=True, eq=False)
class _Flag:
    """The argument that makes a module work in place."""

    tree: Tree
    call: cst.Call
    argument: cst.Arg


def module_not_inplace(program: Program, place: Place, module: str | None = None) -> Edits | None:
    """Let a module make a new tensor: drop `inplace=True` where it is constructed.

    `place` is the constructor's line or a call of the module (`self.act(x)`, `net(x)`), whose
    constructor is then looked up in the class, the cells and the functions called there.
    `module` says which callee is meant where the statement calls several.  None where some other
    statement calls it for the write alone (`self.act(x)`).
    """
    tree = tree_at(program, place)
    flags = _constructed_here(program, tree, place) if module is None else []
    if not flags:
        flags = _of_the_callee(program, tree, place, module)
    if not flags or any(f.tree is not flags[0].tree for f in flags):
        return None
    if any(_is_called_for_its_write(program, flag) for flag in flags):
        return None
    draft = Draft(flags[0].tree)
    for flag in flags:
        draft.replace(flag.call, without(flag.call, flag.argument))
    return draft.edits()


def modules_set_not_inplace(program: Program, place: Place, owner: str) -> Edits | None:
    """The flags of all modules in `owner` (`model`, `explainer.net`) switched off behind the
    statement that made it, else before the one at `place`: for modules that a library constructs.
    """
    if not owner:
        return None
    root = re.split(r"[.[]", owner)[0]
    tree, failing = statement_at(program, place)
    trees = [tree_of(program, source) for source in index_of(program).namespace(tree.source)]
    made = [
        (other, s)
        for other in trees
        for s in other.statements
        if other.scope_of(s) is other.module and any(same(other, t, root) for t in targets(s))
    ]
    if not made and failing is None:
        return None
    other, statement = made[-1] if made else (tree, failing)
    assert statement is not None
    name = fresh(other, statement, "module")
    loop = (
        f"for {name} in {owner}.modules():\n"
        f'    if hasattr({name}, "inplace"):\n'
        f"        {name}.inplace = False\n"
    )
    return (line_behind if made else line_before)(program, other.place(statement), loop)


def _is_called_for_its_write(program: Program, flag: _Flag) -> bool:
    """Whether a statement drops what the module returns: then its input has to change."""
    made = flag.tree.statement_of(flag.call)
    if not isinstance(made, (cst.Assign, cst.AnnAssign)) or made.value is not flag.call:
        return False
    names = {path.rpartition(".")[2] for t in targets(made) if (path := dotted(t))}
    statements = (node for _, node in index_of(program).nodes(ast.Expr))
    return any(called_name(s.value) in names for s in statements)


def _constructed_here(program: Program, tree: Tree, place: Place) -> list[_Flag]:
    """In-place constructors of the statement: those on the very line where there are any."""
    imports = imports_at(program, place)
    found = [f for s in tree.candidates(place) for n in head(s) for f in _flag(tree, imports, n)]
    if place.span is not None:
        exact = [f for f in found if tree.span(f.call) == place.span]
        return exact or found
    on_line = [f for f in found if tree.span(f.call).line == place.line]
    return on_line or found


def _of_the_callee(program: Program, tree: Tree, place: Place, module: str | None) -> list[_Flag]:
    """The in-place constructors behind the one called module that has any."""
    by_callee: dict[str, list[_Flag]] = {}
    for statement in tree.candidates(place):
        for node in head(statement):
            if not isinstance(node, cst.Call):
                continue
            name = dotted(_without_index(node.func))
            if name is None or (module is not None and not same(tree, node.func, module)):
                continue
            flags = list(_behind(program, tree, node, name, place))
            if flags:
                by_callee[name] = flags
    return next(iter(by_callee.values())) if len(by_callee) == 1 else []


def _without_index(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, cst.Subscript):
        node = node.value
    return node


def _behind(
    program: Program, tree: Tree, call: cst.Call, name: str, place: Place
) -> Iterator[_Flag]:
    """In-place constructors in what was assigned to `self.act` in the class, or to `net`."""
    owner, _, attribute = name.rpartition(".")
    if owner == "self":
        classes = [a for a in tree.ancestors(call) if isinstance(a, cst.ClassDef)]
        for node in _with_bases(program, tree, classes[0]) if classes else ():
            yield from _assigned_in(program, node[0], node[1], f"self.{attribute}", place)
    elif not owner:
        for source in reversed(index_of(program).namespace(tree.source)):
            other = tree_of(program, source)
            # A cell that ran later gave the name another module.
            if any(assigned(other, other.module, name)):
                yield from _assigned_in(program, other, other.module, name, place)
                return


def _with_bases(
    program: Program, tree: Tree, node: cst.ClassDef
) -> list[tuple[Tree, cst.ClassDef]]:
    found = [(tree, node)]
    for base in (b for _, c in found[:1] for b in c.bases):
        definition = _definition(program, tree, dotted(base.value) or "")
        if definition is not None and isinstance(definition[1], cst.ClassDef):
            found.append((definition[0], definition[1]))
    return found


def _assigned_in(
    program: Program, tree: Tree, where: cst.CSTNode, name: str, place: Place
) -> Iterator[_Flag]:
    for value in assigned(tree, where, name):
        yield from _in_expression(program, tree, value, place, _DEPTH)


def _in_expression(
    program: Program, tree: Tree, value: cst.CSTNode, place: Place, depth: int
) -> Iterator[_Flag]:
    """In-place constructors in an expression and in the functions it calls."""
    imports = imports_at(program, tree.place(value) if value in tree.positions else place)
    direct = [f for node in walk(value) for f in _flag(tree, imports, node)]
    yield from direct
    if direct or not depth:
        return
    for node in walk(value):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            definition = _definition(program, tree, node.func.value)
            if definition is not None and isinstance(definition[1], cst.FunctionDef):
                inner, function = definition
                yield from _in_expression(program, inner, function.body, place, depth - 1)


def _definition(
    program: Program, tree: Tree, name: str
) -> tuple[Tree, cst.FunctionDef | cst.ClassDef] | None:
    """What a text means by the name of a function or class."""
    for source, node in index_of(program).defined(name, tree.source):
        other = tree_of(program, source)
        lines = range(first_line(node) + source.offset, node.lineno + source.offset + 1)
        for found in other.statements:
            if isinstance(found, (cst.FunctionDef, cst.ClassDef)) and found.name.value == name:
                if other.span(found).line in lines:
                    return other, found
    return None


def _flag(tree: Tree, imports: Imports, node: cst.CSTNode) -> list[_Flag]:
    """The `inplace` argument of a torch.nn constructor, or of `partial(nn.ReLU, inplace=True)`."""
    if not isinstance(node, cst.Call):
        return []
    full = imports.full(dotted(node.func))
    if full == "functools.partial" and node.args:
        full = imports.full(dotted(node.args[0].value))
        found = keyword(node, "inplace")
    elif full.startswith("torch.nn.") and not full.startswith("torch.nn.functional."):
        at, given = MODULE_INPLACE_POSITION.get(full.rpartition(".")[2]), positional(node)
        by_position = given[at] if at is not None and at < len(given) else None
        found = keyword(node, "inplace") or by_position
    else:
        return []
    if found is None or not full.startswith("torch.nn.") or literal_bool(found.value) is False:
        return []
    return [_Flag(tree, node, found)]
