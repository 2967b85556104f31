"""The user's hook that a message is about: its definition, and what it was put on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from autograd_explain.arguments import positional_parameters
from autograd_explain.model import Place
from autograd_explain.program import Program, Source
from autograd_explain.program_index import Definition, index_of

_REGISTERS = ("register_hook", "register_post_accumulate_grad_hook", "register_prehook",
              "register_full_backward_hook", "register_full_backward_pre_hook")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Hook:
    """`gradient` is what the hook calls the gradient it is given; `tensors` are the expressions
    it was registered on."""

    definition: Definition
    gradient: str
    tensors: tuple[str, ...]

    @property
    def returned(self) -> Place | None:
        """Where it returns its value; None where it does so at several places."""
        found = self.definition.returned
        return self.definition.at(found[0]) if len(found) == 1 else None


def hook_named(program: Program, name: str) -> Hook | None:
    """The one hook of this name; where the message names none, the only one that is registered."""
    found: dict[int, tuple[Definition, list[str]]] = {}
    for source, call, given in _registered(program):
        for definition in _meant(program, source, given):
            if not name or name == (definition.name or "<lambda>"):
                receivers = found.setdefault(id(definition.node), (definition, []))[1]
                receivers.append(ast.unparse(call.func.value))
    if len(found) != 1:
        return None
    ((definition, tensors),) = found.values()
    named = [p for p in positional_parameters(definition.node) if p not in ("self", "cls")]
    return Hook(definition, (named or [""])[-1], tuple(dict.fromkeys(tensors)))


class _Method(ast.Call):
    func: ast.Attribute


def _registered(program: Program) -> Iterator[tuple[Source, _Method, ast.expr]]:
    for source, call in index_of(program).calls(*_REGISTERS, of="torch"):
        if isinstance(call.func, ast.Attribute) and call.args:
            yield source, call, call.args[0]  # type: ignore[misc]


def _meant(program: Program, source: Source, given: ast.expr) -> list[Definition]:
    """The function that a registration passes: a lambda, a name, a method, an object's call."""
    if isinstance(given, ast.Lambda):
        return [Definition(source, given)]
    name = str(getattr(given, "attr", getattr(given, "id", "")))
    return index_of(program).functions(name)
