"""The graph ended where it should end: `.detach()` on a value or a state."""

from __future__ import annotations

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import base_path, fresh
from ..engine.cst_tools import (
    expression,
    find,
    is_starred,
    make,
    method,
    method_name,
    pairs,
    repeatable,
    same,
    single_targets,
    targets,
)
from ..engine.draft import Draft, Drafts, only
from ..engine.tree import Statement, Tree, statement_at, tree_at
from .spot import Spot


def detach_expression(
    program: Program,
    place: Place,
    expr: str,
    *,
    state: bool = False,
) -> Edits | None:
    """End the graph at `expr` in the statement at `place`.

    `expr` is what the statement assigns (`self.h = h` -> `self.h = h.detach()`; in an unpacking the
    value goes through a new local name) or else something it reads (`D(fake)` ->
    `D(fake.detach())`).  `state` says that the value is a tuple of tensors (an LSTM's).
    """
    tree = tree_at(program, place)
    return only(
        _assigned(tree, statement, expr, state) or _read(tree, statement, expr, state)
        for statement in tree.candidates(place)
    )


def detach_use(
    program: Program,
    place: Place,
    expr: str,
    *,
    state: bool = False,
    or_none: bool = False,
) -> Edits | None:
    """`.detach()` where the statement reads `expr`: `rnn(x, h)` -> `rnn(x, h.detach())`; with
    `or_none` it may be None: `rnn(x, None if h is None else h.detach())`."""
    tree = tree_at(program, place)
    return only(_read(tree, s, expr, state, or_none) for s in tree.candidates(place))


def detached_at(program: Program, *places: Place | None) -> Edits | None:
    """`.detach()` on the expressions at the places' spans: `queue.append(z)` -> `…(z.detach())`.

    None where one of them is not found or has no graph any more.
    """
    drafts = Drafts()
    for place in places:
        tree = tree_at(program, place)
        node = tree.node(place)
        ended = None if node is None else _ended(node, False)
        drafts[tree].replace(node, None if ended is node else ended)
    return drafts.edits()


def detached_where_kept(program: Program, place: Place, name: str) -> Edits | None:
    """`.detach()` where an object gets what the statement at `place` gave a name: `self.h = h` ->
    `self.h = h.detach()`.  What else reads the name in this run keeps its graph."""
    tree, maker = statement_at(program, place)
    kept = [
        s.value
        for s in tree.statements
        if isinstance(s, cst.Assign)
        and maker is not None
        and tree.scope_of(s) is tree.scope_of(maker)
        and tree.start(s) > tree.start(maker)
        and same(tree, s.value, name)
        and all(isinstance(t, (cst.Attribute, cst.Subscript)) for t in targets(s))
    ]
    return Draft(tree).behind(kept[0], "detach()").edits() if len(kept) == 1 else None


def _assigned(tree: Tree, statement: Statement, expr: str, state: bool) -> Draft | None:
    """`.detach()` on the value that the statement stores, if `expr` is what it stores."""
    if not isinstance(statement, (cst.Assign, cst.AnnAssign)) or statement.value is None:
        return None
    draft = Draft(tree)
    value = next((v for t, v in pairs(statement) if same(tree, t, expr)), None)
    if value is not None:
        return draft.replace(value, _ended(value, state))
    leaves = [leaf for leaf in single_targets(statement) if same(tree, leaf, expr)]
    if len(leaves) != 1 or not repeatable(leaves[0]):
        return None
    target = local = leaves[0]
    if not isinstance(target, cst.Name):
        wish = (base_path(target) or "value").rpartition(".")[2]
        local = cst.Name(fresh(tree, statement, wish))
        draft.replace(target, local)
    return draft.after(statement, [make("{x} = {v}", x=target, v=_ended(local, state))])


def _read(
    tree: Tree, statement: Statement, expr: str, state: bool, or_none: bool = False
) -> Draft | None:
    every = find(tree, statement, expr)
    found = [node for node in every if not _is_asked_for(tree, node)]
    if not found:
        return None
    draft, or_none = Draft(tree), or_none and len(found) == len(every)
    for node in found:
        if is_starred(tree, node):
            return None
        ended = _ended(node, state)
        if or_none:
            ended = expression("None if {x} is None else {v}", x=node, v=ended)
        draft.replace(node, ended)
    return draft


def _is_asked_for(tree: Tree, node: cst.BaseExpression) -> bool:
    """`x` of `x is None`: there the value itself does not matter."""
    compared = tree.parents[node]
    signs = compared.comparisons if isinstance(compared, cst.Comparison) else ()
    return any(isinstance(c.operator, (cst.Is, cst.IsNot)) for c in signs)


def _ended(node: cst.BaseExpression, state: bool) -> cst.BaseExpression:
    """The value without its graph; element by element for a tuple."""
    if isinstance(node, cst.Tuple):
        elements = [e.with_changes(value=_ended(e.value, state)) for e in node.elements]
        return node.with_changes(elements=elements)
    if state:
        return expression("tuple(s.detach() for s in {x})", x=node)
    if isinstance(node, cst.Call) and method_name(node) in {"detach", "item"} and not node.args:
        return node
    return method(node, "detach()")


def detach_after(
    program: Program, place: Place | None, *exprs: str, kind: str = "tensor"
) -> Edits | None:
    """Lines `h = h.detach()` after the statement at `place`; `kind`: what each is."""
    line = "{x} = " + _ENDED.get(kind, "{x}.detach()")
    return Spot(program, place).behind("\n".join(line.format(x=expr) for expr in exprs))


def bound_again(program: Program, place: Place, expr: str) -> Place | None:
    """Where the loop around `place` gives `expr` a new value after it, before the next round."""
    tree, start = statement_at(program, place)
    loops = tree.loops(start)
    if start is None or not loops:
        return None
    rest = (s for s in tree.statements if tree.is_behind(s, start) and tree.inside(s, loops[0]))
    again = (s for s in rest if any(same(tree, leaf, expr) for leaf in single_targets(s)))
    return next(map(tree.place, again), None)


_ENDED = {
    "tuple": "tuple(s.detach() for s in {x})",
    "list": "[s if s is None else s.detach() for s in {x}]",
    "tensors": "[t.detach() for t in {x}]",
    "tuples": "[tuple(t.detach() for t in s) for s in {x}]",
    "dict": "{{k: t.detach() for k, t in {x}.items()}}",
}
