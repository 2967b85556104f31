"""Ends of the graph: put where a value is handed on or carried over, taken away where one is."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Edits
from ..analysis.effects import effects
from ..engine.cst_tools import (
    bare,
    called_name,
    dotted,
    head,
    method,
    repeatable,
    single_targets,
    targets,
    unpacked,
)
from ..engine.draft import Draft
from ..engine.tree import statements_in
from ..transforms.passed_through import WITH_VALUES, passed_straight_through, steps_in
from ..transforms.uncut import (
    apply_patches,
    joined_at,
    tensors_instead_of_copy,
    uncut_at,
    without_cut,
)
from .site import Change, Site

_ENDINGS = frozenset("detach item numpy tolist detach_ long int bool byte cpu state_dict".split())
_COPIES = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.FloatTensor")


def detach_operand(site: Site) -> Iterator[Change]:
    """`D(fake)` -> `D(fake.detach())`; what has a name before what a call gives."""
    for code, nodes in sorted(site.operands.items(), key=lambda o: isinstance(o[1][0], cst.Call)):
        yield site.change("detach", code, site.called_on, "detach()", *nodes, group=code)


def detach_result(site: Site) -> Iterator[Change]:
    """`target = q + r` -> `target = (q + r).detach()`."""
    value = site.value
    if isinstance(value, cst.BinaryOperation):
        yield site.change("detach", value, site.called_on, "detach()", value)


def detach_carried(site: Site) -> Iterator[Change]:
    """`h = h.detach()` at the beginning of a loop's round, for what the last one left there."""
    loop = site.statement
    if not isinstance(loop, (cst.For, cst.While)):
        return
    own = {leaf for t in targets(loop) for leaf in map(site.tree.code, unpacked(t))}
    inside = [effects(s) for s in statements_in(loop.body)]
    written = {path for e in inside for path in e.writes}
    read = {path for e in inside for path in e.reads}
    for path in sorted((written & read) - own):
        for template, name in (
            (f"{path} = {path}.detach()", "detach_carried"),
            (f"{path} = tuple(t.detach() for t in {path})", "detach_carried_states"),
        ):
            yield site.change(name, path, site.opening, template)


def detach_kept(site: Site) -> Iterator[Change]:
    """`out, self.h = f(x)` -> the same, then `self.h = self.h.detach()`: what outlives the call."""
    if isinstance(site.statement, (cst.Assign, cst.AugAssign)):
        for leaf in single_targets(site.statement):
            if isinstance(leaf, (cst.Name, cst.Attribute, cst.Subscript)) and repeatable(leaf):
                for value in ("{x}.detach()", "tuple(t.detach() for t in {x})"):
                    cut = "{x} = " + value
                    yield site.change("detach_kept", leaf, site.line, Draft.after, cut, x=leaf)


def _all_uncut(site: Site, ends: list[cst.BaseExpression]) -> Edits | None:
    """Chains of calls as a whole, and the way of an array back to a tensor."""
    program, tree = site.program, site.tree
    chained = {id(inner) for node in ends for inner in _called_on(node)}
    patches = [
        patch
        for node in ends
        if id(node) not in chained
        for patch in without_cut(program, tree.place(node))
    ]
    for call in site.calls:
        if site.imports.full(dotted(call.func)) in _COPIES:
            patches += tensors_instead_of_copy(program, tree.place(call), False)
    return apply_patches(patches)


def _called_on(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`x.a()` and `x` of `x.a().b()`."""
    while isinstance(node, (cst.Call, cst.Attribute)):
        node = node.func if isinstance(node, cst.Call) else node.value
        yield node


def soft(site: Site) -> Iterator[Change]:
    """`(p > 0.5).float()` -> `p.float()`: a step has no slope, what is under it has one."""
    for node, inner in steps_in(site.tree, site.imports, site.statement):
        if called_name(node) not in WITH_VALUES:
            yield site.change("soft", node, site.replaced, node, inner)


def straight_through(site: Site) -> Iterator[Change]:
    """`F.one_hot(p.argmax(-1), n)` -> `p + (F.one_hot(p.argmax(-1), n) - p).detach()`."""
    for node, operand in steps_in(site.tree, site.imports, site.statement):
        how = passed_straight_through
        yield site.change("straight_through", operand, how, site.tree, node, operand)


def keep_in_graph(site: Site) -> Iterator[Change]:
    """`x.detach()`, `x.data`, `x.item()`, `float(x)`, `np.exp(x)` -> what has the graph."""
    for node, kind in _ends(site):
        at = site.tree.place(node)
        yield site.change("keep_in_graph", node, uncut_at, site.program, at, group=kind)


def keep_all_in_graph(site: Site) -> Iterator[Change]:
    """All that takes values out of the graph in a statement, and in the function that it is in."""
    if ends := [node for node, _ in _ends(site)]:
        group = f"in {id(site.tree.scope_of(site.statement))}"
        yield site.change("keep_in_graph", site.statement, _all_uncut, site, ends, group=group)


def _ends(site: Site) -> Iterator[tuple[cst.BaseExpression, str]]:
    """What takes a value out of the graph in a statement, and how; not of what has a step for a
    slope, `x.round().long()`: the gradient would be 0."""
    steps = steps_in(site.tree, site.imports, site.statement)
    flat = {id(step) for step, _ in steps if called_name(step) not in WITH_VALUES}
    for node in head(site.statement):
        if isinstance(node, cst.BaseExpression) and (kind := _ending(site, node)):
            if flat.isdisjoint(map(id, _called_on(node))):
                yield node, kind


def tensors_joined(site: Site) -> Iterator[Change]:
    """`torch.tensor(x)` -> `x`, and of several tensors `torch.stack(xs)`."""
    for call in site.calls:
        if site.imports.full(dotted(call.func)) in _COPIES and call.args:
            for many in (False, True):
                at = site.tree.place(call)
                yield site.change("tensors_joined", call, joined_at, site.program, at, many)
            copy = method(bare(call.args[0].value), "detach().clone()")
            yield site.change("detached_copy", call, site.replaced, call, copy)


def drop_call(site: Site) -> Iterator[Change]:
    """`x.half()` -> `x`: a method's call taken away, what it was called on left."""
    for call in site.calls:
        if isinstance(call.func, cst.Attribute) and not call.args:
            name = call.func.attr.value
            if name not in _ENDINGS and not isinstance(site.tree.parents[call], cst.Expr):
                inner = call.func.value
                yield site.change("drop_call", call, site.replaced, call, inner, group=name)


def _ending(site: Site, node: cst.BaseExpression) -> str:
    """What takes the value out of the graph, "" for anything else."""
    if isinstance(node, cst.Attribute):
        called = isinstance(site.tree.parents[node], cst.Call)
        return "data" if node.attr.value == "data" and not called else ""
    if not isinstance(node, cst.Call):
        return ""
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _ENDINGS:
        return node.func.attr.value
    if isinstance(node.func, cst.Name) and node.func.value in ("float", "int"):
        return node.func.value
    full = site.imports.full(dotted(node.func))
    return full.partition(".")[0] if full.startswith(("numpy.", "math.")) else ""
