"""What a call gives for each parameter of the function that it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")
FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def parameters(function: FunctionNode) -> list[str]:
    """The names of all parameters, `*args` and `**kwargs` last."""
    extra = [x for x in (function.args.vararg, function.args.kwarg) if x is not None]
    by_name = [a.arg for a in function.args.kwonlyargs]
    return [*positional_parameters(function), *by_name, *(x.arg for x in extra)]


def positional_parameters(function: FunctionNode) -> list[str]:
    """The names of the parameters that a position can fill."""
    return [a.arg for a in (*function.args.posonlyargs, *function.args.args)]


def default(function: FunctionNode, name: str) -> ast.expr | None:
    """What a parameter is where a call gives nothing for it."""
    positional, values = positional_parameters(function), function.args.defaults
    by_name = [a.arg for a in function.args.kwonlyargs]
    found: dict[str, ast.expr | None] = dict(zip(by_name, function.args.kw_defaults, strict=True))
    if values:
        found |= zip(positional[-len(values) :], values, strict=True)
    return found.get(name)


def bind(positional: Sequence[str], given: Iterable[tuple[str, T]]) -> dict[str, T]:
    """The arguments by parameter, of pairs of a keyword and a value.

    The keyword is "" for an argument by position, "*" and "**" for those that hold several: which
    parameters these fill, and positions behind a "*", are not known.
    """
    found: dict[str, T] = {}
    left = list(positional)
    for keyword, value in given:
        if keyword == "*":
            left.clear()
        elif keyword == "" and left:
            found[left.pop(0)] = value
        elif keyword not in ("", "**"):
            found[keyword] = value
    return found


def given_by(call: ast.Call) -> list[tuple[str, ast.expr]]:
    """A call's arguments as `bind` wants them."""
    given = [("*" if isinstance(a, ast.Starred) else "", a) for a in call.args]
    return [*given, *((k.arg or "**", k.value) for k in call.keywords)]


def values_given(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by position or by name."""
    return [*call.args, *(k.value for k in call.keywords)]


def bound_arguments(function: FunctionNode, call: ast.Call) -> dict[str, ast.expr]:
    """The expressions that a call gives for a function's parameters, a method's `self` included;
    defaults are left out."""
    positional = positional_parameters(function)
    receiver = positional.pop(0) if positional[:1] in (["self"], ["cls"]) else None
    found = bind(positional, given_by(call))
    if receiver is not None:
        found.setdefault(receiver, owner_of(call))
    return found


def owner_of(call: ast.Call) -> ast.expr:
    """What a method is called on: `x` of `x.f(…)`, the object itself of `x(…)`."""
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func
