"""The gradient of a non-leaf kept, and a hand-written update that keeps the leaf."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import libcst as cst

from ...model import Edits, Finding, Place, Relation, What
from ...program import Program, last_name
from ...program_index import index_of
from ..analysis.effects import fresh
from ..analysis.inplace_writes import without_ends
from ..engine.blocks import suite, with_guard
from ..engine.cst_tools import (
    block,
    dotted,
    expression,
    head,
    make,
    method,
    method_name,
    pairs,
    repeatable,
    same,
    single_targets,
    targets,
    unpacked,
    walk,
)
from ..engine.draft import Draft, Drafts
from ..engine.tree import Statement, Tree, statement_at, tree_at
from .grad_mode import is_off
from .uncut import apply_patches, called

_OFF = ("no_grad", "inference_mode", "set_grad_enabled")


def retained(program: Program, finding: Finding, *, inside: bool = False) -> Edits | None:
    """`x.retain_grad()` where each of the tensors gets its name: at the statement that computed
    it, else at one that stored what a function returned.  `inside`: what that statement names only
    has the tensors."""
    names = {n for t in finding.tensors for n in t.names}
    place = finding.place(What.FAILED)
    read = None if place is None else place.line_id  # no tensor is made there
    causes = [e.place for e in finding.events if e.what is What.CAUSE and not inside]
    causes = [p for p in causes if p is None or p.line_id != read]
    named = [e.place for e in finding.events if e.relation is Relation.NAMED]
    over = frozenset[str]()
    if not any((t.grad_fn or "").startswith(("Unbind", "Select")) for t in finding.tensors):
        # What is gone through for the tensors holds them: rows of one are made anew.
        tree, statement = statement_at(program, place)
        over = frozenset(tree.code(loop.iter) for loop in _loops_of(tree, statement, names))
    if any(_is_called_again(program, p) for p in causes):  # with what needs no gradient, perhaps
        if edits := _before_backward(program, place, names):
            return edits
    for places in (causes, causes[:1]):
        if edits := _after_all(program, places, names, over):
            return edits
    for at in named:  # the statement may name what comes of the tensor, not the tensor
        tree, statement = statement_at(program, at)
        leaves = single_targets(statement)
        if any(same(tree, leaf, name) for leaf in leaves for name in names | over):
            if edits := _after_all(program, [at], names, over):
                return edits
    return _before_backward(program, place, names)


def _is_called_again(program: Program, place: Place | None) -> bool:
    """Whether a place is in a function that several calls of the program name."""
    tree, statement = statement_at(program, place)
    function = None if statement is None else tree.scope_of(statement)
    named = function.name.value if isinstance(function, cst.FunctionDef) else ""
    return len(list(index_of(program).calls(named))) > 1 if named else False


def _loops_of(
    tree: Tree, statement: Statement | None, names: set[str]
) -> list[cst.For | cst.CompFor]:
    """The loops around a statement and inside it that give one of the names its value."""
    nodes = (*tree.loops(statement), *head(statement))
    loops = [n for n in nodes if isinstance(n, (cst.For, cst.CompFor))]
    return [n for n in loops if any(same(tree, n.target, name) for name in names)]


def _before_backward(program: Program, place: Place | None, names: set[str]) -> Edits | None:
    """The call in front of the backward before the reading, for a part of what the same block got
    from a call: `out.maps[-1].retain_grad()`, or in a loop over such parts."""
    tree, statement = statement_at(program, place)
    if statement is None:
        return None
    loops = _loops_of(tree, statement, names)
    over = next((n for n in loops if isinstance(n, cst.For)), None)
    anchor, part = (
        (statement, _read_part(tree, statement, names)) if over is None else (over, over.iter)
    )
    block, at = tree.siblings(anchor)
    started = [s for s in block[:at] if any(method_name(n) == "backward" for n in walk(s))]
    if part is None or not started or not _is_got_anew(tree, started[-1], anchor, part):
        return None
    new = _call(tree, part) if over is None else _each(tree, started[-1], part)
    return Draft(tree).before(started[-1], [new]).edits()


def _read_part(tree: Tree, statement: Statement, names: set[str]) -> cst.BaseExpression | None:
    read = (n.value for n in head(statement) if isinstance(n, cst.Attribute))
    parts = (n for n in read if not isinstance(n, cst.Name))
    return next((n for n in parts if any(same(tree, n, name) for name in names)), None)


def _is_got_anew(
    tree: Tree, backward: Statement, reading: Statement, part: cst.BaseExpression
) -> bool:
    """Whether what `part` is a part of came from a call in front of the backward, or in each round
    from the loop of which they are, and is the same at the reading."""
    block, _ = tree.siblings(backward)
    root = next((n.value for n in walk(part) if isinstance(n, cst.Name)), "")
    giving = [s for s in block if any(dotted(t) == root for t in targets(s))]
    before = [s for s in giving if tree.start(s) < tree.start(backward)]
    later = [s for s in giving[len(before) :] if tree.start(s) < tree.start(reading)]
    last = before[-1] if before else None
    called = isinstance(last, cst.Assign) and isinstance(last.value, cst.Call)
    loop = tree.outer(backward)
    if last is None and isinstance(loop, cst.For) and tree.block_of(backward) is loop.body:
        called = root in map(dotted, unpacked(loop.target))
    return called and not later and repeatable(part)


def gradient_of_whole(program: Program, place: Place) -> Edits | None:
    """`x[k].grad` -> `x.grad[k]`, wherever the statement reads one: a part that is taken anew has
    no gradient, the tensor that it is a part of has."""
    tree, statement = statement_at(program, place)
    draft = Draft(tree)
    for node in head(statement):
        if isinstance(node, cst.Attribute) and node.attr.value == "grad":
            if isinstance(part := node.value, cst.Subscript):
                draft.replace(node, part.with_changes(value=method(part.value, "grad")))
    return draft.edits()


def _after_all(
    program: Program, places: list[Place | None], names: set[str], over: frozenset[str]
) -> Edits | None:
    """The calls after each of the statements; None where one of them has no place for them."""
    drafts = Drafts()
    for place in places:
        draft = drafts[tree_at(program, place)]
        if place is None or not _after(draft, place, names, over):
            return None
    return drafts.edits()


def _after(draft: Draft, place: Place, names: set[str], over: frozenset[str]) -> bool:
    tree = draft.tree
    statement = tree.statement(place)
    if not isinstance(statement, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
        return False
    target = targets(statement)[-1]
    if isinstance(target, (cst.Tuple, cst.List)):
        meant = [t for t in unpacked(target) if any(same(tree, t, n) for n in names)]
    else:
        meant = [target] if _is_made_by(tree, statement, place, target, names) else []
    if not meant or not all(repeatable(t) for t in meant):
        return False
    held = _held(tree, statement, target, over)
    if held is None and len(meant) > 1:
        held = cst.Tuple([cst.Element(t) for t in meant])
    new = _call(tree, meant[0]) if held is None else _each(tree, statement, held)
    draft.after(statement, [new])
    return True


def _held(
    tree: Tree, statement: Statement, target: cst.BaseExpression, over: frozenset[str]
) -> cst.BaseExpression | None:
    """What a loop over the tensors goes through, where the target holds several of them."""
    value = getattr(statement, "value", None)
    if isinstance(value, cst.DictComp):
        return expression("{x}.values()", x=target)
    return target if isinstance(value, cst.ListComp) or tree.code(target) in over else None


def _is_made_by(
    tree: Tree,
    statement: cst.Assign | cst.AnnAssign | cst.AugAssign,
    place: Place,
    target: cst.BaseExpression,
    names: set[str],
) -> bool:
    """Whether the target stands for the tensor: not for what a call makes of it, to which it is
    given where it is computed."""
    call = statement.value
    if place.span is None or not isinstance(call, cst.Call):
        return True
    given = any(tree.span(arg.value) == place.span for arg in call.args)
    return not given or any(same(tree, target, name) for name in names)


def _call(tree: Tree, target: cst.BaseExpression) -> Statement:
    """The call; guarded where the program also runs the statement with gradients off, since
    `retain_grad()` raises on a tensor that does not require grad."""
    nodes = index_of(tree.program).nodes(ast.expr, naming=_OFF)
    if any(last_name(n) in _OFF for _, n in nodes):
        return block("if {x}.requires_grad:\n    {x}.retain_grad()", x=target)
    return make("{x}.retain_grad()", x=target)


def _each(tree: Tree, statement: Statement, target: cst.BaseExpression) -> cst.For:
    name = cst.Name(fresh(tree, statement, "item"))
    return cst.For(name, target, suite([_call(tree, name)]))


FLAG = "requires_grad_"


def new_leaf(program: Program, place: Place, flagged: bool = False) -> Edits | None:
    """The computed value cut from its graph and made a leaf: `(…).detach().requires_grad_()`;
    without asking for the gradient where the program does that itself (`flagged`)."""
    return apply_patches(called(program, place, "detach" if flagged else f"detach().{FLAG}"))


def in_place_update(program: Program, place: Place, reset: bool = True) -> Edits | None:
    """`x = f(x)` -> `x.copy_(f(x))` under no_grad, at each statement of the block up to `place`
    that gives x a new value computed from it.  `reset`: and its gradient anew behind the last."""
    tree, statement = statement_at(program, place)
    run = _updates(tree, statement) if isinstance(statement, cst.Assign) else []
    last = next(reversed(run), None)
    anew = reset and last is not None and not _resets(tree, last, targets(last)[0])
    return updates_in_place(program, {tree.place(s): anew and s is last for s in run})


def updates_in_place(
    program: Program, updates: Mapping[Place, bool], augmented: bool = False
) -> Edits | None:
    """Every update that gave a leaf's name a new tensor, written into the leaf under no_grad:
    `w = (w - lr * w.grad).detach()` -> `w -= lr * w.grad`.

    `updates` tells of each place whether the gradient is to be reset behind the write.  None where
    `augmented` statements are asked for and one of them has to be `copy_`.
    """
    drafts, seen = Drafts(), set[Statement]()
    for place, reset in updates.items():
        tree, statement = statement_at(program, place)
        guard = tree.imports.local("torch.no_grad")
        if statement is None or guard is None:
            return None
        if statement in seen:
            continue  # `a, b = …` is one statement
        seen.add(statement)
        lines = _written(tree, statement, reset)
        if not lines or (augmented and not isinstance(lines[0], (cst.AugAssign, cst.For))):
            return None
        if not any(is_off(tree.imports, s) for s in tree.ancestors(statement)):
            lines = [with_guard(guard, suite(lines))]
        drafts[tree].instead(statement, lines)
    return drafts.edits()


def _written(tree: Tree, statement: Statement, reset: bool) -> list[Statement]:
    """The write into the leaf and what resets its gradient; of a list that is rebuilt, a loop."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0].target, statement.value
    if isinstance(value, cst.ListComp):
        loop = value.for_in
        if loop.ifs or loop.inner_for_in or not same(tree, loop.iter, tree.code(target)):
            return []
        body = suite(_into(tree, loop.target, value.elt, reset))
        return [cst.For(loop.target, target, body)]
    found = pairs(statement)
    behind = ((tree.code(t), v) for i, (t, _) in enumerate(found) for _, v in found[i + 1 :])
    mixed = any(same(tree, n, code) for code, later in behind for n in walk(later))
    if mixed or not repeatable(target):
        return []  # a value would read what a write before it has changed
    return [s for t, v in found for s in _into(tree, t, v, reset)]


