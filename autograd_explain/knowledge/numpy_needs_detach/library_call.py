"""The values of which a library's function makes arrays, from its first frame."""

from __future__ import annotations

import ast
from typing import Any

from autograd_explain.inspect.dataflow.syntax import head_name
from autograd_explain.inspect.facts.handed_to_library import entered
from autograd_explain.inspect.live.class_source import parsed
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import called_name


def made_arrays(scene: Scene) -> list[Any]:
    """The local values of which the library's function makes arrays, by `value.….numpy()`: at the
    line where it stood, then behind it; [] where that line makes none."""
    live = entered(scene)
    tree = None if live is None else parsed(live.code)
    if live is None or tree is None:
        return []
    own, values = live.line - live.code.co_firstlineno + 1, live.frame.f_locals
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and called_name(n) == "numpy"]
    ends = [(c.end_lineno or c.lineno, c) for c in calls]
    later = sorted((max(c.lineno, own), end, head_name(c)) for end, c in ends if end >= own)
    here = bool(later) and later[0][0] == own
    return [values[name] for _, _, name in later if name in values] if here else []
