"""What a library has to keep its value in the graph: an option, a switch, another function."""

from __future__ import annotations

from collections.abc import Iterator

from autograd_explain.program import Program
from autograd_explain.rewrite import Proposal, differing
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.transforms.copied_object import called_instead
from autograd_explain.rewrite.transforms.grad_mode import under_guard
from autograd_explain.rewrite.transforms.remove_memoization import not_kept

from .details import Details


def kept_by_library(program: Program, details: Details) -> Iterator[Proposal]:
    """`cached=False`; `with gpytorch.settings.detach_test_caches(False)` around the statement;
    `torchdiffeq.odeint` for `odeint_adjoint`."""
    yield from not_kept(program, details.options)
    yield from called_instead(program, details.twins)
    place, name = details.switch or (None, "")
    local = imports_at(program, place).local(name) if place is not None else None
    if local is not None:
        guard = f"{local}(False)"
        yield from differing("repair_turn_flag", under_guard(program, place, guard), code=guard)
