"""Modules that overwrite their input: `nn.ReLU(inplace=True)` -> `nn.ReLU()`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import libcst as cst

from ...model import Edits, Place
from ...program import Program, called_name
from ...program_index import index_of
from ..analysis.effects import base_path, fresh
from ..analysis.inplace_writes import inplace_argument
from ..analysis.written_target import assigned
from ..engine.cst_tools import calls_in, dotted, head, literal_bool, same, targets, walk, without
from ..engine.draft import Drafts
from ..engine.tree import Tree, tree_at, tree_of
from .spot import Spot

D = TypeVar("D", cst.FunctionDef, cst.ClassDef)
_DEPTH = 3  #: how many functions and classes are followed from a call to a constructor


@dataclass(frozen=True, eq=False)
class _Flag:
    """The argument that makes a module work in place."""

    tree: Tree
    call: cst.Call
    argument: cst.Arg
    of_torch: bool  #: a package's own default may be True


def module_not_inplace(program: Program, place: Place, module: str | None = None) -> Edits | None:
    """Let a module make a new tensor: drop `inplace=True` where it is constructed.

    `place` is the constructor's line or a call of the module (`self.act(x)`, `net(x)`), whose
    constructor is then looked up in the class, the cells and the functions called there.
    `module` says which callee is meant where the statement calls several.  None where some other
    statement calls it for the write alone (`self.act(x)`).
    """
    tree, drafts = tree_at(program, place), Drafts()
    flags = _constructed_here(tree, place) if module is None else []
    for flag in flags or _of_the_callee(tree, place, module):
        if _is_called_for_its_write(flag):
            return None
        if flag.of_torch:
            drafts[flag.tree].replace(flag.call, without(flag.call, flag.argument))
        else:
            drafts[flag.tree].replace(flag.argument.value, cst.Name("False"))
    return drafts.edits() if len(drafts) == 1 else None


def modules_set_not_inplace(program: Program, place: Place, owner: str) -> Edits | None:
    """The flags of all modules in `owner` (`model`, `explainer.net`) switched off behind the
    statement that made it, else before the one at `place`: for modules that a library constructs.
    """
    index, here = index_of(program), program.source_at(place)
    namespace = () if here is None else index.namespace(here)
    made = [
        source.place(node.lineno, None, node)
        for source, node in index.assignments(re.split(r"[.[]", owner)[0])
        if source.parents[node] is source.tree and source in namespace
    ]
    spot = Spot(program, made[-1] if made else place)
    if not owner or spot.own is None:
        return None
    loop = (
        "for {name} in {owner}.modules():\n"
        '    if hasattr({name}, "inplace"):\n'
        "        {name}.inplace = False\n"
    )
    put = spot.behind if made else spot.before
    return put(loop, name=fresh(spot.tree, spot.own, "module"), owner=owner)


def _is_called_for_its_write(flag: _Flag) -> bool:
    """Whether a statement drops what the module returns: then its input has to change."""
    made = flag.tree.statement_of(flag.call)
    if not isinstance(made, (cst.Assign, cst.AnnAssign)) or made.value is not flag.call:
        return False
    names = {path.rpartition(".")[2] for t in targets(made) if (path := dotted(t))}
    statements = (node for _, node in index_of(flag.tree.program).nodes(ast.Expr))
    return any(called_name(s.value) in names for s in statements)


def _constructed_here(tree: Tree, place: Place) -> list[_Flag]:
    """In-place constructors of the statement: those on the very line where there are any."""
    found = [f for s in tree.candidates(place) for n in head(s) for f in _flag(tree, n)]
    spans, meant = {f: tree.span(f.call) for f in found}, place.span
    return [
        f for f in found if meant == spans[f] or (not meant and spans[f].line == place.line)
    ] or found


def _of_the_callee(tree: Tree, place: Place, module: str | None) -> list[_Flag]:
    """The in-place constructors behind the one called module that has any."""
    by_callee: dict[str, list[_Flag]] = {}
    for statement in tree.candidates(place):
        for call in calls_in(statement):
            name = base_path(call.func)
            if name is None or (module is not None and not same(tree, call.func, module)):
                continue
            values = _assigned_values(tree, call, name)
            flags = [f for where, v in values for f in _in_expression(where, v, _DEPTH)]
            if flags:
                by_callee[name] = flags
    return next(iter(by_callee.values())) if len(by_callee) == 1 else []


def _assigned_values(
    tree: Tree, call: cst.Call, name: str
) -> Iterator[tuple[Tree, cst.BaseExpression]]:
    """What was assigned to `self.act` in the class and its bases, or to `net` where it was last."""
    owner = name.rpartition(".")[0]
    homes: list[tuple[Tree, cst.CSTNode]] = []
    if owner == "self":
        own = tree.around(call, cst.ClassDef)
        homes += [] if own is None else [(tree, own)]
        bases = [] if own is None else [dotted(base.value) or "" for base in own.bases]
        homes += (d for base in bases for d in _defined(tree, base, cst.ClassDef))
    elif not owner:
        homes += [(t, t.module) for t in tree.namespace if any(assigned(t, t.module, name))][-1:]
    for other, home in homes:
        yield from ((other, value) for value in assigned(other, home, name))


def _in_expression(tree: Tree, value: cst.CSTNode, depth: int) -> Iterator[_Flag]:
    """In-place constructors in an expression and in the functions it calls."""
    direct = [f for node in walk(value) for f in _flag(tree, node)]
    yield from direct
    if direct or not depth:
        return
    for node in walk(value):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            for inner, made in _defined(tree, node.func.value, cst.FunctionDef):
                yield from _in_expression(inner, made.body, depth - 1)


def _defined(tree: Tree, name: str, kind: type[D]) -> Iterator[tuple[Tree, D]]:
    """What a text means by the name of a function, or of a class, where it is one."""
    for source, node in index_of(tree.program).defined(name, tree.source):
        other = tree_of(tree.program, source)
        for found in other.candidates(source.place(node.lineno)):
            if isinstance(found, (cst.FunctionDef, cst.ClassDef)):
                yield from [(other, found)] if isinstance(found, kind) else ()
                return


def _flag(tree: Tree, node: cst.CSTNode) -> list[_Flag]:
    """The `inplace` argument of a torch.nn constructor, or of `partial(nn.ReLU, inplace=True)`; and
    `inplace=True` of what another package makes."""
    if not isinstance(node, cst.Call):
        return []
    full = tree.imports.full(dotted(node.func))
    flag = inplace_argument(node, full)
    if full == "functools.partial" and node.args:
        full = tree.imports.full(dotted(node.args[0].value))
    made = full.startswith("torch.nn.") and not full.startswith("torch.nn.functional.")
    other = "." in full and not full.startswith("torch.")
    on = flag is not None and literal_bool(flag.value) is True
    return [_Flag(tree, node, flag, made)] if flag is not None and (made or (other and on)) else []
