"""A buffer filled in a loop -> a list and `torch.stack`."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ..model import Edit, Place
from ..program import Program
from .code import dotted, expression, is_number, keyword, positional, same, targets, walk
from .code import statement as make
from .draft import Draft
from .imports import Imports, imports_at
from .locate import Statement, Tree, statements_in, tree_at

_MAKERS = frozenset({"zeros", "empty", "ones", "full", "new_zeros", "new_empty", "new_ones"})


def collect_and_stack(program: Program, place: Place) -> tuple[Edit, ...] | None:
    """Steps written into a buffer -> appended to a list that is stacked behind the loop.

    `place` is the write `buffer[:, t + 1] = value` in a loop over `t`.  Known is the plain pattern:
    the buffer is made right before the loop in the same block, every round writes one slice, in
    order, and reads only slices; None for everything else.
    """
    tree = tree_at(program, place)
    if tree is None:
        return None
    imports = imports_at(program, place)
    found = [p for s in tree.candidates(place) if (p := _pattern(tree, imports, s)) is not None]
    if len(found) != 1 or imports.local("torch") is None:
        return None
    return _rewritten(tree, found[0], imports.local("torch") or "torch")


@dataclass(frozen=True, eq=False)
class _Pattern:
    """`buffer = zeros(…)`, perhaps `buffer[0] = first`, then the loop with the one write."""

    name: str
    dim: int
    made: cst.Assign
    step: cst.BaseExpression  #: the constructor of one slice
    first: tuple[cst.Assign, ...]  #: slices written before the loop, in order
    head: int  #: how many slices exist before the first round
    loop: cst.For
    write: cst.Assign
    uses: tuple[cst.Subscript, ...]  #: slices read in the loop


def _pattern(tree: Tree, imports: Imports, write: Statement) -> _Pattern | None:
    if not isinstance(write, cst.Assign) or len(write.targets) != 1 or is_number(write.value):
        return None
    target = write.targets[0].target
    loop = _loop_of(tree, write)
    if not isinstance(target, cst.Subscript) or loop is None:
        return None
    name = target.value.value if isinstance(target.value, cst.Name) else None
    counter = _counter(loop)
    at = _slice_index(target)
    if name is None or counter is None or at is None:
        return None
    dim, index = at
    offset = _offset(tree, index, counter.name)
    made, first = _made_before(tree, loop, name, dim)
    if offset is None or made is None:
        return None
    ready = counter.start + offset
    call = made.value
    if not isinstance(call, cst.Call) or ready < 0 or len(first) not in (0, ready):
        return None
    size = _size(imports, call, dim)
    if size is None or not _adds_up(tree, size, counter.stop, offset):
        return None
    uses = _reads(tree, loop, name, dim, counter.name, (write, offset))
    step = _one_step(imports, call, dim)
    if uses is None or step is None:
        return None
    return _Pattern(name, dim, made, step, first, ready, loop, write, uses)


def _rewritten(tree: Tree, found: _Pattern, torch: str) -> tuple[Edit, ...] | None:
    draft = Draft(tree)
    code = tree.code
    if found.first:
        items = ", ".join(code(f.value) for f in found.first)
        start = expression(f"[{items}]")
        for statement in found.first:
            draft.remove(statement)
    elif found.head == 0:
        start = expression("[]")
    elif found.head == 1:
        start = expression("[{x}]", x=found.step)
    else:
        start = expression(f"[{{x}} for _ in range({found.head})]", x=found.step)
    draft.replace(found.made.value, start)
    for use in found.uses:
        _, index = _slice_index(use) or (0, use.value)
        draft.replace(use, expression(f"{found.name}[{{i}}]", i=index))
    draft.change(found.write, lambda write: _appending(found.name, write))
    dim = f", dim={found.dim}" if found.dim else ""
    stacked = make(f"{found.name} = {torch}.stack({found.name}{dim})")
    draft.after(found.loop, [stacked])
    return draft.edits()


def _appending(name: str, write: cst.Assign) -> cst.BaseSmallStatement:
    new = make(f"{name}.append({{v}})", v=write.value)
    return new.with_changes(semicolon=write.semicolon)


def _loop_of(tree: Tree, write: Statement) -> cst.For | None:
    """The loop whose body holds the write directly: it happens once in every round."""
    block = tree.block_of(write)
    loop = None if block is None else tree.parents.get(block)
    if not isinstance(loop, cst.For) or loop.body is not block or tree.block_of(loop) is None:
        return None
    jumps = (cst.Break, cst.Continue, cst.Yield, cst.Return)
    if any(isinstance(n, jumps) for n in walk(loop.body)) or loop.orelse is not None:
        return None
    return loop


@dataclass(frozen=True, eq=False)
class _Counter:
    """The loop variable counts from `start` up to (not including) the expression `stop`."""

    name: str
    start: int
    stop: cst.BaseExpression


def _counter(loop: cst.For) -> _Counter | None:
    if not isinstance(loop.iter, cst.Call):
        return None
    function, args = dotted(loop.iter.func), positional(loop.iter)
    if len(args) != len(loop.iter.args):
        return None
    if function == "range" and isinstance(loop.target, cst.Name):
        if len(args) == 1:
            return _Counter(loop.target.value, 0, args[0].value)
        if len(args) == 2 and isinstance(args[0].value, cst.Integer):
            return _Counter(loop.target.value, int(args[0].value.value), args[1].value)
    if function == "enumerate" and len(args) == 1 and isinstance(loop.target, cst.Tuple):
        number = loop.target.elements[0].value
        if isinstance(number, cst.Name):
            return _Counter(number.value, 0, expression("len({x})", x=args[0].value))
    return None


def _slice_index(node: cst.Subscript) -> tuple[int, cst.BaseExpression] | None:
    """`b[t]` -> (0, t), `b[:, t]` -> (1, t), `b[..., t]` -> (-1, t); None for other indices."""
    index = [e.slice for e in node.slice]
    last = index[-1]
    if not isinstance(last, cst.Index) or isinstance(last.value, (cst.Tuple, cst.List)):
        return None
    before = index[:-1]
    if len(before) == 1 and isinstance(before[0], cst.Index):
        return (-1, last.value) if isinstance(before[0].value, cst.Ellipsis) else None
    if all(isinstance(s, cst.Slice) and s.lower is s.upper is s.step is None for s in before):
        return len(before), last.value
    return None


def _offset(tree: Tree, index: cst.BaseExpression, counter: str) -> int | None:
    """k for `t + k`, `t - k` and `t`."""
    if same(tree, index, counter):
        return 0
    if not isinstance(index, cst.BinaryOperation) or not isinstance(index.right, cst.Integer):
        return None
    if not same(tree, index.left, counter):
        return None
    number = int(index.right.value)
    if isinstance(index.operator, cst.Add):
        return number
    return -number if isinstance(index.operator, cst.Subtract) else None


def _made_before(
    tree: Tree, loop: cst.For, name: str, dim: int
) -> tuple[cst.Assign | None, tuple[cst.Assign, ...]]:
    """The statement that makes the buffer, and the slices 0, 1, … written before the loop."""
    block = tree.block_of(loop)
    before = [] if block is None else statements_in(block)
    before = before[: next(i for i, s in enumerate(before) if s is loop)]
    first: list[cst.Assign] = []
    for statement in reversed(before):
        if not any(isinstance(n, cst.Name) and n.value == name for n in walk(statement)):
            continue
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            return None, ()
        target = targets(statement)[0]
        if same(tree, target, name):
            numbers = [int(_number(s)) for s in first]
            return (statement, tuple(first)) if numbers == list(range(len(first))) else (None, ())
        if not isinstance(target, cst.Subscript) or not _fixed_slice(target, name, dim):
            return None, ()
        first.insert(0, statement)
    return None, ()


def _fixed_slice(target: cst.Subscript, name: str, dim: int) -> bool:
    at = _slice_index(target)
    own = isinstance(target.value, cst.Name) and target.value.value == name
    return own and at is not None and at[0] == dim and isinstance(at[1], cst.Integer)


def _number(statement: cst.Assign) -> str:
    target = statement.targets[0].target
    assert isinstance(target, cst.Subscript)
    at = _slice_index(target)
    assert at is not None and isinstance(at[1], cst.Integer)
    return at[1].value


def _sizes(imports: Imports, call: cst.Call) -> list[cst.Arg] | None:
    """The size arguments of `torch.zeros(a, b)`, `x.new_zeros(a, b)` or `zeros((a, b))`."""
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func) or ""
    torch_made = imports.full(dotted(call.func)).startswith("torch.")
    if name not in _MAKERS or not (torch_made or name.startswith("new_")) or name == "full":
        return None
    given = positional(call)
    return given if given and keyword(call, "out") is None else None


def _size(imports: Imports, call: cst.Call, dim: int) -> cst.BaseExpression | None:
    given = _sizes(imports, call)
    if given is None:
        return None
    sizes = [a.value for a in given]
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        sizes = [e.value for e in sizes[0].elements]
    if any(isinstance(s, cst.StarredElement) for s in sizes):
        return None
    return sizes[dim] if -len(sizes) <= dim < len(sizes) and len(sizes) > 1 else None


def _one_step(imports: Imports, call: cst.Call, dim: int) -> cst.BaseExpression | None:
    """The constructor without the stacked dimension."""
    given = _sizes(imports, call)
    if given is None:
        return None
    if len(given) == 1 and isinstance(given[0].value, (cst.Tuple, cst.List)):
        sizes = given[0].value
        elements = list(sizes.elements)
        del elements[dim]
        elements[-1] = elements[-1].with_changes(
            comma=cst.Comma() if len(elements) == 1 else cst.MaybeSentinel.DEFAULT
        )
        arg = given[0].with_changes(value=sizes.with_changes(elements=elements))
        return call.with_changes(args=[arg if a is given[0] else a for a in call.args])
    gone = given[dim]
    kept = [a for a in call.args if a is not gone]
    if kept:
        kept[-1] = kept[-1].with_changes(comma=call.args[-1].comma)
    return call.with_changes(args=kept)


def _adds_up(tree: Tree, size: cst.BaseExpression, stop: cst.BaseExpression, offset: int) -> bool:
    """Whether the last round writes the last slice: size == stop + offset, by the text."""
    if isinstance(size, cst.Integer) and isinstance(stop, cst.Integer):
        return int(size.value) == int(stop.value) + offset
    wanted = tree.code(stop) if offset == 0 else f"{tree.code(stop)} {offset:+d}"
    if same(tree, size, wanted):
        return True
    return offset > 0 and same(tree, size, f"{offset} + {tree.code(stop)}")


def _reads(
    tree: Tree, loop: cst.For, name: str, dim: int, counter: str, written: tuple[cst.Assign, int]
) -> tuple[cst.Subscript, ...] | None:
    """The slices of the buffer that the loop reads; None where it uses the buffer otherwise."""
    write, offset = written
    found: list[cst.Subscript] = []
    for node in walk(loop.body):
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        parent = tree.parents[node]
        if isinstance(parent, cst.Subscript) and parent is write.targets[0].target:
            continue
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            continue
        if not isinstance(parent, cst.Subscript) or parent.value is not node:
            return None
        at = _slice_index(parent)
        shift = None if at is None or at[0] != dim else _offset(tree, at[1], counter)
        if shift is None or shift > offset or _is_written(tree, parent):
            return None
        if shift == offset and tree.start(parent) < tree.start(write):
            return None
        found.append(parent)
    return tuple(found)


def _is_written(tree: Tree, node: cst.Subscript) -> bool:
    statement = tree.statement_of(node)
    return statement is not None and any(tree.inside(node, target) for target in targets(statement))
