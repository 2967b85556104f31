"""Changes to the training step and to how a module holds its layers."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..engine.cst_tools import (
    called_name,
    called_on,
    dotted,
    expression,
    keyword,
    literal_bool,
    make,
    pairs,
    same,
    without,
)
from ..engine.draft import Draft, only
from ..engine.imports import Imports
from ..engine.tree import Statement, Tree, statement_at, tree_at
from .move_statement import lifted


def cleared_with_the_step(program: Program, zero_place: Place, step_place: Place) -> Edits | None:
    """`optimizer.zero_grad()` moved behind an `optimizer.step()` that only some rounds reach,
    `if i % 4 == 0: optimizer.step()`, that stands behind the rounds, or that a library lets pass
    in some of them."""
    tree, zero = statement_at(program, zero_place)
    other, step, _ = _step(program, step_place)
    if not isinstance(zero, cst.Expr) or step is None or other is not tree:
        return None
    level, rounds = (lifted(tree, a, tree.block_of(b)) for a, b in ((step, zero), (zero, step)))
    behind = isinstance(rounds, (cst.For, cst.While)) and tree.start(rounds) < tree.start(step)
    order, at = tree.siblings(zero)
    between = order[at + 1 : order.index(step)] if level is step else []
    beside = any(called_on(s, "backward") for s in between)
    if not (isinstance(level, cst.If) or behind or beside):
        return None
    return Draft(tree).remove(zero).after(step, [zero]).edits()


def zero_grad_after(program: Program, step_place: Place) -> Edits | None:
    """`optimizer.zero_grad()` on a line after `optimizer.step()`."""
    tree, step, cleared = _step(program, step_place)
    return Draft(tree).after(step, cleared).edits()


def zero_grad_before(
    program: Program, step_place: Place, backward_place: Place | None
) -> Edits | None:
    """`optimizer.zero_grad()` on a line before the backward whose gradients its step uses.

    Before the loop that the backward stands in, where the step stands behind that loop.
    """
    tree, step, cleared = _step(program, step_place)
    other, backward = statement_at(program, backward_place)
    if step is None or backward is None or other is not tree:
        return None
    level = lifted(tree, backward, tree.block_of(step))
    if level is None or tree.start(level) >= tree.start(step):
        return None
    return Draft(tree).before(level, cleared).edits()


def _step(program: Program, place: Place) -> tuple[Tree, Statement | None, list[Statement]]:
    """The statement `optimizer.step()` at a place, and `optimizer.zero_grad()`."""
    tree, statement = statement_at(program, place)
    owner = called_on(statement, "step")
    call = statement.value if isinstance(statement, cst.Expr) else None
    if owner is None or not isinstance(call, cst.Call) or call.args:
        return tree, None, []
    return tree, statement, [make("{x}.zero_grad()", x=owner)]


def module_list(program: Program, place: Place, attribute: str | None = None) -> Edits | None:
    """`self.layers = [nn.Linear(…), …]` -> `nn.ModuleList([…])`, so that the module knows them.

    A dict becomes an `nn.ModuleDict`, a list of parameters an `nn.ParameterList`.
    """
    return _wrapped(program, place, attribute, _registry)


def parameter_attribute(
    program: Program, place: Place, attribute: str | None = None
) -> Edits | None:
    """`self.w = torch.randn(n, requires_grad=True)` -> `self.w = nn.Parameter(torch.randn(n))`."""
    return _wrapped(program, place, attribute, _parameter)


def _wrapped(
    program: Program,
    place: Place,
    attribute: str | None,
    wrap: Callable[[Imports, cst.BaseExpression], cst.BaseExpression | None],
) -> Edits | None:
    tree = tree_at(program, place)
    given = (pair for statement in tree.candidates(place) for pair in pairs(statement))
    values = dict.fromkeys(v for t, v in given if attribute is None or same(tree, t, attribute))
    return only(
        Draft(tree).replace(value, new)
        for value in values
        if (new := wrap(tree.imports, value)) is not None
    )


def _registry(imports: Imports, value: cst.BaseExpression) -> cst.BaseExpression | None:
    inner = value.elt if isinstance(value, cst.ListComp) else None
    if isinstance(value, cst.List) and value.elements:
        inner = value.elements[0].value
    if isinstance(value, (cst.List, cst.ListComp)):
        parameters = isinstance(inner, cst.Call) and is_parameter(imports, inner)
        kind = "ParameterList" if parameters else "ModuleList"
    elif isinstance(value, (cst.Dict, cst.DictComp)):
        kind = "ModuleDict"
    else:
        return None
    name = imports.local(f"torch.nn.{kind}")
    return None if name is None else expression(f"{name}({{x}})", x=value)


def is_parameter(imports: Imports, call: cst.Call) -> bool:
    """Whether a call makes an `nn.Parameter`."""
    full = imports.full(dotted(call.func))
    return full in {"torch.nn.Parameter", "torch.nn.parameter.Parameter"}


def makes_layer(imports: Imports, call: cst.Call) -> bool:
    """Whether a call makes a layer of torch's: `nn.Linear(3, 1)`."""
    full = imports.full(dotted(call.func))
    return full.startswith("torch.nn.") and called_name(call)[:1].isupper()


def _parameter(imports: Imports, value: cst.BaseExpression) -> cst.BaseExpression | None:
    name = imports.local("torch.nn.Parameter")
    if name is None or not isinstance(value, cst.Call) or is_parameter(imports, value):
        return None
    flag = keyword(value, "requires_grad")
    plain = without(value, flag) if flag is not None and literal_bool(flag.value) else value
    return expression(f"{name}({{x}})", x=plain)
