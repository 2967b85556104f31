"""Outputs of layers that the program's forward hooks keep as they are given them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch

from ...arguments import FunctionNode, positional_parameters
from ...inspect.dataflow.safe_lookup import MISSING, evaluate
from ...inspect.dataflow.syntax import PUTS
from ...isolation.type_checks import class_attribute, is_a, table_of
from ...model import Place
from ...program import Program, Source, first_line

_OF_HOOK = 3  #: the module, its inputs, its output


@dataclass(frozen=True, eq=False)
class KeptOutput:
    """`place` spans the name that a hook on `layer` keeps its output by, `name`; `value` is what
    is kept there last."""

    layer: torch.nn.Module
    place: Place
    name: str
    value: torch.Tensor


def kept_outputs(program: Program, layers: Iterable[torch.nn.Module]) -> Iterator[KeptOutput]:
    """What the program's own hooks on some layers keep without a copy, as far as it can be read
    without running anything: `kept[name] = output`, `self.seen.append(output)`."""
    for layer in layers:
        for hook in list(table_of(layer).get("_forward_hooks", {}).values()):
            function, given = _called(hook)
            source = None if function is None else program.source_of(function.__code__)
            node = None if source is None else _definition(source, function)
            if function is not None and source is not None and node is not None:
                names = _Names(
                    function, dict(zip(positional_parameters(node), given, strict=False))
                )
                for kept, value in _kept(node, _output(node, len(given)), names):
                    place = source.place(kept.lineno, getattr(node, "name", None), kept)
                    yield KeptOutput(layer, place, kept.id, value)


def _called(hook: Any) -> tuple[FunctionType | None, tuple[Any, ...]]:
    """The function behind a hook, and what it is given before what torch gives it."""
    if type(hook) is functools.partial and not hook.keywords:
        function, given = _called(hook.func)
        return function, (*given, *hook.args)
    if type(hook) is MethodType and type(hook.__func__) is FunctionType:
        return hook.__func__, (hook.__self__,)
    if type(hook) is FunctionType:
        return hook, ()
    method = class_attribute(type(hook), "__call__")
    return (method, (hook,)) if type(method) is FunctionType else (None, ())


def _definition(source: Source, function: FunctionType | None) -> FunctionNode | None:
    code = None if function is None else function.__code__
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and code is not None:
            line = first_line(node) if isinstance(node, ast.FunctionDef) else node.lineno
            same = code.co_name == (node.name if isinstance(node, ast.FunctionDef) else "<lambda>")
            if same and line + source.offset == code.co_firstlineno:
                return node
    return None


def _output(node: FunctionNode, given: int) -> str:
    """What a hook calls the output: its last parameter."""
    names = positional_parameters(node)[given:]
    return names[-1] if len(names) >= _OF_HOOK else ""


class _Names:
    """What the names of a hook stand for, in what it is given first, around it and in its file."""

    def __init__(self, function: FunctionType, given: Mapping[str, Any]) -> None:
        self._function, self._given = function, given

    def __call__(self, name: ast.Name) -> Any:
        if name.id in self._given:
            return self._given[name.id]
        around = self._function.__code__.co_freevars
        if name.id in around:
            cell = (self._function.__closure__ or ())[around.index(name.id)]
            try:
                return cell.cell_contents
            except ValueError:  # it has not been given a value yet
                return MISSING
        return self._function.__globals__.get(name.id, MISSING)


def _kept(
    node: FunctionNode, output: str, names: _Names
) -> Iterator[tuple[ast.Name, torch.Tensor]]:
    for statement in ast.walk(node):
        if isinstance(statement, ast.Assign) and _is_name(statement.value, output):
            value: Any = evaluate(statement.targets[0], names)
            found: Any = statement.value
        elif isinstance(statement, ast.Call) and isinstance(statement.func, ast.Attribute):
            held = evaluate(statement.func.value, names)
            if statement.func.attr not in PUTS or type(held) is not list or not held:
                continue
            value, found = held[-1], next((a for a in statement.args if _is_name(a, output)), None)
        else:
            continue
        if found is not None and is_a(value, torch.Tensor):
            yield found, value


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name != ""
