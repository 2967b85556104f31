"""A local name of a constructor kept on self, for what computes with it later."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import cast

import libcst as cst

from ...arguments import bind, given_by
from ...program import called_name
from ...program_index import index_of
from ..analysis.effects import bound_in, parameter_names
from ..engine.blocks import suite
from ..engine.cst_tools import (
    Renamed,
    clauses,
    dotted,
    expression,
    make,
    named_targets,
    positional_parameters,
    unpacked,
    walk,
)
from ..engine.tree import Statement, Tree, statements_in

_ITERATORS = frozenset(
    "parameters named_parameters modules named_modules children named_children buffers map zip "
    "filter iter enumerate reversed chain islice".split()
)


@dataclass(frozen=True, eq=False)
class Kept:
    """`path` is how later code spells the local; `saved` puts it there, None where the
    constructor itself does."""

    path: cst.BaseExpression
    saved: Statement | None


@dataclass(frozen=True, eq=False)
class Constructor:
    """A class, and the method of it that computes."""

    tree: Tree
    owner: cst.ClassDef
    method: cst.FunctionDef


def constructor_of(tree: Tree, inside: Statement | None) -> Constructor | None:
    """The method around a statement, and its class."""
    method = tree.around(inside, cst.FunctionDef)
    owner = tree.around(method, cst.ClassDef)
    if method is None or owner is None or tree.scope_of(method) is not owner:
        return None
    return Constructor(tree, owner, method)


def kept_locals(
    where: Constructor, locals_read: Sequence[str], run: Sequence[Statement]
) -> dict[str, Kept] | None:
    """How the statements of `run` get at the locals they read, once they run elsewhere and more
    than once; None where one of them may be used up by the first time, or the statements bind the
    name themselves."""
    bound = {name for s in run for node in walk(s) for name in _own_names(node)}
    given = (value for name in locals_read for value in _given(where, name))
    once = (isinstance(v, ast.GeneratorExp) or called_name(v) in _ITERATORS for v in given)
    if not bound.isdisjoint(locals_read) or any(once):
        return None
    return {name: _kept(where, name, run) for name in locals_read}


def method_of(
    name: str,
    run: Sequence[Statement],
    kept: Mapping[str, Kept],
    decorators: Sequence[str] = (),
) -> cst.FunctionDef:
    """The statements as a method, with the attributes in the place of the locals."""
    renaming = Renamed({name: found.path for name, found in kept.items()})
    return cst.FunctionDef(
        cst.Name(name),
        cst.Parameters([cst.Param(cst.Name("self"))]),
        suite([cast(Statement, s.visit(renaming)) for s in run]),
        decorators=[cst.Decorator(cst.Name(decorator)) for decorator in decorators],
        leading_lines=[cst.EmptyLine(indent=False)],
    )


def _own_names(node: cst.CSTNode) -> set[str]:
    """What a comprehension or a lambda binds."""
    if isinstance(node, cst.Lambda):
        return parameter_names(node)
    if not isinstance(node, cst.BaseComp):
        return set()
    leaves = (leaf for c in clauses(node) for leaf in unpacked(c.target))
    return {leaf.value for leaf in leaves if isinstance(leaf, cst.Name)}


def _kept(where: Constructor, local: str, run: Sequence[Statement]) -> Kept:
    """By the attribute that the constructor gives it to, else in one of its own; what may be a
    module or a parameter in a tuple, or it would become part of this module."""
    if path := _attribute_of(where, local, run):
        return Kept(expression(path), None)
    taken = {n.attr.value for n in walk(where.tree.module) if isinstance(n, cst.Attribute)}
    path = f"self.{local if local not in taken else f'_{local}'}"
    given = list(_given(where, local))
    if given and all(isinstance(value, ast.Constant) for value in given):
        return Kept(expression(path), make(f"{path} = {local}"))
    return Kept(expression(f"{path}[0]"), make(f"{path} = ({local},)"))


def _given(where: Constructor, local: str) -> Iterator[ast.expr]:
    """What the program's calls of the class give for a parameter, its default included."""
    names = positional_parameters(where.method)[1:]
    for _, call in index_of(where.tree.program).calls_of(where.owner.name.value):
        given = bind(names, given_by(call)).get(local)
        yield from () if given is None else (given,)


def _attribute_of(where: Constructor, local: str, run: Sequence[Statement]) -> str:
    """`self.lam` of `self.lam = lam` before the run, where neither gets another value; "" where
    there is none."""
    if local in bound_in(where.method.body):
        return ""
    above = takewhile(lambda s: s not in run, statements_in(where.method.body))
    for statement in above:
        if isinstance(statement, cst.Assign) and dotted(statement.value) == local:
            for path in named_targets(statement):
                owner, _, name = path.partition(".")
                known = (n for _, n in index_of(where.tree.program).nodes(ast.Attribute))
                stores = [n for n in known if n.attr == name and not isinstance(n.ctx, ast.Load)]
                if owner == "self" and len(stores) == 1:
                    return path
    return ""
