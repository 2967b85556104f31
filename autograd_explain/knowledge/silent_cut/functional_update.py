"""Parameters that a loop updates by hand, handed to the model as tensors.

`torch.func.functional_call` takes the parameters as tensors, so that an update by hand is an
operation like any other and the gradient passes through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from autograd_explain.model import Edits, Place
from autograd_explain.program import Program
from autograd_explain.rewrite.analysis.effects import fresh
from autograd_explain.rewrite.analysis.inplace_writes import without_data
from autograd_explain.rewrite.engine.cst_tools import (
    called_name,
    called_on,
    dotted,
    find,
    repeatable,
    targets,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.imports import imports_at, torch_at
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at, statements_in
from autograd_explain.rewrite.transforms.out_of_place import value_of_write

_LISTS = {"parameters": "values", "named_parameters": "items"}
#: What is asked of a model besides its results.
_ASKED = frozenset({*_LISTS, *"zero_grad state_dict load_state_dict train eval".split()})
_VECTOR = "torch.nn.utils.vector_to_parameters"
_PARTS = """{weights}, {start} = {{}}, 0
for {name}, {p} in {model}.named_parameters():
    {weights}[{name}] = {vector}[{start} : {start} + {p}.numel()].view_as({p})
    {start} += {p}.numel()
{fast} = lambda *args: {torch}.func.functional_call({model}, {weights}, args)
"""
_PUT_BACK = """with {torch}.no_grad():
    for p, w in zip({model}.parameters(), {weights}.values()):
        p.copy_(w)
