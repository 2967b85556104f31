"""Attributes that a constructor computed from parameters, made properties: computed when read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from ...model import Edits, Place
from ...program import Program, called_name, last_name
from ...program_index import index_of
from ..analysis.effects import bound_in, effects, local_names, parameter_names
from ..engine.cst_tools import dotted, head, keyword, literal_bool, walk
from ..engine.draft import Draft
from ..engine.imports import Imports
from ..engine.tree import Statement, position, statements_in, tree_at
from .kept_argument import Constructor, constructor_of, kept_locals, method_of
from .remove_memoization import differs_each_time

_CHANGING = frozenset("append extend insert pop popitem clear update add remove setdefault".split())
_FIELDS = frozenset({"asdict", "astuple", "fields", "__slots__", "__dict__", "vars"})
#: What is asked of, or left on, one tensor: another one each time would not have it.
_OF_ONE = frozenset({"grad", "retain_grad", "register_hook"})


@dataclass(frozen=True, eq=False)
class _Computed:
    """`self.<name> = …` in a constructor, and the statements before it that give it its locals."""

    name: str
    stored: Statement
    value: cst.BaseExpression
    before: tuple[Statement, ...]
    parameters: tuple[str, ...]


def attributes_as_properties(
    program: Program, places: Sequence[Place], use_places: Sequence[Place]
) -> Edits | None:
    """Make properties of the attributes that the constructor's statements at `places` go into.

    One of the statements at `use_places` (as a rule the calls that lead to the use) reads one of
    them.  Each read computes the value from the parameters as they are then.  None where the
    program changes such an attribute, keeps what it read, or where the computation draws a number
    or makes a parameter.
    """
    tree = tree_at(program, places[0])
    made = [tree.statement(p) for p in places]
    found = None if not made else constructor_of(tree, made[0])
    if found is None or any(tree_at(program, p) is not tree for p in places):
        return None
    owner, method = found
    computed = [c for s in statements_in(method.body) if (c := _computed(method, s)) is not None]
    computed = [c for c in computed if any(m is s for m in made for s in (*c.before, c.stored))]
    covered = {id(s) for c in computed for s in (*c.before, c.stored)}
    if not _read(program, use_places) & {c.name for c in computed}:
        return None
    if any(id(m) not in covered for m in made):
        return None
    imports = Imports.of(program, tree.source)
    if any(_is_once_only(program, imports, c) or _is_changed(program, c.name) for c in computed):
        return None
    return _rewritten(Constructor(program, tree, owner, method), computed)


def _read(program: Program, places: Sequence[Place]) -> set[str]:
    """The attributes that some statements read, each time that they run."""
    found: set[str] = set()
    for place in places:
        tree = tree_at(program, place)
        statement = tree.statement(place)
        once = statement is None or isinstance(statement, cst.For)  # a loop reads its list once
        nodes = () if statement is None or once else head(statement)
        found |= {n.attr.value for n in nodes if isinstance(n, cst.Attribute)}
    return found


def _computed(method: cst.FunctionDef, stored: Statement) -> _Computed | None:
    """The attribute that a statement of the constructor stores, with what it is computed from."""
    target = stored.targets[0].target if isinstance(stored, cst.Assign) else None
    path = None if target is None else dotted(target)
    if not isinstance(stored, cst.Assign) or len(stored.targets) != 1 or path is None:
        return None
    first, _, name = path.partition(".")
    if first != "self" or not name.isidentifier():
        return None
    local, inside = local_names(method) - {"self"}, statements_in(method.body)
    at = position(inside, stored)
    needed, before = _heads(stored.value) & local, list[Statement]()
    for statement in reversed(inside[:at]):
        written = {p.partition(".")[0] for p in effects(statement).writes} & needed
        if not written:
            continue
        plain = isinstance(statement, cst.Assign) and written == effects(statement).writes
        if not plain or not isinstance(statement, cst.Assign) or written & _heads(statement.value):
            return None
        before.insert(0, statement)
        needed |= _heads(statement.value) & local
    own = {name for s in before for name in effects(s).writes}
    parameters = parameter_names(method)
    if bound_in(method.body) & needed & parameters or not needed <= own | parameters:
        return None
    run = [*before, stored]
    since = inside[position(inside, run[0]) : at]
    if any(_writes_for(s, run) for s in since if s not in run):
        return None
    return _Computed(name, stored, stored.value, tuple(before), tuple(sorted(needed - own)))


def _writes_for(statement: Statement, run: Sequence[Statement]) -> bool:
    """Whether a statement gives what the others read another value."""
    read = {path for s in run for path in effects(s).reads}
    return any(r == w or r.startswith(w + ".") for w in effects(statement).writes for r in read)


def _heads(node: cst.CSTNode) -> set[str]:
    return {path.partition(".")[0] for path in effects(node).reads}


def _is_once_only(program: Program, imports: Imports, computed: _Computed) -> bool:
    """Whether computing it anew would draw other numbers or make other parameters or objects."""
    classes = {n.name for _, n in index_of(program).nodes(ast.ClassDef)}
    statements = (*computed.before, computed.stored)
    calls = (n for s in statements for n in walk(s) if isinstance(n, cst.Call))
    return any(differs_each_time(imports, s) for s in statements) or any(
        (dotted(call.func) or "").rpartition(".")[2] in classes for call in calls
    )


def _is_changed(program: Program, name: str) -> bool:
    """Whether the program stores the attribute elsewhere, changes what it holds, keeps what it read
    outside of loops and functions, asks for its gradient, or reaches it by its name as a text."""
    stores = 0
    for source, node in index_of(program).nodes(ast.AST):
        if isinstance(node, ast.Constant) and node.value == name:
            return True
        if last_name(node) in _FIELDS:
            return True
        if isinstance(node, ast.Attribute) and node.attr == name:
            stores += not isinstance(node.ctx, ast.Load)
            if any(s in source.tree.body for s in source.around(node) if isinstance(s, ast.Assign)):
                return True
        if _changes(node, name) or _asks_the_one(node, name):
            return True
    return stores != 1


def _changes(node: ast.AST, name: str) -> bool:
    """`x.name[0] = v`, `x.name.mean = v`, `x.name.append(v)`, `x.name.mul_(2)`"""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        called = called_name(node)
        changing = called in _CHANGING or (called.endswith("_") and not called.endswith("__"))
        return changing and _reaches(node.func.value, name)
    inner = isinstance(node, (ast.Subscript, ast.Attribute)) and node.value
    stored = not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    return isinstance(inner, ast.expr) and stored and _reaches(inner, name)


def _asks_the_one(node: ast.AST, name: str) -> bool:
    """`x.name.grad`, `x.name.retain_grad()`"""
    return isinstance(node, ast.Attribute) and node.attr in _OF_ONE and _reaches(node.value, name)


def _reaches(node: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == name for n in ast.walk(node))


def _rewritten(where: Constructor, computed: Sequence[_Computed]) -> Edits | None:
    tree, method = where.tree, where.method
    draft, going = Draft(tree), {id(c.stored) for c in computed}
    inside = statements_in(method.body)
    helping = {id(b) for c in computed for b in c.before}
    for statement in reversed([s for s in inside if id(s) in helping]):
        after = inside[position(inside, statement) + 1 :]
        others = [s for s in after if id(s) not in going]
        if not any(_heads(s) & effects(statement).writes for s in others):
            going.add(id(statement))
    if len(going) == len(inside):
        return None
    needed = list(dict.fromkeys(p for c in computed for p in c.parameters))
    run = [s for c in computed for s in (*c.before, c.stored)]
    kept = kept_locals(where, needed, run)
    if kept is None:
        return None
    saved = [k.saved for k in kept.values() if k.saved is not None]
    first = next(s for s in inside if any(s is c.stored for c in computed))
    for statement in inside:
        if statement is first and saved:
            draft.instead(statement, saved)
        elif id(statement) in going:
            draft.remove(statement)
    for field in _fields(where.owner, {c.name for c in computed}):
        if not _is_no_argument(field):
            return None
        draft.remove(field)
    runs = {c.name: [*c.before, cst.Return(c.value)] for c in computed}
    properties = [method_of(name, run, kept, ("property",)) for name, run in runs.items()]
    return draft.after(method, properties).edits()


def _fields(owner: cst.ClassDef, names: set[str]) -> Iterator[cst.AnnAssign]:
    """The class' own `name: type` lines."""
    for statement in statements_in(owner.body):
        if isinstance(statement, cst.AnnAssign) and dotted(statement.target) in names:
            yield statement


def _is_no_argument(field: cst.AnnAssign) -> bool:
    """`activated: dict = field(init=False)`"""
    given = keyword(field.value, "init") if isinstance(field.value, cst.Call) else None
    return given is not None and literal_bool(given.value) is False
