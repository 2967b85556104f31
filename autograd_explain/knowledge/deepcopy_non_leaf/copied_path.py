"""What `copy.deepcopy` was copying when it failed, as its frames show it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from itertools import takewhile

from autograd_explain.incident import LiveFrame
from autograd_explain.inspect.scene import Scene

#: What torch keeps the parts of a module in, which are attributes of it.
_TABLES = ("_modules", "_parameters", "_buffers")
_KEYS = (str, int, bool)


def copied_path(scene: Scene, text: str) -> str:
    """The innermost attribute or element that leads to the tensor and can be spelled:
    `gp.strategy._cache`, where the keys of that are no plain ones; "" where none is."""
    *outer, _ = scene.incident.frames  # the last is the tensor's own `__deepcopy__`
    copying = list(takewhile(_is_copying, reversed(outer)))
    asked = outer[-len(copying) - 1 : -len(copying)]
    own = any(scene.program.source_of(live.code) is not None for live in asked)
    steps = "".join(_steps(reversed(copying))) if own else ""
    return text + steps if steps else ""


def _is_copying(live: LiveFrame) -> bool:
    return live.filename == copy.__file__


def _steps(frames: Iterable[LiveFrame]) -> Iterator[str]:
    """The steps from what is copied to the tensor, up to one that cannot be spelled."""
    table = None  #: of an object, which the next dictionary is then
    for live in frames:
        values = live.frame.f_locals
        if live.function == "_reconstruct":
            table = ""
        elif live.function == "_deepcopy_list":
            yield f"[{len(values['y'])}]"
        elif live.function == "_deepcopy_tuple":
            return
        elif live.function == "_deepcopy_dict":
            key = values["key"]
            if type(key) not in _KEYS:
                return
            if table == "" and key in _TABLES:
                table = key
                continue
            item = str(key) if table == "_modules" and str(key).isdigit() else repr(key)
            yield f".{key}" if table is not None and str(key).isidentifier() else f"[{item}]"
            table = None
