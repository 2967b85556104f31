"""A state that each round should begin with as the first one did: rounds that have nothing to do
with each other carry nothing over."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program, last_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import effects, reads_any
from autograd_explain.rewrite.engine.blocks import BlockItem
from autograd_explain.rewrite.engine.cst_tools import (
    called_name,
    calls_in,
    dotted,
    head,
    is_number,
    make,
    named_targets,
    targets,
    unpacked,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import merge
from autograd_explain.rewrite.engine.tree import Statement, Tree, statements_in, tree_at
from autograd_explain.rewrite.transforms.out_of_place import out_of_place

_ROUND = (cst.For, cst.While)
_FILLS = ("zero_", "fill_")
_PASSED_ON = frozenset({"enumerate", "tqdm", "zip"})


def begun_anew(program: Program, backward: Place, *states: str) -> Edits | None:
    """The statements that gave the states their first values moved into the loop around the
    backward, where the text says that its rounds are apart: a loop within goes over the steps of
    each, or a loader gives them in any order.  None where it does not."""
    tree = tree_at(program, backward)
    failed = tree.statement(backward)
    if failed is None:
        return None
    loop = next((a for a in tree.ancestors(failed) if isinstance(a, _ROUND)), None)
    if loop is None or not any(_is_apart(program, loop, failed, state) for state in states):
        return None
    draft, pieces = Draft(tree), list[Statement | BlockItem]()
    for first in dict.fromkeys(_first_value(tree, loop, state) for state in states):
        if first is None:
            return None
        pieces.append(draft.piece(first))
        draft.remove(first)
    return draft.before(statements_in(loop.body)[0], pieces).edits()


def sum_anew(program: Program, backward: Place, freed: Place | None, total: str) -> Edits | None:
    """A sum that went backward and is added to, before it does so again, begun anew in between:
    with the number that it began with, or with what is added first.  None where the gradients are
    cleared in between and it is the first part that is wanted once more."""
    tree = tree_at(program, backward)
    (inside, end), first = tree.siblings(tree.statement(backward)), tree.statement(freed)
    start = next((i for i, s in enumerate(inside[:end]) if s is first), end)
    between = inside[start + 1 : end]
    goal = next((s for s in between if total in effects(s).writes), None)
    if goal is None or not all(reads_any(inside[i], {total}) for i in (start, end)):
        return None
    given = [s for s in inside[:start] if isinstance(s, cst.Assign) and total in named_targets(s)]
    if given and is_number(given[-1].value):
        return Draft(tree).before(goal, [given[-1]]).edits()
    added = goal.value if isinstance(goal, cst.AugAssign) else None
    sums = isinstance(goal, cst.AugAssign) and isinstance(goal.operator, cst.AddAssign)
    cleared = any(called_name(n) == "zero_grad" for s in between for n in calls_in(s))
    if added is None or not sums or cleared or reads_any(added, {total}):
        return None
    new = make(f"{total} = {{x}}", x=added)
    return Draft(tree).replace(goal, new).edits()


def reset_anew(program: Program, maker: Place, state: str) -> Edits | None:
    """The state set anew where the program begins a round, in a way that leaves its graph behind.

    A reset in place (`self.mem.zero_()`) writes new values and keeps the history: a new tensor
    takes the name.  A method that gives other attributes their first values again does so with
    this one too.  `maker` is the statement that gives the state its values in a round.
    """
    name = state.rpartition(".")[2]
    places = [
        source.place(call.lineno, None, call)
        for source, call in index_of(program).calls(*_FILLS, of="torch")
        if isinstance(call.func, ast.Attribute) and last_name(call.func.value) == name
    ]
    if places:
        together = dict.fromkeys(p for place in places for p in _beside(program, place))
        return merge(*(out_of_place(program, place) for place in together))
    return _reset_with_others(tree_at(program, maker), maker, name)


def _beside(program: Program, place: Place) -> Iterator[Place]:
    """The resets in place of a block."""
    tree = tree_at(program, place)
    found = tree.statement(place)
    block = None if found is None else tree.block_of(found)
    for inside in [] if block is None else statements_in(block):
        call = inside.value if isinstance(inside, cst.Expr) else None
        if isinstance(call, cst.Call) and (dotted(call.func) or "").rpartition(".")[2] in _FILLS:
            yield tree.place(inside)


def _reset_with_others(tree: Tree, maker: Place, name: str) -> Edits | None:
    """The first value given again in the method that does so with others of the constructor's; the
    same for all that the method of `maker` gives new values."""
    made = tree.statement(maker)
    around = () if made is None else tuple(tree.ancestors(made))
    owner = next((a for a in around if isinstance(a, cst.ClassDef)), None)
    step = next((a for a in around if isinstance(a, cst.FunctionDef)), None)
    methods = [] if owner is None else statements_in(owner.body)
    functions = [m for m in methods if isinstance(m, cst.FunctionDef)]
    begun = next((_given(m) for m in functions if m.name.value == "__init__"), {})
    others = [m for m in functions if m.name.value != "__init__" and m is not step]
    resets = [m for m in others if _resets(m, begun)]
    if step is None or len(resets) != 1 or f"self.{name}" not in begun:
        return None
    missing = _given(step).keys() - _given(resets[0]).keys()
    lines = [_again(path, begun[path]) for path in begun if path in missing]
    if not lines or None in lines:
        return None
    inside = statements_in(resets[0].body)
    return Draft(tree).after(inside[-1], [line for line in lines if line]).edits()


def _again(path: str, value: cst.BaseExpression) -> cst.BaseSmallStatement | None:
    """`self.h = None`, or zeros like those that it has."""
    if dotted(value) == "None":
        return make(f"{path} = None")
    function = dotted(value.func) or "" if isinstance(value, cst.Call) else ""
    called = function.removesuffix("_like")
    return make(f"{path} = {called}_like({path})") if called.endswith(".zeros") else None


def _is_zeros(value: cst.BaseExpression) -> bool:
    called = dotted(value.func) or "" if isinstance(value, cst.Call) else ""
    return called.rpartition(".")[2] in ("zeros", "zeros_like")


def _given(function: cst.FunctionDef) -> dict[str, cst.BaseExpression]:
    """What a method gives the attributes of its object."""
    found: dict[str, cst.BaseExpression] = {}
    for inside in statements_in(function.body):
        if isinstance(inside, (cst.Assign, cst.AnnAssign)) and inside.value is not None:
            for target in targets(inside):
                together = isinstance(target, cst.Tuple) and isinstance(inside.value, cst.Tuple)
                parts = inside.value.elements if together else ()  # type: ignore[attr-defined]
                values = [e.value for e in parts] or [inside.value]
                pairs = zip(unpacked(target), values, strict=False)
                found |= {path: value for leaf, value in pairs if (path := dotted(leaf))}
        for call in (n for n in head(inside) if isinstance(n, cst.Call)):
            named = call.args[0].value if len(call.args) > 1 else None
            buffer = dotted(call.func) == "self.register_buffer"
            if buffer and isinstance(named, cst.SimpleString):
                found[f"self.{named.raw_value}"] = call.args[1].value
    return found


def _resets(function: cst.FunctionDef, begun: Mapping[str, cst.BaseExpression]) -> bool:
    """Whether all that a method does is to give attributes what the constructor gave them."""
    inside, given = statements_in(function.body), _given(function)
    cleared = {
        path.rpartition(".")[0]
        for n in walk(function.body)
        if isinstance(n, cst.Call) and (path := dotted(n.func) or "").endswith(".clear")
    }
    if any(not isinstance(s, (cst.Assign, cst.Expr)) for s in inside):
        return False
    alike = (path in begun and _is_alike(value, begun[path]) for path, value in given.items())
    return bool(given or cleared) and all(alike) and begun.keys() >= cleared


def _is_alike(one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    return one.deep_equals(other) or (_is_zeros(one) and _is_zeros(other))


def _first_value(tree: Tree, loop: cst.For | cst.While, state: str) -> Statement | None:
    """The last assignment to the state above the loop, in its scope."""
    scope, start = tree.scope_of(loop), tree.start(loop)
    for other in reversed(tree.statements):
        if tree.start(other) < start and tree.scope_of(other) is scope:
            if isinstance(other, cst.Assign) and state in named_targets(other):
                return other
    return None


def _is_apart(program: Program, loop: cst.For | cst.While, backward: Statement, state: str) -> bool:
    if not isinstance(loop, cst.For):
        return False
    for steps in statements_in(loop.body):
        if isinstance(steps, cst.For) and not any(n is backward for n in walk(steps)):
            if state in effects(steps).writes and not _goes_on(steps.iter, loop):
                return True
    return any(_is_shuffled(program, name) for name in _iterated(loop.iter))


def _goes_on(steps: cst.BaseExpression, loop: cst.For) -> bool:
    """Whether the steps begin where the round's variable says: `range(start, start + k)`."""
    own = {leaf.value for leaf in unpacked(loop.target) if isinstance(leaf, cst.Name)}
    if isinstance(steps, cst.Call) and dotted(steps.func) == "range":
        return any(_computes_with(arg.value, own) for arg in steps.args)
    parts = (n for n in walk(steps) if isinstance(n, cst.Slice))
    bounds = (b for part in parts for b in (part.lower, part.upper) if b is not None)
    return any(_computes_with(bound, own) for bound in bounds)


def _computes_with(node: cst.BaseExpression, names: set[str]) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return _computes_with(node.left, names) or _computes_with(node.right, names)
    return isinstance(node, cst.Name) and node.value in names


def _iterated(node: cst.BaseExpression) -> Iterator[str]:
    """The names that a loop goes over, behind `enumerate` and the like."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Call) and dotted(node.func) in _PASSED_ON:
        for arg in node.args:
            yield from _iterated(arg.value)


def _is_shuffled(program: Program, name: str) -> bool:
    """Whether the program makes it a loader that shuffles."""
    for _, node in index_of(program).nodes(ast.Assign):
        named = any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
        if named and isinstance(node.value, ast.Call):
            flags = (k.value for k in node.value.keywords if k.arg == "shuffle")
            if any(isinstance(flag, ast.Constant) and flag.value is True for flag in flags):
                return True
    return False