"""


@dataclass(frozen=True, eq=False)
class _Model:
    """A model that a program calls `name`; `weights` are its parameters as a dictionary."""

    program: Program
    tree: Tree
    name: str
    weights: str

    def listed(self, node: cst.CSTNode) -> str:
        """What the dictionary gives in the place of a call that lists the parameters; "" for any
        other node."""
        owner = called_on(node, *_LISTS)
        same = owner is not None and dotted(owner) == self.name
        plain = same and isinstance(node, cst.Call) and not node.args
        return _LISTS[called_name(node)] if plain else ""

    def loops(self, inside: cst.CSTNode) -> list[cst.For]:
        """The loops over the parameters."""
        loops = (n for n in walk(inside) if isinstance(n, cst.For))
        return [loop for loop in loops if any(self.listed(n) for n in walk(loop.iter))]


def functional_update(
    program: Program, place: Place | None, backward: Place | None
) -> Edits | None:
    """`fast = deepcopy(model)` at `place`, or a write to the parameters of a copy or of a model in
    a loop over them: `p.data -= lr * g`.

    `weights = dict(model.named_parameters())`, and what is called is the model with them; the loop
    gives `weights` new values.  A model that nothing puts back gets them when the gradient has been
    taken, at `backward`.  None where there is no such loop, or one does anything else.
    """
    (tree, own), torch = statement_at(program, place), torch_at(program, place)
    if own is None or torch is None:
        return None
    around = next((n for n in tree.loops(own) if isinstance(n, cst.For)), None)
    listed = [] if around is None else [n for n in walk(around.iter) if called_on(n, *_LISTS)]
    name = dotted(called_on(listed[0])) if listed else None
    copied = own if _copied(own) is not None else _copy_of(tree, own, name)
    weights = fresh(tree, own, "weights")
    if copied is not None:
        return _of_copy(
            _Model(program, tree, dotted(targets(copied)[0]) or "", weights), copied, torch
        )
    last = tree.statement(backward) if backward is not None else None
    if around is None or name is None or last is None:
        return None
    return _of_model(_Model(program, tree, name, weights), around, last, torch)


def functional_vector(program: Program, place: Place | None) -> Edits | None:
    """`vector_to_parameters(theta, model.parameters())` -> the parts of `theta` by the names of the
    parameters; the model is called with them behind it."""
    (tree, own), torch = statement_at(program, place), torch_at(program, place)
    call = own.value if isinstance(own, cst.Expr) else None
    if own is None or torch is None or not isinstance(call, cst.Call) or len(call.args) != 2:
        return None
    full = imports_at(program, place).full(tree.code(call.func))
    vector, owner = call.args[0].value, called_on(call.args[1].value, "parameters")
    name = None if owner is None else dotted(owner)
    if full != _VECTOR or name is None or not repeatable(vector):
        return None
    order, at = tree.siblings(own)
    new = {k: fresh(tree, own, k) for k in ("weights", "start", "name", "p", "fast")}
    model, draft = _Model(program, tree, name, new["weights"]), Draft(tree)
    called = [_with_results(model, draft, s, new["fast"]) for s in order[at + 1 :]]
    if not any(called) or None in called:
        return None
    for node in (n for s in order[at + 1 :] for n in walk(s)):
        if listed := model.listed(node):
            draft.replace(node, cst.parse_expression(f"{model.weights}.{listed}()"))
    code = _PARTS.format(**new, vector=tree.code(vector), model=name, torch=torch)
    return draft.instead(own, code).edits()


def _copied(statement: Statement) -> cst.BaseExpression | None:
    """`model` of `fast = copy.deepcopy(model)`."""
    call = statement.value if isinstance(statement, cst.Assign) else None
    named = isinstance(statement, cst.Assign) and len(statement.targets) == 1
    if not named or not isinstance(targets(statement)[0], cst.Name):
        return None
    one = isinstance(call, cst.Call) and len(call.args) == 1 and called_name(call) == "deepcopy"
    return call.args[0].value if one and isinstance(call, cst.Call) else None


def _copy_of(tree: Tree, own: Statement, name: str | None) -> Statement | None:
    """The statement that makes the copy, of the name, that is written."""
    scope = tree.scope_of(own)
    made = [
        s
        for s in tree.statements
        if tree.scope_of(s) is scope and _copied(s) is not None and dotted(targets(s)[0]) == name
    ]
    return made[0] if len(made) == 1 else None


def _of_copy(copy: _Model, made: Statement, torch: str) -> Edits | None:
    draft, model = Draft(copy.tree), _copied(made)
    if model is None or not _with_updates(copy, draft, copy.tree.scope_of(made)):
        return None
    lines = _lines(copy, copy.tree.code(model), copy.name, torch)
    return draft.instead(made, lines).edits()


def _of_model(model: _Model, loop: cst.For, last: Statement, torch: str) -> Edits | None:
    tree, draft = model.tree, Draft(model.tree)
    levels = [(a, b) for a in _levels(tree, loop) for b in _levels(tree, last)]
    pair = next((p for p in levels if tree.block_of(p[0]) is tree.block_of(p[1])), None)
    if pair is None or pair[0] is pair[1]:
        return None
    first, backward = pair
    order, at = tree.siblings(first)
    behind = order[at + 1 :]
    back = next((i for i, s in enumerate(behind) if _puts_back(model, s)), None)
    fast = fresh(tree, first, "fast")
    called = [_with_results(model, draft, s, fast) for s in (first, *behind[:back])]
    if not any(called) or None in called or not _with_updates(model, draft, first):
        return None
    draft.before(first, _lines(model, model.name, fast, torch))
    if back is None:
        code = _PUT_BACK.format(torch=torch, model=model.name, weights=model.weights)
        draft.after(backward, code)
    return draft.edits()


def _levels(tree: Tree, statement: Statement) -> Iterator[Statement]:
    """The statement and the ones around it in the same function, innermost first."""
    scope = tree.scope_of(statement)
    for node in tree.path(statement):
        if isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            if node is not scope:
                yield node
        if node is scope:
            return


def _lines(model: _Model, of: str, called: str, torch: str) -> list[Statement]:
    call = f"{torch}.func.functional_call({of}, {model.weights}, args)"
    code = f"{model.weights} = dict({of}.named_parameters())\n{called} = lambda *args: {call}\n"
    return statements_in(cst.parse_module(code))


def _puts_back(model: _Model, statement: Statement) -> bool:
    loads = (n for n in walk(statement) if called_name(n) == "load_state_dict")
    return any(dotted(called_on(n)) == model.name for n in loads) or bool(model.loops(statement))


def _with_results(model: _Model, draft: Draft, statement: Statement, fast: str) -> int | None:
    """Another name for the model where it is called or handed on, and how often; None where it is
    asked for something else."""
    count = 0
    for inner in model.tree.statements:
        for node in (
            find(model.tree, inner, model.name) if model.tree.inside(inner, statement) else ()
        ):
            parent = model.tree.parents[node]
            if not isinstance(parent, cst.Attribute):
                draft.replace(node, cst.Name(fast))
                count += 1
            elif parent.attr.value not in _ASKED:
                return None
    return count


def _with_updates(model: _Model, draft: Draft, inside: cst.CSTNode) -> bool:
    """The dictionary in the place of the parameters, and new values for it in that of the loops
    that write them; whether there are such loops and all could be changed."""
    loops = model.loops(inside)
    for loop in loops:
        code = _update(model, loop)
        if code is None:
            return False
        draft.instead(_block_of(model.tree, loop), code)
    for node in walk(inside):
        if (listed := model.listed(node)) and not any(model.tree.inside(node, s) for s in loops):
            draft.replace(node, cst.parse_expression(f"{model.weights}.{listed}()"))
    return bool(loops)


def _update(model: _Model, loop: cst.For) -> str | None:
    """`for p, g in zip(fast.parameters(), gs): p.data -= lr * g` ->
    `weights.update({name: p - lr * g for (name, p), g in zip(weights.items(), gs)})`."""
    tree, code, body = model.tree, model.tree.code, statements_in(loop.body)
    zipped = [a.value for a in loop.iter.args] if called_name(loop.iter) == "zip" else []  # type: ignore[attr-defined]
    taken = [e.value for e in loop.target.elements] if isinstance(loop.target, cst.Tuple) else []
    at = [i for i, given in enumerate(zipped) if model.listed(given) == "values"]
    if len(zipped) != len(taken) or len(at) != 1 or len(body) != 1 or loop.orelse:
        return None
    param = taken[at[0]]
    new = _new_value(model, body[0], code(param))
    if new is None or not isinstance(param, cst.Name):
        return None
    name = fresh(tree, loop, "name")
    pair = [f"({name}, {param.value})" if t is param else code(t) for t in taken]
    lists = [f"{model.weights}.items()" if i in at else code(z) for i, z in enumerate(zipped)]
    pairs = f"for {', '.join(pair)} in zip({', '.join(lists)})"
    return f"{model.weights}.update({{{name}: {new} {pairs}}})\n"


def _block_of(tree: Tree, loop: cst.For) -> Statement:
    """The loop, or the block under no_grad of which it is the whole."""
    outer = tree.outer(loop)
    if isinstance(outer, cst.With) and len(statements_in(outer.body)) == 1:
        if called_name(outer.items[0].item) == "no_grad":
            return outer
    return loop


def _new_value(model: _Model, update: Statement, param: str) -> str | None:
    """What an update gives a parameter, as an expression that writes nothing."""
    written = called_on(update)
    if isinstance(update, (cst.Assign, cst.AugAssign)):
        written = targets(update)[0]
    if written is None or dotted(without_data(written)) != param:
        return None
    call = getattr(update, "value", None)
    if isinstance(call, cst.Call) and called_name(call) == "copy_" and len(call.args) == 1:
        value = model.tree.code(call.args[0].value)
        if f"{param}.data" not in value:  # of the parameter's own shape and dtype
            return value
    return value_of_write(model.program, model.tree.place(update))
