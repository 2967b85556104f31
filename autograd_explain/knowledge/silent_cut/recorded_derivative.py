"""A derivative that a library takes without its graph, recorded."""

from __future__ import annotations

from functools import partial

from autograd_explain.model import Edits, Place
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.transforms.copied_object import imported
from autograd_explain.rewrite.transforms.grad_mode import under_guard

_NEEDED = {"functools": "functools.partial", "unittest.mock": "unittest.mock.patch"}


def recorded_in_library(program: Program, place: Place | None) -> Edits | None:
    """The statement at the place with `create_graph=True` for every `torch.autograd.grad` that it
    leads to: a library's function may have no argument for it."""
    source, imports = program.source_at(place), imports_at(program, place)
    torch = imports.local("torch")
    known = {module: imports.local(name) for module, name in _NEEDED.items()}
    if source is None or place is None or torch is None:
        return None
    given, patch = (known[module] or name for module, name in _NEEDED.items())
    recording = f"{given}({torch}.autograd.grad, create_graph=True)"
    guarded = partial(under_guard, guard=f'{patch}.object({torch}.autograd, "grad", {recording})')
    missing = [module for module, name in known.items() if name is None]
    if not missing:
        return guarded(program, place)
    return then(program, imported(program, source, *missing), guarded, place)
