"""Parameters that an optimizer is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from ...program_index import index_of
from ..engine.cst_tools import dotted, expression
from ..transforms.made_again import holders
from ..transforms.made_again import made_again as optimizers_made_again
from .site import Change, Site


def of_another(site: Site) -> Iterator[Change]:
    """`SGD(old.parameters())` -> `SGD(net.parameters())`, `SGD([copy])` -> `SGD([w])`: another
    object that is there to be trained."""
    for call in site.calls:
        if site.imports.full(dotted(call.func)).startswith("torch.optim.") and call.args:
            given = call.args[0].value
            for name, new in _trained(site):
                code = new.removeprefix("*") if new.startswith("*") else f"[{new}]"
                if site.tree.code(given) != code:
                    other = expression(code)
                    yield site.change("of_another", name, site.replaced, given, other)


def made_again(site: Site) -> Iterator[Change]:
    """`net = adapt(net)` -> the same, then `opt = SGD(net.parameters())` once more, and the
    scheduler that it is given to: they hold the tensors that there were when they were made."""
    if isinstance(site.statement, (cst.Assign, cst.Expr)):
        made = holders(site.tree, site.statement)
        code = ", ".join(t.module.code_for_node(s.targets[0].target) for t, s in made)
        if code:
            yield site.change("made_again", code, site.made(optimizers_made_again))


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
