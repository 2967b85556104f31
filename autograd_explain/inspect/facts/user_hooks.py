"""The user's hooks: their definitions, and what they were registered on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...arguments import positional_parameters
from ...model import Place
from ...program import Program, Source, called_name, last_name
from ...program_index import Definition, index_of

_REGISTERS = ("register_hook", "register_post_accumulate_grad_hook", "register_prehook",
              "register_full_backward_hook", "register_full_backward_pre_hook")  # fmt: skip
_OF_FORWARD = ("register_forward_hook", "register_forward_pre_hook")
_OF_MODULE = 3  #: module, gradients of its inputs, gradients of its outputs


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
    for source, call, given in _registered(program, *_REGISTERS):
        for definition in _meant(program, source, given):
            if not name or name == (definition.name or "<lambda>"):
                receivers = found.setdefault(id(definition.node), (definition, []))[1]
                receivers.append(ast.unparse(call.func.value))
    if len(found) != 1:
        return None
    ((definition, tensors),) = found.values()
    named = [p for p in positional_parameters(definition.node) if p not in ("self", "cls")]
    return Hook(definition, (named or [""])[-1], tuple(dict.fromkeys(tensors)))


def registrations(program: Program, hook: Definition) -> Iterator[tuple[Place, str]]:
    """The calls that register a hook, newest cell first, and on what."""
    for source, call, given in _registered(program, *_REGISTERS, *_OF_FORWARD):
        if any(meant.node is hook.node for meant in _meant(program, source, given)):
            yield source.place(call.lineno, None, call), ast.unparse(call.func.value)


class _Method(ast.Call):
    func: ast.Attribute


def _registered(program: Program, *names: str) -> Iterator[tuple[Source, _Method, ast.expr]]:
    for source, call in index_of(program).calls(*names, of="torch"):
        if isinstance(call.func, ast.Attribute) and call.args:
            yield source, call, call.args[0]  # type: ignore[misc]


def _meant(program: Program, source: Source, given: ast.expr) -> list[Definition]:
    """The function that a registration passes: a lambda, a name, a method, an object's call, what
    the user's `make_hook(name)` returns."""
    if isinstance(given, ast.Lambda):
        return [Definition(source, given)]
    index = index_of(program)
    if isinstance(given, ast.Call):
        maker = index.called(source, given)
        returned = () if maker is None else maker.returned
        return [d for r in returned if maker is not None for d in _meant(program, maker.source, r)]
    name = last_name(given)
    return index.functions(name)


@dataclass(frozen=True, eq=False)
class ModuleHook:
    """A full backward hook: `place` spans the call that registers it, `module` and `hook` are the
    expressions there.  `looks` where it returns nothing and leaves the input's gradient alone."""

    place: Place
    module: str
    hook: str
    looks: bool


def full_backward_hooks(program: Program) -> list[ModuleHook]:
    """Those that the user's code registers, newest cell first."""
    return [
        ModuleHook(
            place=source.place(call.lineno, _function_name(source, call), call),
            module=ast.unparse(call.func.value),
            hook=ast.unparse(given),
            looks=_only_look(_meant(program, source, given)),
        )
        for source, call, given in _registered(program, "register_full_backward_hook")
    ]


def _function_name(source: Source, call: ast.Call) -> str | None:
    return getattr(source.function_around(call), "name", None)


#: What gives None back, as lambdas call it.
_KEEPS = frozenset({"append", "extend", "update", "add", "print"})


def _only_look(hooks: list[Definition]) -> bool:
    return bool(hooks) and all(map(_only_looks, hooks))


def _only_looks(definition: Definition) -> bool:
    """`hook(module, grad_input, grad_output)` that keeps something of the last."""
    node = definition.node
    named = [p for p in positional_parameters(node) if p not in ("self", "cls")]
    bound = len(node.args.defaults)  # what `name=name` keeps for it is not given by torch
    if isinstance(node, ast.Lambda):
        silent = called_name(node.body) in _KEEPS
    else:
        silent = not definition.returned
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return silent and len(named) - bound == _OF_MODULE and named[1] not in used
