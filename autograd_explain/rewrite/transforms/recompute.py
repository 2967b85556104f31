"""Forward statements run again, where a second backward needs them fresh; and before a loop what an
object computes at its first call and keeps, without a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import TypeAlias

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ...program_index import index_of
from ..analysis.effects import (
    bound_in,
    effects,
    iterated,
    local_names,
    parameter_names,
    reads_any,
    rebinds_any,
    takes_next,
    used_names,
)
from ..engine.blocks import BlockItem
from ..engine.cst_tools import (
    bare,
    block,
    called_name,
    called_on,
    dotted,
    method,
    method_name,
    named_targets,
    walk,
)
from ..engine.draft import Draft, Drafts
from ..engine.tree import Statement, Tree, statement_at, statements_in, tree_at
from .grad_mode import LEARNS, updates_by_hand
from .move_statement import in_order, lifted

#: A statement with the tree that it is in; one that moves, and whether it stays as well.
_At: TypeAlias = tuple[Tree, Statement]
_Move: TypeAlias = tuple[Tree, Statement, bool]
_LEAVING = (cst.Break, cst.Continue, cst.Return, cst.Raise)


def recompute_before(
    program: Program,
    backward_place: Place,
    assignment_places: Sequence[Place],
    steps: Sequence[Place] = (),
    ending: Place | None = None,
) -> Edits | None:
    """Repeat forward statements right before the backward that needs them.

    Instead of `retain_graph=True`: `d = D(g)` is computed again, with the parameters as they are
    by then, its graph `ending` at an expression of theirs: `d = D(g.detach())`.  None where a name
    that they read has another value there, but by the `steps`.
    """
    tree, goal = statement_at(program, backward_place)
    known = _statements(program, assignment_places)
    if goal is None or not known or _too_late(tree, goal, known):
        return None
    siblings, at = tree.siblings(goal)
    own = [statement for _, statement in known]
    if at >= len(own) and all(map(is_, siblings[at - len(own) : at], own)):
        return None  # nothing has read yet what they made
    passed = [*known, *_statements(program, steps)]
    if not all(repeatable(o, (tree, goal), passed) for o in known):
        return None
    end = tree.node(ending)
    ended = [s if end is None else s.deep_replace(end, method(end, "detach()")) for s in own]
    return Draft(tree).before(goal, [s for s in ended if isinstance(s, Statement)]).edits()


def recompute_behind(
    program: Program, forward: Sequence[Place], steps: Sequence[Place], failed: Place
) -> Edits | None:
    """What stands before the last step is needed behind it, too: it is computed again there."""
    before = [p for p in forward if moment_of(program, p) < moment_of(program, steps[-1])]
    goal = next((p for p in forward if p not in before), failed)
    return recompute_before(program, goal, before, steps) if before else None


def assigned_again(program: Program, failed: Place | None) -> Edits | None:
    """`loss = criterion(net(x), y)` for a statement that computes this and keeps nothing of it,
    where the same gave what goes backward its value before."""
    tree, goal = statement_at(program, failed)
    if goal is None:
        return None
    scope, read = tree.scope_of(goal), used_names(goal)
    own = [s for s in tree.statements if tree.scope_of(s) is scope and tree.is_behind(goal, s)]
    dropped = [s for s in own if isinstance(s, cst.Expr) and isinstance(s.value, cst.Call)]
    pairs = [
        (late, first)
        for late in dropped
        for first in own
        if isinstance(first, cst.Assign) and first.value.deep_equals(late.value)
        if tree.is_behind(late, first) and read & set(named_targets(first))
    ]
    return Draft(tree).instead(pairs[0][0], [pairs[0][1]]).edits() if len(pairs) == 1 else None


def moment_of(program: Program, place: Place) -> tuple[int, int]:
    """Cells run one after the other, so this orders statements of cells in time."""
    cells = [run.cell for run in index_of(program).runs]
    return (cells.index(place.cell) if place.cell in cells else -1), place.line


def _too_late(tree: Tree, goal: Statement, repeated: Sequence[_At]) -> bool:
    """Whether the loop around the goal has taken the old values: `for loss in (loss_a, loss_b)`."""
    made = {name for _, statement in repeated for name in effects(statement).writes}
    for loop in (a for a in tree.loops(goal) if isinstance(a, cst.For) and reads_any(a.iter, made)):
        taken = [iterated(loop.iter, loop.target, name) for name in used_names(goal)]
        if not reads_any(goal, made) or any(n is not None and dotted(n) in made for n in taken):
            return True
    return False


def repeat_inside(program: Program, place: Place, origin_places: Sequence[Place]) -> Edits | None:
    """Repeat assignments inside a function, right before the statement at `place`, or before the
    function's first statement that reads one of the values.

    For a closure that is called many times; the assignments, in order, stand in what is around it.
    None where the function reads none of them, or gives one of the names that they read a value of
    its own.
    """
    tree, goal = statement_at(program, place)
    known = _statements(program, origin_places)
    scope = None if goal is None else tree.scope_of(goal)
    if goal is None or not known or not isinstance(scope, cst.FunctionDef):
        return None
    written = {name for _, statement in known for name in effects(statement).writes}
    if not reads_any(scope.body, written) or not _may_be_repeated(tree, scope, known):
        return None
    # From the assignment on the name is the function's own.
    first = _first_reader(tree, scope.body, goal, written)
    return Draft(tree).before(first, [statement for _, statement in known]).edits()


def _may_be_repeated(tree: Tree, scope: cst.FunctionDef, origins: Sequence[_At]) -> bool:
    """Whether a function sees what the assignments read as they saw it, a method by `self`."""
    written, owner = set[str](), tree.around(scope, cst.ClassDef)
    for home, statement in origins:
        own, around = effects(statement), home.scope_of(statement)
        beside = isinstance(around, cst.FunctionDef) and home.scope_of(around) is owner
        seen = isinstance(around, cst.Module) or tree.inside(scope, around) or beside
        if not isinstance(statement, cst.Assign) or not seen or own.reads & own.writes:
            return False
        others = local_names(scope)
        if isinstance(around, cst.FunctionDef) and beside:
            others = (others | local_names(around)) - {"self"}
        if {name.partition(".")[0] for name in own.reads - written} & others:
            return False
        written |= own.writes
    return True


def compute_all_in_loop(
    program: Program, places: Sequence[Place], use_place: Place
) -> Edits | None:
    """Move assignments, given in the order they ran in, into the loop around `use_place`."""
    tree, goal = statement_at(program, use_place)
    moves = [] if goal is None else _moves(_statements(program, places), (tree, goal))
    if goal is None or not moves:
        return None
    if _too_late(tree, goal, [(home, statement) for home, statement, _ in moves]):
        return None
    drafts, pieces = Drafts({tree: Draft(tree)}), list[Statement | BlockItem]()
    for home, statement, needed in moves:
        pieces.append(statement if needed else drafts[home].piece(statement))
        if not needed:
            drafts[home].remove(statement)
    made = {name for _, statement, _ in moves for name in effects(statement).writes}
    first = _first_reader(tree, tree.loops(goal)[0].body, goal, made)
    drafts[tree].before(first, pieces)
    return drafts.edits()


def _moves(known: Sequence[_At], goal: _At) -> list[_Move]:
    """The assignments with whether each must stay as well; [] where one of them cannot go."""
    moves = list[_Move]()
    for origin in reversed(known):
        needed = _needed_before(origin, goal, moves)
        if needed is None:
            return []
        moves.insert(0, (*origin, needed))
    return moves


def _first_reader(tree: Tree, body: cst.BaseSuite, goal: Statement, names: set[str]) -> Statement:
    """The goal, or what reads one of the names before it in a body: a loop around the goal is
    looked into."""
    for statement in statements_in(body):
        if statement is goal:
            break
        if not tree.inside(goal, statement):
            if reads_any(statement, names):
                return statement
        elif isinstance(statement, (cst.For, cst.While)):
            return _first_reader(tree, statement.body, goal, names)
        else:
            break
    return goal


def _needed_before(origin: _At, goal: _At, moves: Sequence[_Move]) -> bool | None:
    """Whether a statement must stay as well when it goes into the loop around the goal, those in
    `moves` going with it; None where it cannot go."""
    tree, use = goal
    own = effects(origin[1])
    loops = tree.loops(use)
    loops = loops[: next((i for i, a in enumerate(loops) if tree.inside(origin[1], a)), None)]
    if not loops or own.barrier or not _computes(origin[1]) or takes_next(origin[1]):
        return None
    level = lifted(tree, use, tree.module) if origin[0] is not tree else use
    if level is None or not _same_scope(origin, goal):
        return None
    written = _written_inside(tree, loops[-1], use)
    if written & own.writes or (written | effects(use).writes) & own.reads:
        return None
    if reads_any(origin[1], set[str]().union(*map(named_targets, loops))):
        return None
    between = _between(origin, (tree, loops[-1]))
    if between is None:
        return None
    with_it = {s for _, s, _ in moves}
    others = [s for s in between if s not in with_it]
    if any(rebinds_any(s, own.reads | own.writes) for s in others):
        return None
    read = {name for _, s, _ in moves for name in effects(s).reads}
    if any(reads_any(s, own.writes) and effects(s).writes & read for s in others):
        return None  # `labels = pred.argmax(1)`: it would stay behind with its first value
    gone = {s for _, s, needed in moves if not needed}
    heads = [loop.iter if isinstance(loop, cst.For) else loop.test for loop in loops]
    still = [s for s in between if s not in gone]
    return any(reads_any(s, own.writes) for s in (*still, *heads))


def _computes(statement: Statement) -> bool:
    """An assignment that does not build on its target, or a call whose result is dropped (not one
    that makes a container longer each time)."""
    if isinstance(statement, cst.Expr):
        call = statement.value if isinstance(statement.value, cst.Call) else None
        name = (dotted(call.func) or "") if call is not None else ""
        return bool(name) and name.rpartition(".")[2] not in ("append", "extend", "add", "insert")
    own = effects(statement)
    return isinstance(statement, cst.Assign) and not own.reads & own.writes


def _statements(program: Program, places: Iterable[Place]) -> list[_At]:
    """The statements at places; [] where one of them is not known, or is a block."""
    found = [statement_at(program, place) for place in places]
    small: list[_At] = [(t, s) for t, s in found if isinstance(s, cst.BaseSmallStatement)]
    return small if len(small) == len(found) else []


def repeatable(origin: _At, goal: _At, passed: Sequence[_At]) -> bool:
    """Whether a statement computes the same there as it did here, but for the parameters and what
    the `passed` statements do."""
    own = effects(origin[1])
    if own.barrier or own.reads & own.writes or takes_next(origin[1]):
        return False
    between = _between(origin, goal) if _same_scope(origin, goal) else None
    if between is None:
        return False
    among = {s for _, s in passed}
    others = [s for s in between if among.isdisjoint(walk(s))]
    return all(not rebinds_any(s, own.reads) and _may_be_passed(s) for s in others)


def _may_be_passed(statement: Statement) -> bool:
    """Whether what stands behind a statement runs at once or not at all: what leaves the round or
    the function leaves with the first value."""
    if not effects(statement).barrier:
        return True
    jumps = [n for n in walk(statement) if isinstance(n, (*_LEAVING, cst.Yield, cst.Await))]
    return bool(jumps) and all(isinstance(n, _LEAVING) for n in jumps)


def _written_inside(tree: Tree, loop: cst.For | cst.While, use: Statement) -> set[str]:
    """What a loop writes, `use` aside.

    A backward and its like write gradients only, whatever they are called on, and what an update
    changes is what a next round is to compute with.
    """
    found: set[str] = set()
    for statement in tree.statements:
        if not tree.inside(statement, loop) or statement is use:
            continue
        if isinstance(statement, cst.BaseSmallStatement):
            learns = called_on(statement, *LEARNS) or updates_by_hand(statement)
            found |= set() if learns else effects(statement).writes
        else:
            found |= named_targets(statement)
    return found


def _between(origin: _At, goal: _At) -> list[Statement] | None:
    """What runs from the first statement to the second, in one block or across cells."""
    found = in_order(*origin, *goal)
    if found is None:
        return None
    (order, level), (tree, statement), (other, target) = found, origin, goal
    start, end = order.index(statement), order.index(level)
    inner = _ahead_inside(tree, level, target) if tree is other else []
    return [*order[start + 1 : end], *inner] if start < end else None


def _ahead_inside(tree: Tree, level: Statement, target: Statement) -> list[Statement]:
    """Of a branch what stands before a statement in it; of other blocks, such as loops, all."""
    found, inner = list[Statement](), target
    while inner is not level and (outer := tree.outer(inner)) is not None:
        before, at = tree.siblings(inner)
        found = [*found, *before[:at]] if isinstance(outer, cst.If) else [outer]
        inner = outer
    return found


def _same_scope(*places: _At) -> bool:
    one, two = (tree.scope_of(statement) for tree, statement in places)
    return one is two or (isinstance(one, cst.Module) and isinstance(two, cst.Module))


def filled_first(
    program: Program, place: Place | None, failed: Place | None, kept: bool
) -> tuple[str, Edits] | None:
    """`with torch.no_grad(): f(x)` before the loop that calls `f(x)`, and that call.

    The call at `place`; where that stands in a function, the one of the function in the loop around
    `failed`.  None where it reads what the rounds give new values; where it is known that what the
    first of them computes is `kept`, the value that this one starts with will do.
    """
    for tree, call in _calls_in_loops(program, place, failed):
        loop = tree.loops(call)[0]
        guard = tree.imports.local("torch.no_grad")
        fixed = effects(call).reads.isdisjoint(bound_in(loop) - _begun(tree, loop, kept))
        if guard is not None and fixed and method_name(call) not in LEARNS:
            before = block(f"with {guard}():\n    {{c}}", c=bare(call))
            edits = Draft(tree).before(loop, [before]).edits()
            return None if edits is None else (tree.code(call), edits)
    return None


def _begun(tree: Tree, loop: cst.For | cst.While, kept: bool) -> set[str]:
    """The names that have a value before a loop, which its first round begins with."""
    siblings, at = tree.siblings(loop)
    scope = tree.scope_of(loop)
    given = parameter_names(scope) if isinstance(scope, cst.FunctionDef) else set()
    return given.union(*map(bound_in, siblings[:at])) - named_targets(loop) if kept else set()


def _calls_in_loops(
    program: Program, place: Place | None, failed: Place | None
) -> Iterator[tuple[Tree, cst.Call]]:
    tree, (other, at) = tree_at(program, place), statement_at(program, failed)
    inside = [n for loop in other.loops(at) for n in walk(loop.body) if isinstance(n, cst.Call)]
    for call in tree.at(place):
        if isinstance(call, cst.Call) and tree.loops(call):
            yield tree, call
        function = tree.scope_of(call)
        name = function.name.value if isinstance(function, cst.FunctionDef) else None
        yield from ((other, node) for node in inside if called_name(node) == name)
