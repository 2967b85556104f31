"""Statements put under `torch.no_grad()`, and taken out of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import takewhile

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import bound_in
from ..engine.cst_tools import dotted, head, literal_bool, make, method_name, single_targets, walk
from ..engine.draft import Draft
from ..engine.imports import Imports, torch_at
from ..engine.magics import is_masked
from ..engine.tree import Statement, Tree, statement_at, statements_in, tree_at
from .move_statement import independent, lifted, run_between

#: What a training step calls beside the forward pass.
LEARNS = frozenset({"backward", "step", "zero_grad"})
_OFF = ("torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled")


def under_no_grad(
    program: Program, place: Place | None, last_place: Place | None = None
) -> Edits | None:
    """Wrap the statement at `place`, or the run up to `last_place`, in `with torch.no_grad():`.

    For parameter updates and initialisers written by hand.  None where torch has no name here,
    where the statements already stand under no_grad, or where they are not a run of one block.
    """
    tree, first = statement_at(program, place)
    guard = tree.imports.local("torch.no_grad")
    around = [] if first is None else tree.path(first)
    if guard is None or any(is_off(tree.imports, node) for node in around):
        return None
    return under_guard(program, place, guard, last_place)


def with_plain_attention(program: Program, place: Place | None) -> Edits | None:
    """A statement under the attention kernel that is made of ordinary operations."""
    torch = torch_at(program, place)
    of = f"{torch}.nn.attention"
    guard = f"{of}.sdpa_kernel({of}.SDPBackend.MATH)"
    return None if torch is None else under_guard(program, place, guard)


def under_guard(
    program: Program, place: Place | None, guard: str, last_place: Place | None = None
) -> Edits | None:
    """The same with any context manager called without arguments, or written out."""
    tree = tree_at(program, place)
    run = run_between(tree, tree.statement(place), tree.statement(last_place or place))
    if not run:
        return None
    if any(isinstance(n, (cst.Yield, cst.Global, cst.Nonlocal)) for s in run for n in walk(s)):
        return None  # a generator would leave the mode on outside; declarations guard nothing
    if any(isinstance(n, cst.SimpleString) and is_masked(n.value) for s in run for n in head(s)):
        return None
    return Draft(tree).wrap(run[0], run[-1], guard).edits()


def last_update(program: Program, place: Place) -> Place:
    """The last of the updates by hand that follow each other from `place` on.

    `w -= lr * w.grad`, `b -= lr * b.grad`: every one would be refused in turn.
    """
    tree, first = statement_at(program, place)
    if first is None or not updates_by_hand(first):
        return place
    inside, at = tree.siblings(first)
    run = list(takewhile(updates_by_hand, inside[at + 1 :]))
    return tree.place(run[-1]) if run else place


def updates_by_hand(statement: Statement) -> bool:
    """Whether it writes something in place from a `.grad`."""
    writes = isinstance(statement, cst.Expr) and method_name(statement.value).endswith("_")
    return (writes or isinstance(statement, cst.AugAssign)) and any(
        isinstance(n, cst.Attribute) and n.attr.value == "grad" for n in walk(statement)
    )


def block_instead_of_switch(program: Program, place: Place) -> Edits | None:
    """`torch.set_grad_enabled(False)` as a statement -> a `with torch.no_grad():` block.

    The block reaches to the `set_grad_enabled(True)` that follows in the same block (which goes),
    else to the end of the block that the switch stands in.
    """
    tree, switch = statement_at(program, place)
    guard = tree.imports.local("torch.no_grad")
    if switch is None or guard is None or _switch(tree.imports, switch) is not False:
        return None
    inside, at = tree.siblings(switch)
    rest, draft = inside[at + 1 :], Draft(tree).remove(switch)
    for number, statement in enumerate(rest):
        if _switch(tree.imports, statement):
            draft.remove(statement)
            rest = rest[:number]
            break
    return draft.wrap(rest[0], rest[-1], guard).edits() if rest else None


def remove_grad_switch(program: Program, place: Place | None) -> Edits | None:
    """Take away what keeps gradients off at `place`.

    A decorator `@torch.no_grad()` of the function there, a `with torch.no_grad():` around it (the
    body stays), or a statement `torch.set_grad_enabled(False)`.
    """
    tree, statement = statement_at(program, place)
    draft, imports = Draft(tree), tree.imports
    if _switch(imports, statement) is False:
        return draft.remove(statement).edits()
    for node in (statement, *tree.ancestors(statement)):
        if isinstance(node, cst.With) and all(turns_off(imports, i.item) for i in node.items):
            return draft.opened(node).edits()
        if isinstance(node, cst.FunctionDef):
            gone = [d for d in node.decorators if turns_off(imports, d.decorator)]
            for decorator in gone:
                draft.drop(decorator)
            if gone:
                return draft.edits()
    return None


def decorated(new: cst.Decorator, function: cst.FunctionDef) -> cst.FunctionDef:
    return function.with_changes(decorators=[new, *function.decorators])


def is_off(imports: Imports, node: cst.CSTNode) -> bool:
    """Whether a block or a function runs with gradients off."""
    if isinstance(node, cst.With):
        return any(turns_off(imports, item.item) for item in node.items)
    if isinstance(node, cst.FunctionDef):
        return any(turns_off(imports, d.decorator) for d in node.decorators)
    return False


def turns_off(imports: Imports, node: cst.BaseExpression) -> bool:
    """Whether a `with` item or a decorator switches gradients off."""
    if not isinstance(node, cst.Call):
        return imports.full(dotted(node)) in _OFF[:2]
    full = imports.full(dotted(node.func))
    if full == "torch.set_grad_enabled":
        return bool(node.args) and literal_bool(node.args[0].value) is False
    return full in _OFF


def _switch(imports: Imports, statement: Statement | None) -> bool | None:
    """What a statement `torch.set_grad_enabled(flag)` sets, None for any other statement."""
    call = statement.value if isinstance(statement, cst.Expr) else None
    if not isinstance(call, cst.Call) or len(call.args) != 1:
        return None
    full = imports.full(dotted(call.func))
    switches = full.startswith("torch.") and full.endswith("set_grad_enabled")
    return literal_bool(call.args[0].value) if switches else None


def blocks_around(tree: Tree, statement: Statement) -> list[cst.With]:
    """The `with torch.no_grad():` blocks of the function around a statement, innermost first."""
    found: list[cst.With] = []
    for ancestor in tree.ancestors(statement):
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            break
        if isinstance(ancestor, cst.With) and is_off(tree.imports, ancestor):
            found.append(ancestor)
    return found


def outermost_block(tree: Tree, statement: Statement, name: cst.BaseExpression) -> Statement:
    """The statement before which `name = name.clone()` keeps the graph: the no_grad block around
    `statement`, unless the name gets its value in there; else `statement` itself."""
    found, code = statement, tree.code(name)
    meant = {code, code.replace("[", ".").split(".")[0]}
    for block in blocks_around(tree, statement):
        binding = (n for n in walk(block) if not isinstance(n, (cst.AugAssign, cst.Del)))
        if any(tree.code(leaf) in meant for node in binding for leaf in single_targets(node)):
            break
        found = block
    return found


def out_of_block(
    program: Program, block: Place | None, needed: Iterable[Place | None]
) -> Edits | None:
    """Take the statements that gradient must pass through out of the block at `block`.

    They go behind the block, or before it, where names allow; where all of the block is needed
    (or it returns) the block itself goes, and so does a decorator there.
    """
    tree, outer = statement_at(program, block)
    if not isinstance(outer, cst.With):
        return without_decorator(program, block)
    inside = statements_in(outer.body)
    wanted = _level(tree, outer, needed)
    rest = [s for s in inside if s not in wanted]
    if not wanted or not rest or any(isinstance(s, cst.Return) for s in wanted):
        return remove_grad_switch(program, block) if wanted else None
    after = [s for s in rest if tree.start(s) > tree.start(wanted[0])]
    before = [s for s in rest if tree.start(s) < tree.start(wanted[-1])]
    behind = independent(wanted, after)
    if behind or independent(wanted, before):
        return Draft(tree).move(wanted, outer, after=behind).edits()
    return remove_grad_switch(program, block)


def recorded_run(
    program: Program, place: Place, last_place: Place, asking: Iterable[str] = ()
) -> Edits | None:
    """The statements from `place` to `last_place` under `with torch.enable_grad():`; where one of
    them stands deeper, the statement of the other's block that holds it.  The tensors named in
    `asking` are to require grad first, unless these statements make them."""
    tree, first = statement_at(program, place)
    last, guard = tree.statement(last_place), tree.imports.local("torch.enable_grad")
    if first is None or last is None or guard is None:
        return None
    for outer in (n for n in tree.path(last) if isinstance(n, Statement)):
        block = tree.block_of(outer)
        level = None if block is None else lifted(tree, first, block)
        run = run_between(tree, level, outer)
        if level is not None and run:
            made = set().union(*map(bound_in, run))
            flags = [make(f"{n}.requires_grad_()") for n in asking if n not in made]
            return Draft(tree).before(level, flags).wrap(level, outer, guard).edits()
    return None


def without_decorator(program: Program, place: Place | None) -> Edits | None:
    """The decorator on the place's line taken away; its span is no statement's."""
    return None if place is None else remove_grad_switch(program, replace(place, span=None))


def decorated_generator(program: Program, block: Place) -> Edits | None:
    """`with torch.no_grad():` around a `yield` -> the decorator, which torch switches off again at
    every yield."""
    tree, outer = statement_at(program, block)
    function = tree.around(outer, cst.FunctionDef)
    if not isinstance(outer, cst.With) or len(outer.items) != 1 or function is None:
        return None
    guard = outer.items[0].item
    if not isinstance(guard, cst.Call) or tree.imports.full(dotted(guard.func)) not in _OFF[:2]:
        return None
    draft = Draft(tree).opened(outer)
    return draft.change(function, partial(decorated, cst.Decorator(guard))).edits()


def _level(tree: Tree, outer: cst.With, needed: Iterable[Place | None]) -> list[Statement]:
    """The block's own statements that hold the places, in order."""
    statements = (tree.statement(place) for place in needed)
    levels = (lifted(tree, s, outer.body) for s in statements if s is not None)
    return sorted({level for level in levels if level is not None}, key=tree.start)
