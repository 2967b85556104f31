"""Functions that a library has once more, with the gradient that the first of the two lacks.

Both take the same arguments, but for some that the first alone has, and give the same values.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Iterable, Iterator

from ...model import Place
from ..dataflow import ExprAt
from ..scene import Scene

#: By module and name.
_TWINS = {
    # It multiplies by the factor, where the first blends two images by a Python float.
    (
        "torchvision.transforms.functional",
        "adjust_brightness",
    ): "torchvision.transforms.v2.functional.adjust_brightness",
    # Its backward goes through the steps of the solver, which are kept, and is recorded.
    ("torchdiffeq._impl.adjoint", "odeint_adjoint"): "torchdiffeq.odeint",
}


def twins(scene: Scene, calls: Iterable[ExprAt]) -> Iterator[tuple[Place, str]]:
    """Those of the calls that may call the twin instead, and its full name."""
    for call in calls:
        first = None if call.callable is None else scene.slicer.value(call.callable)
        if isinstance(first, types.FunctionType) and isinstance(call.node, ast.Call):
            name = _TWINS.get((first.__module__, first.__name__), "")
            if name and _takes(name, call.node):
                yield scene.slicer.place(call), name


def all_twins(scene: Scene) -> tuple[tuple[Place, str], ...]:
    """Those of all calls of the program."""
    calls = scene.index.nodes(ast.Call)
    return tuple(dict.fromkeys(twins(scene, (scene.slicer.at(*found) for found in calls))))


def _takes(name: str, call: ast.Call) -> bool:
    """Whether a function takes what a call gives by name; one that is not loaded yet does."""
    module, _, function = name.rpartition(".")
    known = getattr(sys.modules.get(module), function, None)
    parameters = None if known is None else inspect.signature(known).parameters
    return parameters is None or all(k.arg in parameters for k in call.keywords)
