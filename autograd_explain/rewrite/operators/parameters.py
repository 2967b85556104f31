"""Parameters: which of a module are meant, and which of them an optimizer is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

import libcst as cst

from ...program_index import index_of
from ..engine.cst_tools import dotted, expression, targets, unpacked, walk
from ..engine.draft import Draft
from ..engine.proposal import Edits
from ..engine.tree import tree_of
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
            yield site.change("live_parameters", call, partial(site.replaced, call, new))


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
        known = site.tree.code(given)
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
    names = _changed_names(site)
    made = list(_holders_of(site, names)) if names else []
    if made:
        code = ", ".join(site.tree.module.code_for_node(t.target) for s in made for t in s.targets)
        yield site.change("made_again", code, partial(_repeated, site, made))


def _changed_names(site: Site) -> set[str]:
    """The objects that a statement replaces, or may: `net` of `net.head = …` and of `f(net)`."""
    own = site.statement
    if isinstance(own, cst.Assign):
        named = [dotted(leaf) for t in targets(own) for leaf in unpacked(t)]
    elif isinstance(own, cst.Expr) and isinstance(own.value, cst.Call):
        call = own.value
        owner = [call.func.value] if isinstance(call.func, cst.Attribute) else []
        named = [dotted(node) for node in (*owner, *(arg.value for arg in call.args))]
    else:
        return set()
    return {name.partition(".")[0] for name in named if name} - {"self"}


def _holders_of(site: Site, names: set[str]) -> Iterator[cst.Assign]:
    """The statements above, at the same level of functions, that give an optimizer these objects,
    and those that give something that optimizer."""
    names = set(names)
    scope = site.tree.scope_of(site.statement)
    index = index_of(site.program)
    sources = [*index.namespace(site.tree.source)] if isinstance(scope, cst.Module) else []
    for source in sources or [site.tree.source]:
        tree = site.tree if source is site.tree.source else tree_of(site.program, source)
        for statement in tree.statements:
            if tree is site.tree and tree.start(statement) >= tree.start(site.statement):
                return
            same = tree is not site.tree or tree.scope_of(statement) is scope
            if same and isinstance(statement, cst.Assign) and _holds(site, statement, names):
                names |= {name for t in targets(statement) if (name := dotted(t))}
                yield statement


def _holds(site: Site, statement: cst.Assign, names: set[str]) -> bool:
    value = statement.value
    made = site.imports.full(dotted(value.func)) if isinstance(value, cst.Call) else ""
    if not made.startswith("torch.optim."):
        return False
    return any(isinstance(n, cst.Name) and n.value in names for n in walk(value))


def _repeated(site: Site, made: list[cst.Assign]) -> Edits | None:
    if site.tree.block_of(site.statement) is None:
        return None
    return Draft(site.tree).after(site.statement, [s.deep_clone() for s in made]).edits()


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
    index = index_of(site.program)
    if full.startswith("torch.nn.") or index.classes(name) or index.functions(name):
        return "*{}.parameters()"
    return ""
