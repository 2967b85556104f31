"""Parameters: which of a module are meant, and which of them an optimizer is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

import libcst as cst

from ...model import Edits
from ...program_index import index_of
from ..engine.cst_tools import dotted, expression, walk
from ..transforms.made_again import holders
from ..transforms.made_again import made_again as optimizers_made_again
from .site import Change, Site

_MOST = 8  #: names that are tried at one call


def narrowed(site: Site) -> Iterator[Change]:
    """`net.parameters()` -> `net.head.parameters()`: those of a part of the module."""
    for call in site.calls:
        if not isinstance(call.func, cst.Attribute) or call.args:
            continue
        owner = call.func.value
        if call.func.attr.value in ("parameters", "named_parameters") and dotted(owner):
            for part in _parts(site, dotted(owner) or "")[:_MOST]:
                inner = cst.Attribute(owner, cst.Name(part))
                yield site.change("narrowed", inner, partial(site.replaced, owner, inner))


def _parts(site: Site, owner: str) -> list[str]:
    """The attributes that classes of the program give a module: those read of this one first, and
    what was put in the place of an old part last."""
    found: dict[str, int] = {}
    for _, node in index_of(site.program).nodes(ast.Attribute):
        made = isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
        if made and node.value.id == "self":  # type: ignore[attr-defined]
            found.setdefault(node.attr, 1)
    for _, node in index_of(site.program).nodes(ast.Attribute):
        if node.attr in found and ast.unparse(node.value) == owner:
            found[node.attr] = 2 if isinstance(node.ctx, ast.Store) else 0
    return sorted(found, key=lambda name: found[name])


def to_optimizer(site: Site) -> Iterator[Change]:
    """`SGD(net.parameters())` -> `SGD([*net.parameters(), w])`: what was made to be trained."""
    for call in site.calls:
        full = site.imports.full(dotted(call.func))
        if not full.startswith("torch.optim.") or not call.args:
            continue
        given = call.args[0].value
        elements = given.elements if isinstance(given, cst.List) else ()
        if any(isinstance(e.value, cst.Dict) for e in elements):
            continue
        known = {n.value for n in walk(given) if isinstance(n, cst.Name)}
        for name, new in _trained(site):
            if name not in known:
                yield site.change("to_optimizer", name, partial(_with, site, given, new))


def of_another(site: Site) -> Iterator[Change]:
    """`SGD(old.parameters())` -> `SGD(net.parameters())`, `SGD([copy])` -> `SGD([w])`: another
    object that is there to be trained."""
    for call in site.calls:
        if site.imports.full(dotted(call.func)).startswith("torch.optim.") and call.args:
            given = call.args[0].value
            for name, new in _trained(site):
                code = new.removeprefix("*") if new.startswith("*") else f"[{new}]"
                if site.tree.code(given) != code:
                    other = partial(site.replaced, given, expression(code))
                    yield site.change("of_another", name, other)


def made_again(site: Site) -> Iterator[Change]:
    """`net = adapt(net)` -> the same, then `opt = SGD(net.parameters())` once more, and the
    scheduler that it is given to: they hold the tensors that there were when they were made."""
    if isinstance(site.statement, (cst.Assign, cst.Expr)):
        made = holders(site.program, site.tree, site.statement)
        code = ", ".join(t.module.code_for_node(s.targets[0].target) for t, s in made)
        if code:
            make = partial(optimizers_made_again, site.program, site.place)
            yield site.change("made_again", code, make)


def _with(site: Site, given: cst.BaseExpression, new: str) -> Edits | None:
    whole = expression(f"[*{{x}}, {new}]", x=given)
    if isinstance(given, cst.List) and isinstance(whole, cst.List):
        kept = [e.with_changes(comma=cst.MaybeSentinel.DEFAULT) for e in given.elements[-1:]]
        elements = [*given.elements[:-1], *kept, whole.elements[-1]]
        return site.replaced(given, given.with_changes(elements=elements))
    return site.replaced(given, whole)


def _trained(site: Site) -> Iterator[tuple[str, str]]:
    """Names of leaves and modules made at the top level of the program, with how they are given."""
    index, found = index_of(site.program), dict[str, str]()
    shared = index.namespace(site.tree.source)
    for source, node in index.nodes(ast.Assign):
        top = source in shared and source.parents[node] is source.tree
        how = _how_given(site, node.value) if top else ""
        for target in node.targets:
            if isinstance(target, ast.Name) and how:
                found.setdefault(target.id, how.format(target.id))
    yield from found.items()


def _how_given(site: Site, call: ast.expr) -> str:
    """Whether an expression makes a leaf, a list or dictionary of such, a module, or (maybe)
    neither: ""."""
    if isinstance(call, (ast.ListComp, ast.List)):
        inner = [call.elt] if isinstance(call, ast.ListComp) else call.elts
        return "*{}" if inner and all(_how_given(site, e) == "{}" for e in inner) else ""
    if isinstance(call, (ast.DictComp, ast.Dict)):
        inner = [call.value] if isinstance(call, ast.DictComp) else call.values
        return "*{}.values()" if inner and all(_how_given(site, e) == "{}" for e in inner) else ""
    if not isinstance(call, ast.Call):
        return ""
    name = ast.unparse(call.func)
    full = site.imports.full(name) or name
    flagged = any(k.arg == "requires_grad" for k in call.keywords)
    if flagged or name.endswith("requires_grad_") or full == "torch.nn.Parameter":
        return "{}"
    index = index_of(site.program)
    if full.startswith("torch.nn.") or index.classes(name) or index.functions(name):
        return "*{}.parameters()"
    return ""
