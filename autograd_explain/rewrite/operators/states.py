"""What an object keeps between the rounds of a loop: cut off, or as it was in the beginning."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import libcst as cst

from ...program import Program, last_name
from ...program_index import index_of
from ..engine.cst_tools import called_on
from ..engine.cst_tools import statement as make
from ..engine.draft import Draft
from ..engine.proposal import Edits
from ..engine.tree import statements_in
from .site import Change, Site

_ENDS_ROUND = ("step", "backward")
_MOST_OBJECTS = 6


def left_detached(site: Site) -> Iterator[Change]:
    """`optimizer.step()`, then `net.h = net.h.detach()`: what a method has left in the object goes
    on without the graph of the rounds before."""
    own = site.statement
    alone = isinstance(own, cst.Expr) and called_on(own, *_ENDS_ROUND) is not None
    if not alone or not site.tree.loops(own):
        return
    for owner, names in _kept_here(site):
        code = ", ".join(f"{owner}.{name}" for name in names)
        for how in ("{x}.detach()", "tuple(t.detach() for t in {x})"):
            yield site.change("left_detached", code, partial(_cut, site, owner, names, how))


def as_in_the_beginning(site: Site) -> Iterator[Change]:
    """`for epoch …:` with `net.h = None` as its first line, where that is what h begins as."""
    loop = site.statement
    if isinstance(loop, (cst.For, cst.While)) and statements_in(loop.body):
        for owner, names in _kept_here(site):
            empty = [name for name in names if _begins_as_none(site.program, name)]
            if empty:
                code = ", ".join(f"{owner}.{name}" for name in empty)
                reset = partial(site.opening, *(f"{owner}.{name} = None" for name in empty))
                yield site.change("as_in_the_beginning", code, reset)


def _kept_here(site: Site) -> Iterator[tuple[str, Sequence[str]]]:
    """Objects that a site may name, with what their methods keep from call to call."""
    kept = _kept(site.program)
    paths = {path: names for cls, names in kept.items() for path in _paths(site.program, cls)}
    for name in _called_in_scope(site):
        for names in kept.values():
            paths.setdefault(name, names)
    yield from list(paths.items())[:_MOST_OBJECTS]


def _kept(program: Program) -> Mapping[str, Sequence[str]]:
    """Of every class the attributes that a method beside the constructor both reads and sets."""
    found: dict[str, Sequence[str]] = {}
    for _, cls in index_of(program).nodes(ast.ClassDef):
        names: dict[str, None] = {}
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                read, stored = _own(method, ast.Load), _own(method, ast.Store)
                names |= dict.fromkeys(name for name in stored if name in read)
        if names:
            found.setdefault(cls.name, tuple(names))
    return found


def _own(method: ast.FunctionDef, context: type[ast.expr_context]) -> list[str]:
    """The attributes of `self` that a method reads or sets."""
    return [
        node.attr
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, context)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    ]


def _paths(program: Program, cls: str, depth: int = 2) -> Iterator[str]:
    """How the program's top level calls objects of a class: `net`, `model.cell`."""
    for source, node in index_of(program).nodes(ast.Assign):
        if not isinstance(node.value, ast.Call) or last_name(node.value.func) != cls:
            continue
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id
            elif isinstance(target, ast.Attribute) and last_name(target.value) == "self" and depth:
                classes = (c for c in source.around(node) if isinstance(c, ast.ClassDef))
                holder = next(classes, None)
                if holder is not None and holder.name != cls:
                    paths = _paths(program, holder.name, depth - 1)
                    yield from (f"{path}.{target.attr}" for path in paths)


def _called_in_scope(site: Site) -> Iterator[str]:
    """Parameters of the function around that are called there: `model` of `model(x)`."""
    scope = site.tree.scope_of(site.statement)
    if not isinstance(scope, cst.FunctionDef):
        return
    given = {p.name.value for p in scope.params.params}
    found = {
        node.func.value
        for statement in site.tree.statements
        if site.tree.scope_of(statement) is scope
        for node in Site(site.program, site.tree, statement).calls
        if isinstance(node.func, cst.Name)
    }
    yield from sorted(given & found)


def _begins_as_none(program: Program, name: str) -> bool:
    """Whether constructors, or the class itself, set an attribute to None."""
    for _, node in index_of(program).nodes(ast.Assign):
        none = isinstance(node.value, ast.Constant) and node.value.value is None
        if none and any(last_name(target) == name for target in node.targets):
            return True
    return False


def _cut(site: Site, owner: str, names: Sequence[str], how: str) -> Edits | None:
    paths = [cst.parse_expression(f"{owner}.{name}") for name in names]
    lines = [make(f"{{x}} = {how}", x=path) for path in paths]
    return Draft(site.tree).after(site.statement, lines).edits()
