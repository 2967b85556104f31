"""Let both runs of the checkpointed function do the same: what they read is given to them."""

from __future__ import annotations

import ast
import re

import libcst as cst

from autograd_explain.program import last_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table, torch_at
from autograd_explain.rewrite.analysis.effects import fresh
from autograd_explain.rewrite.engine.cst_tools import calls_in, dotted, expression, same, walk
from autograd_explain.rewrite.engine.draft import Draft, Drafts
from autograd_explain.rewrite.transforms.remove_memoization import always_computed
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.undone import undone, undone_behind

from .details import Details

#: What draws the same kind of number from the generator that checkpoint restores.
_OF_TORCH = {
    "random.random": "{torch}.rand(()).item()",
    "random.uniform": "{torch}.empty(()).uniform_({0}, {1}).item()",
    "random.gauss": "{torch}.empty(()).normal_({0}, {1}).item()",
    "random.randint": "{torch}.randint({0}, {1} + 1, ()).item()",
    "random.randrange": "{torch}.randint({0}, ()).item()",
    "random.choice": "{0}[{torch}.randint(len({0}), ()).item()]",
    "numpy.random.rand": "{torch}.rand(()).item()",
    "numpy.random.random": "{torch}.rand(()).item()",
    "numpy.random.randn": "{torch}.randn(()).item()",
    "numpy.random.uniform": "{torch}.empty(()).uniform_({0}, {1}).item()",
    "numpy.random.normal": "{torch}.empty(()).normal_({0}, {1}).item()",
    "numpy.random.randint": "{torch}.randint({0}, {1}, ()).item()",
}


def _drawn_by_torch(site: Site[Details]) -> Edits | None:
    """`random.random()` -> `torch.rand(()).item()`, everywhere in the checkpointed function."""
    drafts, torch = Drafts(), torch_at(site.program, site.place)
    for spot in map(site.at, site.details.draws if torch else ()):
        for call in calls_in(spot.own):
            template = _OF_TORCH.get(spot.imports.full(dotted(call.func)), "")
            given = [spot.tree.code(a.value) for a in call.args if not a.star and not a.keyword]
            places = len({n for n in "01" if f"{{{n}}}" in template})
            if template and len(given) == len(call.args) == places:
                new = expression(template.format(*given, torch=torch))
                drafts[spot.tree].replace(call, new)
    return drafts.edits()


def _always_computed(site: Site[Details]) -> Edits | None:
    """`if key not in cache: cache[key] = …` -> the assignment alone."""
    tree, stored = site.tree, site.own
    guard = tree.around(stored, cst.If)
    return None if guard is None else always_computed(site.program, tree.place(guard))


def _not_asked(site: Site[Details]) -> Edits | None:
    """`model.gradient_checkpointing_enable()` is left out."""
    switch = site.details.switch
    alone = isinstance(site.at(switch).statement, ast.Expr)
    return site.at(switch).removed() if switch is not None and alone else None


def _taken_back(site: Site[Details]) -> Edits | None:
    """`unet.enable_adapters()` for `unet.disable_adapters()`: before backward, where that stands
    behind it in the same block, else where the function around is done."""
    tree, own, method = site.tree, site.own, site.details.opposite
    backward = site.at(site.details.backward).own
    if own is None or not method:
        return None
    order, at = tree.siblings(own)
    if backward in order[at + 1 :]:
        undo = undone(tree, own, method)
        return None if undo is None else Draft(tree).before(backward, [undo]).edits()
    return undone_behind(site.program, site.place, method)


def _given(site: Site[Details]) -> Edits | None:
    """`state["step"] += 1` moves before the only call of checkpoint, and its value is an argument:
    the second run gets the one that the first had."""
    tree, counted = site.tree, site.own
    function = tree.around(counted, cst.FunctionDef)
    if not isinstance(counted, cst.AugAssign) or function is None:
        return None
    if tree.block_of(counted) is not function.body or function.params.star_kwarg is not None:
        return None
    at = _only_checkpoint(site, function.name.value)
    call, target = at.tree.call(at.place), counted.target
    wish = re.findall(r"\w+", tree.code(target))[-1]
    if call is None or any(a.star for a in call.args) or not wish.isidentifier():
        return None
    if (dotted(target) or "").startswith("self.") and not same(
        at.tree, call.args[0].value, f"self.{function.name.value}"
    ):
        return None
    name, drafts = cst.Name(fresh(tree, counted, wish)), Drafts()
    inside, outside = drafts[tree], drafts[at.tree]
    outside.before(at.own, [counted])
    inside.remove(counted)
    for read in walk(function.body):
        if read.deep_equals(target) and not tree.inside(read, counted):
            inside.replace(read, name)
    params = (*function.params.params, cst.Param(name))
    inside.replace(function.params, function.params.with_changes(params=params))
    given = sorted((*call.args, cst.Arg(target)), key=lambda a: a.keyword is not None)
    outside.replace(call, call.with_changes(args=given))
    return drafts.edits()


def _only_checkpoint(site: Site[Details], name: str) -> Spot:
    """The one place at which a function of this name is checkpointed, where nothing else calls
    it."""
    index = index_of(site.program)
    calls = [
        source.place(call.lineno, None, call)
        for source, call in index.calls("checkpoint", of="torch")
        if call.args and last_name(call.args[0]) == name
    ]
    return site.at(*(calls if len(calls) == 1 and not any(index.calls_of(name)) else ()))


propose: Propose[Details] = by_table(
    Fix("undo", _taken_back, when=lambda d: d.kind == "mode", changes=True),
    Fix("torch_random", _drawn_by_torch, when=lambda d: bool(d.draws), changes=True),
    Fix("always_computed", _always_computed, when=lambda d: d.kind == "state", changes=True),
    Fix("as_argument", _given, when=lambda d: d.kind == "state", changes=True),
    Fix("not_asked", _not_asked, when=lambda d: d.kind in ("state", "mode")),
)
