"""What a library's object was given once, handed to it anew: `gp.set_train_data(inputs=z)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from autograd_explain.arguments import default, parameters
from autograd_explain.inspect.dataflow.safe_lookup import MISSING, attribute
from autograd_explain.inspect.facts.container_puts import live_object
from autograd_explain.inspect.facts.held_by_library import is_of_package
from autograd_explain.inspect.live.class_source import parsed
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import bases

from .culprit import without_item


def handed_anew(scene: Scene, names: Iterable[str]) -> tuple[str, ...]:
    """The calls that give objects of packages a value once more which they have by some of its
    names (`gp.train_inputs[0]`), by the plain name that it has as well."""
    known = list(names)
    own = next((name for name in known if name.isidentifier()), "")
    return tuple(dict.fromkeys(_calls(scene, known, own))) if own else ()


def _calls(scene: Scene, names: list[str], own: str) -> Iterator[str]:
    for name in names:
        path, _, kept = without_item(name).rpartition(".")
        owner = live_object(scene, path) if path else MISSING
        held = MISSING if owner is MISSING else attribute(owner, kept)
        alone = held is not MISSING and (not isinstance(held, (list, tuple)) or len(held) == 1)
        for method, given in _setters(owner, kept) if alone else ():
            yield f"{path}.{method}({given}={own})"
            break


def _setters(owner: Any, kept: str) -> Iterator[tuple[str, str]]:
    """The methods of a package's class that set an attribute from one parameter, and that one; they
    need nothing else."""
    for kind in filter(is_of_package, bases(type(owner))):
        tree = parsed(kind)
        for method in ast.walk(tree) if tree is not None else ():
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                given = [p for p in parameters(method) if p != "self"]
                free = [p for p in given if default(method, p) is not None]
                from_it = [p for p in given if any(_sets(n, kept, p) for n in ast.walk(method))]
                if len(from_it) == 1 and {*given} - {*free} <= {*from_it}:
                    yield method.name, from_it[0]


def _sets(node: ast.AST, kept: str, parameter: str) -> bool:
    """`self.train_inputs = inputs`"""
    targets = [ast.unparse(t) for t in node.targets] if isinstance(node, ast.Assign) else []
    value = node.value if isinstance(node, ast.Assign) else None
    return f"self.{kept}" in targets and isinstance(value, ast.Name) and value.id == parameter
