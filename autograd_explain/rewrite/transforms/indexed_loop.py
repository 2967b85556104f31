"""What a loop writes to: views made one at a time, which may be written, or each element replaced
in its list."""

from __future__ import annotations

import ast
from typing import TypeGuard

import libcst as cst
from libcst import matchers as m

from ...model import Edits, Place
from ...program import Program, Source, called_name
from ..analysis.effects import (
    effects,
    gone_through,
    is_own_variable,
    loop_binding,
    parameter_names,
    read_later,
    reads_any,
    used_names,
)
from ..analysis.inplace_writes import inplace_calls
from ..analysis.written_target import assigned
from ..engine.cst_tools import called_on, dotted, expression, make, method_name, named, parse, walk
from ..engine.draft import Draft
from ..engine.tree import Statement, Tree, statement_at, tree_at
from .move_statement import run_between
from .out_of_place import operated
from .uncut import Patch, apply_patches

_Written = tuple[str, cst.BaseExpression]
#: What gives several tensors at once gives a tuple.
_TUPLES = frozenset("grad split chunk unbind tensor_split".split())


def index_at_write(
    program: Program, maker: Place | None, write: Place | None, name: str, base: str
) -> Edits | None:
    """The view is made where it is written: `slots = [x[i, :n] for …]` keeps the indices instead,
    and `slot.copy_(y)` becomes `x[slot].copy_(y)`, `slot += y` likewise."""
    source, node = program.source_at(maker), program.expression_at(maker)
    other = program.source_at(write)
    if source is None or other is None or write is None or not isinstance(node, ast.Subscript):
        return None
    inside = list(ast.walk(other.function_at(write) or other.tree))
    reads = [n for n in inside if _reads(n, name)]
    written = [n.target for n in inside if isinstance(n, ast.AugAssign)]
    reads += [t for t in written if ast.unparse(t) == name]
    if not reads or not base:
        return None
    patches = [Patch(source, source.span(node), _key(source, node.slice))]
    patches += [Patch(other, other.span(n), f"{base}[{name}]") for n in reads]
    return apply_patches(patches)


def _reads(node: ast.AST, name: str) -> TypeGuard[ast.expr]:
    """`slot` or `self.slots[name]` as a value."""
    path = isinstance(node, (ast.Name, ast.Subscript)) and ast.unparse(node) == name
    return path and isinstance(getattr(node, "ctx", None), ast.Load)


def _key(source: Source, index: ast.expr) -> str:
    """An index as a value: `i, :n` -> `(i, slice(n))`."""
    if isinstance(index, ast.Tuple):
        return "(" + ", ".join(_key(source, e) for e in index.elts) + ")"
    if not isinstance(index, ast.Slice):
        return source.segment(index)
    bounds = [b and source.segment(b) for b in (index.lower, index.upper, index.step)]
    if bounds[2]:
        return f"slice({bounds[0]}, {bounds[1]}, {bounds[2]})"
    return f"slice({bounds[1]})" if bounds[0] is None else f"slice({bounds[0]}, {bounds[1]})"


def write_before_views(
    program: Program, write: Place, maker: Place, reached: Place
) -> Edits | None:
    """The write to the base goes before the statement that makes the views, or that calls the
    function which makes them (`reached`).

    They look at the same memory, so they see the same values; None where a statement in between
    might notice, or where such a function does anything else.
    """
    tree, other = tree_at(program, write), tree_at(program, reached)
    if tree is not other or not _only_parts(program, maker, reached):
        return None
    run = run_between(tree, tree.statement(reached), tree.statement(write))
    if len(run) < 2:
        return None
    goal, *between, moved = run
    own, views = effects(moved), set(effects(goal).writes)
    for statement in between:
        if _names_view(statement, views):
            views |= effects(statement).writes
        elif own.conflicts(effects(statement)) or reads_any(statement, views):
            return None
    if own.barrier or reads_any(moved, views) or views & own.writes:
        return None
    return Draft(tree).move([moved], goal, after=False).edits()


def _only_parts(program: Program, maker: Place, reached: Place) -> bool:
    """Whether the views are all that is made of the tensor there: by the function that makes them,
    where another is called, and by the statement itself."""
    source = program.source_at(reached)
    made, call = program.expression_at(maker), program.expression_at(reached)
    if source is None or not isinstance(made, ast.Call) or not isinstance(call, ast.Call):
        return False
    if maker != reached:
        inner = program.source_at(maker)
        function = None if inner is None else inner.function_at(maker)
        body = [] if function is None else function.body
        if len(body) != 1 or not isinstance(body[0], ast.Return) or not _hands_out(body[0], made):
            return False
        if not all(isinstance(a, (ast.Name, ast.Attribute, ast.Constant)) for a in call.args):
            return False
    return any(
        isinstance(s, ast.Assign) and any(n is call for n in ast.walk(s)) and _hands_out(s, call)
        for s in ast.walk(source.tree)
    )


def _hands_out(statement: ast.stmt, made: ast.Call) -> bool:
    """Whether a statement collects what a call gave and does nothing else."""
    own = {id(n) for n in ast.walk(made)}
    return all(
        isinstance(n, _HANDS_OUT) or (isinstance(n, ast.Call) and called_name(n) in _COLLECTS)
        for n in ast.walk(statement)
        if id(n) not in own
    )


