"""Attributes that a constructor computed from parameters, made properties: computed when read."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import libcst as cst

from ...model import Edits, Place
from ...program import Program, last_name
from ...program_index import index_of
from ..analysis.effects import bound_in, effects, local_names, parameter_names, reads_any
from ..engine.cst_tools import called_name, dotted, head, keyword, literal_bool, walk
from ..engine.draft import Draft
from ..engine.tree import Statement, Tree, statement_at, statements_in, tree_at
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

    @property
    def run(self) -> tuple[Statement, ...]:
        return *self.before, self.stored


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
    found = constructor_of(tree, made[0])
    if found is None or any(tree_at(program, p) is not tree for p in places):
        return None
    inside = statements_in(found.method.body)
    computed = [c for s in inside if (c := _computed(found.method, s)) is not None]
    computed = [c for c in computed if any(m in c.run for m in made)]
    if not _read(program, use_places) & {c.name for c in computed}:
        return None
    if not {s for c in computed for s in c.run}.issuperset(made):
        return None
    if any(_is_once_only(tree, c) or _is_changed(program, c.name) for c in computed):
        return None
    return _rewritten(found, computed)


def _read(program: Program, places: Sequence[Place]) -> set[str]:
    """The attributes that some statements read, each time that they run."""
    statements = (statement_at(program, place)[1] for place in places)
    often = (s for s in statements if not isinstance(s, cst.For))  # a loop reads its list once
    return {n.attr.value for s in often for n in head(s) if isinstance(n, cst.Attribute)}


def _computed(method: cst.FunctionDef, stored: Statement) -> _Computed | None:
    """The attribute that a statement of the constructor stores, with what it is computed from."""
    if not isinstance(stored, cst.Assign) or len(stored.targets) != 1:
        return None
    first, _, name = (dotted(stored.targets[0].target) or "").partition(".")
    if first != "self" or not name.isidentifier():
        return None
    local, inside = local_names(method) - {"self"}, statements_in(method.body)
    at = inside.index(stored)
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
    since = inside[inside.index(run[0]) : at]
    others = [effects(s).writes for s in since if s not in run]
    if any(reads_any(s, written) for s in run for written in others):
        return None  # what the others read gets another value
    value = stored.value
    if isinstance(value, cst.Call) and called_name(value) == "Parameter" and value.args:
        value = value.args[0].value  # which made a leaf of it
    return _Computed(name, stored, value, tuple(before), tuple(sorted(needed - own)))


def _heads(node: cst.CSTNode) -> set[str]:
    return {path.partition(".")[0] for path in effects(node).reads}


def _is_once_only(tree: Tree, computed: _Computed) -> bool:
    """Whether computing it anew would draw other numbers or make other parameters or objects."""
    classes = {n.name for _, n in index_of(tree.program).nodes(ast.ClassDef)}
    made = (*computed.before, computed.value)
    calls = (n for s in made for n in walk(s) if isinstance(n, cst.Call))
    return any(differs_each_time(tree.imports, s) for s in made) or any(
        called_name(call) in classes for call in calls
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
            around = list(source.around(node))
            if any(s in source.tree.body for s in around if isinstance(s, ast.Assign)):
                return True
            if any(map(_changes, takewhile(lambda n: isinstance(n, _PARTS), around))):
                return True
    return stores != 1


_PARTS = (ast.Subscript, ast.Attribute)


def _changes(part: ast.AST) -> bool:
    """`x.name[0] = v`, `x.name.mean = v`, `x.name.append(v)`, `x.name.mul_(2)`, `x.name.grad`"""
    stored = not isinstance(getattr(part, "ctx", ast.Load()), ast.Load)
    called = getattr(part, "attr", "")
    writes = called.endswith("_") and not called.endswith("__")
    return stored or writes or called in _CHANGING | _OF_ONE


def _rewritten(where: Constructor, computed: Sequence[_Computed]) -> Edits | None:
    draft, inside = Draft(where.tree), statements_in(where.method.body)
    stored: list[Statement] = [c.stored for c in computed]
    going, helping = set(stored), {s for c in computed for s in c.before}
    for statement in reversed([s for s in inside if s in helping]):
        after = inside[inside.index(statement) + 1 :]
        if not any(_heads(s) & effects(statement).writes for s in after if s not in going):
            going.add(statement)
    needed = list(dict.fromkeys(p for c in computed for p in c.parameters))
    kept = kept_locals(where, needed, [s for c in computed for s in c.run])
    if kept is None:
        return None
    for statement in going:
        draft.remove(statement)
    saved = [k.saved for k in kept.values() if k.saved is not None]
    draft.instead(next(s for s in inside if s in stored), saved)
    for field in statements_in(where.owner.body):
        if isinstance(field, cst.AnnAssign) and dotted(field.target) in {c.name for c in computed}:
            given = keyword(field.value, "init") if isinstance(field.value, cst.Call) else None
            if given is None or literal_bool(given.value) is not False:
                return None  # not `activated: dict = field(init=False)`
            draft.remove(field)
    runs = {c.name: [*c.before, cst.Return(c.value)] for c in computed}
    properties = [method_of(name, run, kept, ("property",)) for name, run in runs.items()]
    return draft.after(where.method, properties).edits()
