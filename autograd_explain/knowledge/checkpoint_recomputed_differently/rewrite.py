"""Let both runs of the checkpointed function do the same: what they read is given to them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import cast

import libcst as cst
from libcst import matchers

from autograd_explain.model import Place
from autograd_explain.program import Program, last_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table, torch_at
from autograd_explain.rewrite.analysis.effects import effects, fresh
from autograd_explain.rewrite.engine.cst_tools import (
    called_name,
    calls_in,
    dotted,
    expression,
    is_label,
    positional_parameters,
    repeatable,
    unpacked,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft, Drafts
from autograd_explain.rewrite.engine.edits import merge
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at
from autograd_explain.rewrite.transforms.remove_memoization import always_computed
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
    return merge(*(_draws(site.program, place) for place in site.details.draws))


def _draws(program: Program, place: Place) -> Edits | None:
    (tree, found), torch = statement_at(program, place), torch_at(program, place)
    if found is None or torch is None:
        return None
    draft = Draft(tree)
    for call in calls_in(found):
        template = _OF_TORCH.get(tree.imports.full(dotted(call.func)), "")
        given = [tree.code(arg.value) for arg in call.args if not arg.star and not arg.keyword]
        places = len({n for n in "01" if f"{{{n}}}" in template})
        if template and len(given) == len(call.args) == places:
            draft.replace(call, expression(template.format(*given, torch=torch)))
    return draft.edits()


def _always_computed(site: Site[Details]) -> Edits | None:
    """`if key not in cache: cache[key] = …` -> the assignment alone."""
    tree, stored = site.tree, site.own
    guard = tree.around(stored, cst.If)
    return None if guard is None else always_computed(site.program, tree.place(guard))


def _before_call(site: Site[Details]) -> Edits | None:
    """`if self.training: self.steps += 1` in a module that is checkpointed goes before the call, as
    `if block.training: block.steps += 1`: backward does not count again."""
    tree, counted = site.tree, site.own
    call = site.at(site.details.call)
    outer, statement = call.tree, call.own
    if not isinstance(counted, cst.AugAssign) or statement is None:
        return None
    moved = tree.alone_in(counted, cst.If)
    function = tree.around(moved, cst.FunctionDef)
    found = (c.args[0].value for c in calls_in(statement) if called_name(c) == "checkpoint")
    receiver = next(found, None)
    if function is None or receiver is None or not repeatable(receiver):
        return None
    if function.name.value != "forward" or not _is_of_round(outer, statement, receiver):
        return None
    own = positional_parameters(function)[0]
    inside, end = tree.siblings(moved)
    first = tree.block_of(moved) is function.body and effects(moved)
    if not first or any(first.conflicts(effects(s)) for s in inside[:end]):
        return None
    names = (n for n in walk(moved) if isinstance(n, cst.Name) and not is_label(tree, n))
    if any(n.value != own for n in names):
        return None
    again = matchers.replace(moved, matchers.Name(own), receiver)
    drafts = Drafts()
    drafts[tree].remove(moved)
    drafts[outer].before(statement, [cast(Statement, again)])
    return drafts.edits()


def _not_asked(site: Site[Details]) -> Edits | None:
    """`model.gradient_checkpointing_enable()` is left out."""
    switch = site.details.switch
    alone = isinstance(site.at(switch).statement, ast.Expr)
    return site.at(switch).removed() if switch is not None and alone else None


def _taken_back(site: Site[Details]) -> Edits | None:
    """`unet.enable_adapters()` for `unet.disable_adapters()`: before backward, where that stands
    behind it in the same block, else where the function around is done."""
    program, method = site.program, site.details.opposite
    tree, own = statement_at(program, site.place)
    backward = site.at(site.details.backward).own
    if own is None or not method:
        return None
    order, at = tree.siblings(own)
    if backward in order[at + 1 :]:
        undo = undone(tree, own, method)
        return None if undo is None else Draft(tree).before(backward, [undo]).edits()
    return undone_behind(program, site.place, method)


def _is_of_round(tree: Tree, statement: Statement, receiver: cst.BaseExpression) -> bool:
    """Whether no loop calls the same module again."""
    around = next(iter(tree.loops(statement)), None)
    head = (dotted(receiver) or "").partition(".")[0]
    taken = unpacked(around.target) if isinstance(around, cst.For) else []
    return around is None or any(dotted(name) == head for name in taken)


@dataclass(frozen=True, eq=False)
class _Counted:
    """`self.calls += 1` in the checkpointed function, and the only call that checkpoints it."""

    tree: Tree
    counted: cst.AugAssign
    function: cst.FunctionDef
    outer: Tree
    call: cst.Call
    statement: Statement


def _given(site: Site[Details]) -> Edits | None:
    """The counter moves before the call of checkpoint, and its value is an argument: the second run
    gets the one that the first had."""
    found = _counter(site.program, site.place)
    if found is None:
        return None
    tree, target = found.tree, found.counted.target
    wish = target.slice[0].slice if isinstance(target, cst.Subscript) else target
    name = _word(wish)
    if not name.isidentifier():
        return None
    name = fresh(tree, found.counted, name)
    drafts = Drafts()
    inside, outside = drafts[tree], drafts[found.outer]
    outside.before(found.statement, [found.counted])
    inside.remove(found.counted)
    for read in walk(found.function.body):
        own = any(n is read for n in walk(found.counted))
        if isinstance(read, type(target)) and read.deep_equals(target) and not own:
            inside.replace(read, cst.Name(name))
    params = found.function.params
    more = params.with_changes(params=(*params.params, cst.Param(cst.Name(name))))
    inside.replace(params, more)
    positional = [a for a in found.call.args if a.keyword is None]
    named = found.call.args[len(positional) :]
    given = (*positional, cst.Arg(target), *named)
    outside.replace(found.call, found.call.with_changes(args=given))
    return drafts.edits()


def _word(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Index):
        node = node.value
    if isinstance(node, cst.SimpleString):
        return str(node.raw_value)
    return (dotted(node) or "").rpartition(".")[2]


def _counter(program: Program, place: Place) -> _Counted | None:
    tree, counted = statement_at(program, place)
    function = tree.around(counted, cst.FunctionDef)
    if not isinstance(counted, cst.AugAssign) or function is None:
        return None
    if tree.block_of(counted) is not function.body or function.params.star_kwarg is not None:
        return None
    name = function.name.value
    calls = [
        (source, call)
        for source, call in index_of(program).calls("checkpoint", of="torch")
        if call.args and last_name(call.args[0]) == name
    ]
    if len(calls) != 1 or any(index_of(program).calls_of(name)):
        return None
    source, node = calls[0]
    outer, statement = statement_at(program, source.place(node.lineno, None, node))
    call = next((c for c in calls_in(statement) if _checkpoints(c, name)), None)
    method = (dotted(counted.target) or "").startswith("self.")
    same = call is not None and (not method or dotted(call.args[0].value) == f"self.{name}")
    if statement is None or call is None or not same or any(a.star for a in call.args):
        return None
    return _Counted(tree, counted, function, outer, call, statement)


def _checkpoints(call: cst.Call, name: str) -> bool:
    given = dotted(call.args[0].value) or "" if call.args else ""
    return called_name(call) == "checkpoint" and given.rpartition(".")[2] == name


propose: Propose[Details] = by_table(
    Fix("undo", _taken_back, when=lambda d: d.kind == "mode", changes=True),
    Fix("torch_random", _drawn_by_torch, when=lambda d: bool(d.draws), changes=True),
    Fix("always_computed", _always_computed, when=lambda d: d.kind == "state", changes=True),
    Fix("as_argument", _given, when=lambda d: d.kind == "state", changes=True),
    Fix("before_call", _before_call, when=lambda d: d.kind == "state", changes=True),
    Fix("not_asked", _not_asked, when=lambda d: d.kind in ("state", "mode")),
)
