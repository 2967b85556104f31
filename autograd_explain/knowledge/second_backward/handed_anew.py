"""What a library's object was given once, handed to it anew: `gp.set_train_data(inputs=z)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from autograd_explain.arguments import default, parameters
from autograd_explain.inspect.dataflow.safe_lookup import MISSING, attribute
from autograd_explain.inspect.facts.container_puts import live_object
from autograd_explain.inspect.facts.library_cache import setters
from autograd_explain.inspect.live.names import without_item
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import bases
from autograd_explain.program import is_of_package


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
        setter = next(_setters(owner, kept), None) if alone else None
        if setter is not None:
            yield f"{path}.{setter[0]}({setter[1]}={own})"


def _setters(owner: Any, kept: str) -> Iterator[tuple[str, str]]:
    """The methods of a package's class that set an attribute from one parameter, and that one; they
    need nothing else."""
    for kind in filter(is_of_package, bases(type(owner))):
        for method, values in setters(kind, kept):
            given = set(parameters(method)) - {"self"}
            needed = {p for p in given if default(method, p) is None}
            used = given & {value.id for value in values if isinstance(value, ast.Name)}
            if len(used) == 1 and needed <= used and not method.name.startswith("_"):
                yield method.name, used.pop()
