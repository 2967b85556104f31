"""Parameters: which of a module are meant, and which of them an optimizer is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

import libcst as cst

from ...program_index import index_of
from ..engine.cst_tools import dotted, expression
from ..engine.proposal import Edits
from .site import Change, Site

_MOST = 8  #: names that are tried at one call
_READ_BY = {"items": "named_parameters()", "values": "parameters()"}


def narrowed(site: Site) -> Iterator[Change]:
    """`net.parameters()` -> `net.head.parameters()`: those of a part of the module."""
    for call in site.calls:
        if not isinstance(call.func, cst.Attribute) or call.args:
            continue
        owner = call.func.value
        if call.func.attr.value in ("parameters", "named_parameters") and dotted(owner):
            for part in _parts(site, dotted(owner) or "")[:_MOST]:
                inner = cst.Attribute(owner, cst.Name(part))
                code = f"{site.tree.code(owner)}.{part}"
                yield Change("narrowed", site, code, partial(site.replaced, owner, inner))


def _parts(site: Site, owner: str) -> list[str]:
    """The attributes that classes of the program give a module: those read of this one first, and
    what was put in the place of an old part last."""
    found: dict[str, int] = {}
    for _, node in index_of(site.program).nodes(ast.Attribute):
        made = isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
        if made and node.value.id == "self":  # type: ignore[attr-defined]
            found.setdefault(node.attr, 1)
    for _, node in index_of(site.program).nodes(ast.Attribute):
        if node.attr in found and dotted_name(node.value) == owner:
            found[node.attr] = 2 if isinstance(node.ctx, ast.Store) else 0
    return sorted(found, key=lambda name: found[name])


def dotted_name(node: ast.AST) -> str:
    """`a.b` of the expression `a.b`; "" for anything else."""
    if isinstance(node, ast.Attribute):
        inner = dotted_name(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def live_parameters(site: Site) -> Iterator[Change]:
    """`net.state_dict().items()` -> `net.named_parameters()`: a state dict holds detached ones."""
    for call in site.calls:
        read = call.func if isinstance(call.func, cst.Attribute) else None
        inner = None if read is None else read.value
        if read is None or read.attr.value not in _READ_BY or not isinstance(inner, cst.Call):
            continue
        state = inner.func
        if isinstance(state, cst.Attribute) and state.attr.value == "state_dict" and not inner.args:
            new = expression(f"{{x}}.{_READ_BY[read.attr.value]}", x=state.value)
            code = site.tree.code(call)
            yield Change("live_parameters", site, code, partial(site.replaced, call, new))


def to_optimizer(site: Site) -> Iterator[Change]:
    """`SGD(net.parameters())` -> `SGD([*net.parameters(), w])`: what was made to be trained."""
    for call in site.calls:
        full = site.imports.full(dotted(call.func))
        if not full.startswith("torch.optim.") or not call.args:
            continue
        given = call.args[0].value
        if any(isinstance(e, cst.Dict) for e in _elements_of(given)):
            continue
        known = site.tree.code(given)
        for name, new in _trained(site):
            if name not in known:
                yield Change("to_optimizer", site, name, partial(_with, site, given, new))


def _elements_of(given: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [e.value for e in given.elements] if isinstance(given, cst.List) else []


def _with(site: Site, given: cst.BaseExpression, new: str) -> Edits | None:
    before = "*{x}"
    if isinstance(given, cst.List) and given.elements:
        before = "".join(f"{site.tree.code(e)}, " for e in given.elements).rstrip(", ")
        return site.replaced(given, expression(f"[{before}, {new}]"))
    return site.replaced(given, expression(f"[{before}, {new}]", x=given))


def _trained(site: Site) -> Iterator[tuple[str, str]]:
    """Names of leaves and modules made at the top level of the program, with how they are given."""
    index, found = index_of(site.program), dict[str, str]()
    shared = index.namespace(site.tree.source)
    for source, node in index.nodes(ast.Assign):
        top = source in shared and source.parents[node] is source.tree
        how = _how_given(site, node.value) if top and isinstance(node.value, ast.Call) else ""
        for target in node.targets:
            if isinstance(target, ast.Name) and how:
                found.setdefault(target.id, how.format(target.id))
    yield from found.items()


def _how_given(site: Site, call: ast.Call) -> str:
    """Whether a call makes a leaf, a module, or (maybe) neither: ""."""
    name = dotted_name(call.func)
    full = site.imports.full(name) or name
    flagged = any(k.arg == "requires_grad" for k in call.keywords)
    if flagged or name.endswith("requires_grad_") or full == "torch.nn.Parameter":
        return "{}"
    if full.startswith("torch.nn.") or index_of(site.program).classes(name):
        return "*{}.parameters()"
    return ""