def _into(
    tree: Tree, target: cst.BaseExpression, value: cst.BaseExpression, reset: bool
) -> list[Statement]:
    copy = make("{x}.copy_({v})", x=target, v=without_ends(value))
    written = [_augmented(tree, target, value) or copy]
    return [*written, make("{x}.grad = None", x=target)] if reset else [*written]


def _updates(tree: Tree, last: cst.Assign) -> list[cst.Assign]:
    """The assignments of the block, up to `last`, of a name by what is computed from it."""
    target = targets(last)[0]
    if len(last.targets) != 1 or not repeatable(target):
        return []
    (inside, end), code = tree.siblings(last), tree.code(target)
    return [
        s
        for s in inside[: end + 1]
        if isinstance(s, cst.Assign)
        and len(s.targets) == 1
        and same(tree, s.targets[0].target, code)
        and any(same(tree, n, code) for n in walk(s.value))
    ]


def _augmented(
    tree: Tree, target: cst.BaseExpression, value: cst.BaseExpression
) -> cst.BaseSmallStatement | None:
    """`w -= g` for `w = w - g`."""
    value = without_ends(value)
    if not isinstance(value, cst.BinaryOperation) or not isinstance(target, _ASSIGNED):
        return None
    sign = tree.code(value.operator).strip()
    if sign not in ("-", "+", "*") or not same(tree, without_ends(value.left), tree.code(target)):
        return None
    return make(f"{{x}} {sign}= {{v}}", x=target, v=value.right)


_ASSIGNED = (cst.Name, cst.Attribute, cst.Subscript)


def _resets(tree: Tree, statement: Statement, target: cst.BaseExpression) -> bool:
    """Whether the same block clears the gradient already."""
    path = dotted(target)
    code = "".join(tree.code(s) for s in tree.siblings(statement)[0])
    return path is not None and (f"{path}.grad.zero_" in code or f"{path}.grad = None" in code)