_COLLECTS = frozenset("dict zip list tuple enumerate reversed".split())
_HANDS_OUT = (
    *(ast.Return, ast.Assign, ast.Name, ast.Attribute, ast.Constant, ast.Starred, ast.keyword),
    *(ast.Dict, ast.List, ast.Tuple, ast.DictComp, ast.ListComp, ast.GeneratorExp),
    *(ast.comprehension, ast.expr_context),
)


def _names_view(statement: Statement, views: set[str]) -> bool:
    """`first = parts[0]`: another name for one of the views."""
    if not m.matches(statement, _NAMES) or not reads_any(statement, views):
        return False
    value = cst.ensure_type(statement, cst.Assign).value
    while isinstance(value, cst.Subscript) and m.matches(value, _ITEM):
        value = value.value
    return isinstance(value, (cst.Name, cst.Attribute))


_NAMES = m.Assign(targets=[m.AtLeastN(m.AssignTarget(m.Name()), n=1)])
_ITEM = m.Subscript(slice=[m.SubscriptElement(m.Index(m.Integer() | m.SimpleString()))])


def element_replaced(program: Program, place: Place) -> Edits | None:
    """`for x in xs: x += a` -> `for i, x in enumerate(xs): xs[i] = x + a`, and `for k, x in
    xs.items(): x += a` -> `xs[k] = x + a`: whoever reads the list finds the new values, and the
    tensors that were in it stay as they were."""
    tree, statement = statement_at(program, place)
    written = None if statement is None else _written_anew(tree, statement)
    if statement is None or written is None:
        return None
    (name, value), draft = written, Draft(tree)
    loop = loop_binding(tree, statement, name)
    if loop is None:
        return None
    keyed = _keyed(loop, name)
    lists = (dotted(over) for part, over in counted_parts(loop) if dotted(part) == name)
    elements = keyed[0] if keyed else next(lists, None)
    if elements is None or not _may_be_changed(tree, statement, elements):
        return None
    index = keyed[1] if keyed else counted(draft, loop, statement)
    if index is None:
        return None
    if _is_given(tree, statement, elements):
        if not read_later(tree, loop, elements):
            return None
        kind = "dict" if keyed else "list"
        draft.before(loop, [make(f"{elements} = {kind}({elements})")])
    stored = f"{elements}[{index}] = "
    if any(tree.is_behind(n, statement) for n in named(loop.body, name)):
        new = [make(f"{name} = {{v}}", v=value), make(f"{stored}{name}")]
    else:
        new = [make(f"{stored}{{v}}", v=value)]
    return draft.instead(statement, new).edits()


def _keyed(loop: cst.For, name: str) -> tuple[str, str] | None:
    """The dict whose values a loop gives a name, and what it calls their keys: `fast` and `k` of
    `for (k, w), g in zip(fast.items(), grads)`."""
    for part, over in gone_through(loop.iter, loop.target):
        names = [dotted(e.value) for e in part.elements] if isinstance(part, cst.Tuple) else []
        owner = dotted(called_on(over, "items"))
        if owner and names[1:] == [name] and names[0]:
            return owner, names[0]
    return None


def counted_parts(loop: cst.For) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What a loop gives the elements of each list to, and the list: of `enumerate(xs, 1)` and
    `reversed(xs)` the rounds do not count them."""
    calls = [(dotted(n.func), len(n.args)) for n in walk(loop.iter) if isinstance(n, cst.Call)]
    apart = any(f == "reversed" or (f != "zip" and given != 1) for f, given in calls)
    return [] if apart else [*gone_through(loop.iter, loop.target)]


def counted(draft: Draft, loop: cst.For, statement: Statement) -> str | None:
    """The name that counts the rounds of a loop, which is made to count them where it does not."""
    target, tree = loop.target, draft.tree
    if isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "enumerate":
        return dotted(target.elements[0].value) if isinstance(target, cst.Tuple) else None
    used = used_names(tree.scope_of(statement))
    index = next((n for n in ("i", "j", "k", "index") if n not in used), None)
    if index is not None:
        form = "{i}, ({x})" if isinstance(target, cst.Tuple) and not target.lpar else "{i}, {x}"
        draft.replace(target, parse(form.format(i=index, x=tree.code(target))) or target)
        draft.replace(loop.iter, expression("enumerate({x})", x=loop.iter))
    return index


def _is_given(tree: Tree, statement: Statement, elements: str) -> bool:
    """Whether it is the list of a caller, who is to find the old tensors in it."""
    scope = tree.scope_of(statement)
    return isinstance(scope, cst.FunctionDef) and elements in parameter_names(scope)


def _may_be_changed(tree: Tree, statement: Statement, elements: str) -> bool:
    """Whether a new element reaches those alone who look at the list here, or a copy of it, which
    the text does not make a tuple."""
    if "." in elements or _is_given(tree, statement, elements):
        return True
    scope = tree.scope_of(statement)
    if isinstance(scope, cst.FunctionDef) and not is_own_variable(tree, statement, elements):
        return False
    values = assigned(tree, scope, elements)
    return not any(isinstance(v, cst.Tuple) or method_name(v) in _TUPLES for v in values)


def _written_anew(tree: Tree, statement: Statement) -> _Written | None:
    """The name that a statement writes in place, and the same value computed anew."""
    if isinstance(statement, cst.AugAssign) and isinstance(statement.target, cst.Name):
        return statement.target.value, operated(statement.target, statement, statement.value)
    if not isinstance(statement, cst.Expr):
        return None
    calls = inplace_calls(tree, statement)
    whole = (c for c in calls if c.node is statement.value and isinstance(c.target, cst.Name))
    return next(((tree.code(c.target), c.value) for c in whole if not c.hidden), None)
