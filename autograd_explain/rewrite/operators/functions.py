"""Functions: how custom ones run, and what a library offers instead of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

import libcst as cst

from ...model import Edits
from ...program_index import index_of
from ..engine.cst_tools import dotted, expression
from ..engine.draft import Draft
from ..engine.tree import statements_in
from ..transforms.library_offers import recorded_instead
from .site import Change, Site

_DECORATED = {"forward": "custom_fwd", "backward": "custom_bwd"}


def follows_autocast(site: Site) -> Iterator[Change]:
    """`@torch.amp.custom_fwd` over the forward of a custom Function and `custom_bwd` over its
    backward, which then runs in the types that the forward had (torch 2.4)."""
    made = site.statement
    if isinstance(made, cst.ClassDef) and any(
        site.imports.full(dotted(base.value)) == "torch.autograd.Function" for base in made.bases
    ):
        device = _device(site)
        for options in ("", ", cast_inputs=torch.float32") if device else ():
            yield site.change("custom_fwd", made.name, partial(_decorated, site, device, options))


def _device(site: Site) -> str:
    """The kind of device for which the program uses autocast."""
    for _, call in index_of(site.program).calls("autocast", of="torch"):
        given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device_type")]
        for node in given:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                return node.value
    return ""


def _decorated(site: Site, device: str, options: str) -> Edits | None:
    torch = site.imports.local("torch")
    if torch is None:
        return None
    draft = Draft(site.tree)
    options = options.replace("torch", torch)
    for method in statements_in(site.statement.body):  # type: ignore[union-attr]
        if isinstance(method, cst.FunctionDef) and method.name.value in _DECORATED:
            own = options if method.name.value == "forward" else ""
            how = f'{torch}.amp.{_DECORATED[method.name.value]}(device_type="{device}"{own})'
            new = cst.Decorator(expression(how))
            draft.change(method, partial(_under, new))
    return draft.edits()


def _under(new: cst.Decorator, function: cst.FunctionDef) -> cst.FunctionDef:
    return function.with_changes(decorators=[*function.decorators, new])


def recorded_function(site: Site) -> Iterator[Change]:
    """`odeint_adjoint(f, x)` -> `odeint(f, x)`: its operations are recorded."""
    for other, make in recorded_instead(site.program, site.place):
        yield site.change("recorded_instead", other, make, other)
