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
from ...inspect.dataflow.calls import closed_over
from ...inspect.dataflow.safe_lookup import MISSING, evaluate
from ...inspect.dataflow.syntax import PUTS
from ...isolation.type_checks import class_attribute, is_a, table_of
from ...model import Place
from ...program import Program
from ...program_index import functions_of

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
            if function is None or source is None:
                continue
            for node in functions_of(source.tree, function.__code__):
                first = zip(positional_parameters(node), given, strict=False)
                names = {**function.__globals__, **dict(closed_over(function)), **dict(first)}
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


def _output(node: FunctionNode, given: int) -> str:
    """What a hook calls the output: its last parameter."""
    names = positional_parameters(node)[given:]
    return names[-1] if len(names) >= _OF_HOOK else ""


def _kept(
    node: FunctionNode, output: str, names: Mapping[str, Any]
) -> Iterator[tuple[ast.Name, torch.Tensor]]:
    """The name of the output where a statement keeps it, and what lies there now."""

    def now(path: ast.expr) -> Any:
        return evaluate(path, lambda name: names.get(name.id, MISSING))

    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign) and _is_name(inner.value, output):
            found, value = inner.value, now(inner.targets[0])
        elif isinstance(inner, ast.Call) and inner.args and _is_name(inner.args[-1], output):
            method = inner.func if isinstance(inner.func, ast.Attribute) else None
            held = now(method.value) if method is not None and method.attr in PUTS else None
            found, value = inner.args[-1], held[-1] if type(held) is list and held else None
        else:
            continue
        if isinstance(found, ast.Name) and is_a(value, torch.Tensor):
            yield found, value


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name != ""
