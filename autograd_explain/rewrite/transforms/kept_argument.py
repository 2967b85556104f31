"""A local name of a constructor kept on self, for what computes with it later."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import libcst as cst

from ...arguments import bind, given_by
from ...program import Program, called_name
from ...program_index import index_of
from ..analysis.effects import bound_in, is_argument, parameter_names
from ..engine.blocks import suite
from ..engine.cst_tools import (
    Renamed,
    clauses,
    dotted,
    expression,
    make,
    named,
    positional_parameters,
    single_targets,
    unpacked,
    walk,
)
from ..engine.tree import Statement, Tree, statements_in

_ITERATORS = frozenset(
    "parameters named_parameters modules named_modules children named_children buffers map zip "
    "filter iter enumerate reversed chain islice".split()
)
_ITERATING = frozenset({"sum", "list", "tuple", "sorted"})


def constructor_of(
    tree: Tree, inside: Statement | None
) -> tuple[cst.ClassDef, cst.FunctionDef] | None:
    """The method around a statement, and its class."""
    method = tree.around(inside, cst.FunctionDef)
    owner = None if method is None else tree.scope_of(method)
    return (owner, method) if method is not None and isinstance(owner, cst.ClassDef) else None


@dataclass(frozen=True, eq=False)
class Kept:
    """`path` is how later code spells the local; `saved` puts it there, None where the
    constructor itself does."""

    path: cst.BaseExpression
    saved: Statement | None


@dataclass(frozen=True, eq=False)
class Constructor:
    """A class, the method of it that computes, and what else the program has."""

    program: Program
    tree: Tree
    owner: cst.ClassDef
    method: cst.FunctionDef


def kept_locals(
    where: Constructor, locals_read: Sequence[str], run: Sequence[Statement]
) -> dict[str, Kept] | None:
    """How the statements of `run` get at the locals they read, once they run elsewhere and more
    than once; None where one of them may be used up by the first time, or the statements bind the
    name themselves."""
    kept = {name: _kept(where, name, run) for name in locals_read}
    known = {name: found for name, found in kept.items() if found is not None}
    return known if len(known) == len(kept) else None


def method_of(
    name: str, run: Sequence[Statement], kept: Mapping[str, Kept], decorators: Sequence[str] = ()
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


def _kept(where: Constructor, local: str, run: Sequence[Statement]) -> Kept | None:
    if any(local in _own_names(node) for s in run for node in walk(s)):
        return None
    stored = _stored_as(where, local, run)
    if stored is not None:
        return Kept(expression(f"self.{stored}"), None)
    name = free_attribute(where.tree, local)
    saved, path = local, f"self.{name}"
    if _is_only_iterated(local, run):
        saved = f"list({local})"
    elif any(_may_run_out(a) for a in _given(where, local)):
        return None
    elif _may_be_module(where.program, where.owner) and not _is_plain(where, local):
        # A module or a parameter would become part of this module as an attribute.
        saved, path = f"({local},)", f"self.{name}[0]"
    return Kept(expression(path), make(f"self.{name} = {saved}"))


def _own_names(node: cst.CSTNode) -> set[str]:
    """What a comprehension or a lambda binds."""
    if isinstance(node, cst.Lambda):
        return parameter_names(node)
    if not isinstance(node, cst.BaseComp):
        return set()
    leaves = (leaf for c in clauses(node) for leaf in unpacked(c.target))
    return {leaf.value for leaf in leaves if isinstance(leaf, cst.Name)}


def _stored_as(where: Constructor, local: str, run: Sequence[Statement]) -> str | None:
    """The attribute that the method gives the local to before the run, once and for all."""
    if local in bound_in(where.method.body) and not _bound_once(where, local):
        return None
    inside = statements_in(where.method.body)
    first = next((i for i, s in enumerate(inside) if any(s is r for r in run)), 0)
    for statement in inside[:first]:
        if not isinstance(statement, cst.Assign) or dotted(statement.value) != local:
            continue
        for target in statement.targets:
            first_name, _, name = (dotted(target.target) or "").partition(".")
            if first_name == "self" and name.isidentifier() and _is_stored_once(where, name):
                return name
    return None


def _bound_once(where: Constructor, local: str) -> bool:
    assigned = (n for n in walk(where.method.body) if isinstance(n, cst.Assign))
    names = [dotted(leaf) for s in assigned for leaf in single_targets(s)]
    return not is_argument(where.method, local) and names.count(local) == 1


def _is_stored_once(where: Constructor, name: str) -> bool:
    named = (n for _, n in index_of(where.program).nodes(ast.Attribute) if n.attr == name)
    return sum(not isinstance(n.ctx, ast.Load) for n in named) == 1


def _is_only_iterated(local: str, run: Sequence[Statement]) -> bool:
    """Whether each use goes through its elements: `sum(p.sum() for p in params)`."""
    read = [n for s in run for n in named(s, local)]
    iterated = {id(f.iter) for s in run for n in walk(s) for f in clauses(n)}
    iterated |= {
        id(n.args[0].value) for s in run for n in walk(s)
        if isinstance(n, cst.Call) and dotted(n.func) in _ITERATING and n.args
    }  # fmt: skip
    return bool(read) and all(id(n) in iterated for n in read)


def _given(where: Constructor, local: str) -> Iterator[ast.expr]:
    """What the program's calls of the class give for a parameter, its default included."""
    names = positional_parameters(where.method)[1:]
    for _, call in index_of(where.program).calls_of(where.owner.name.value):
        given = bind(names, given_by(call)).get(local)
        yield from () if given is None else (given,)


def _may_run_out(node: ast.expr) -> bool:
    called = called_name(node) if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.GeneratorExp) or called in _ITERATORS


def _is_plain(where: Constructor, local: str) -> bool:
    """Whether every call of the class gives a number or a text, as far as one sees."""
    given = list(_given(where, local))
    return bool(given) and all(_is_number(g) for g in given)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.Constant)


def _may_be_module(program: Program, owner: cst.ClassDef) -> bool:
    """Whether a class comes from torch.nn.Module, directly or by a class of the program."""
    classes = {n.name: n for _, n in index_of(program).nodes(ast.ClassDef)}
    pending, seen = [owner.name.value], set[str]()
    while pending:
        found = classes.get(pending.pop())
        for base in () if found is None or found.name in seen else found.bases:
            name = ast.unparse(base).rpartition(".")[2]
            if name not in classes and name != "object":
                return True
            pending.append(name)
        seen |= set() if found is None else {found.name}
    return False


def free_attribute(tree: Tree, local: str) -> str:
    """A name for an attribute that keeps a local: its own, if no attribute has it."""
    taken = {n.attr.value for n in walk(tree.module) if isinstance(n, cst.Attribute)}
    return local if local not in taken else f"_{local}"
