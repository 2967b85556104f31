"""Values that a function computes once and hands out again: a decorator's memory, or one by hand.

`@lru_cache`, `@cached_property`; `if self.adj is None: self.adj = …`; `if key in cache: return
cache[key]`.  The graph of what is handed out belongs to the first round.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...model import Place
from ...program import Function, Program, Source, last_name, own_nodes
from ...program_index import ProgramIndex, index_of
from ..dataflow.syntax import is_none

_DECORATORS = frozenset({"lru_cache", "cache", "cached", "cached_property", "memoize", "memoized"})


@dataclass(frozen=True)
class Memoized:
    """`place` is what makes it be remembered: the decorator, or the `if`; `name` is the value as
    the user writes it; `how` is "decorator" or "guard"."""

    place: Place
    name: str
    how: str


@dataclass(frozen=True, eq=False)
class _Line:
    """A line that led to the value, with what stands there."""

    place: Place
    source: Source

    @property
    def function(self) -> Function | None:
        return self.source.function_at(self.place)

    @property
    def statement(self) -> ast.stmt | None:
        return self.source.statement_at(self.place.line - self.source.offset)


def remembered(
    program: Program, path: tuple[Place, ...], running: tuple[Place, ...] = ()
) -> Memoized | None:
    """What keeps a value that was made along this path of user lines, the outermost first.

    Lines that are still `running` keep nothing yet.
    """
    start = next((i for i, p in enumerate(path) if p not in running), len(path))
    sources = ((p, program.source_at(p)) for p in path[start:])
    lines = [_Line(p, source) for p, source in sources if source is not None]
    return _decorated(lines) or _guarded(lines, index_of(program))


def _decorated(lines: list[_Line]) -> Memoized | None:
    """The decorator of a function on the way that keeps what it returned."""
    for number, line in enumerate(lines):
        for decorator in () if line.function is None else line.function.decorator_list:
            if line.function is not None and _last(decorator) in _DECORATORS:
                at = line.source.place(decorator.lineno, None, decorator)
                name = _called(lines[:number], line.function.name)
                return Memoized(at, name or line.function.name, "decorator")
    return None


def _last(decorator: ast.expr) -> str:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return last_name(node)


def _called(outer: list[_Line], function: str) -> str:
    """How the calling line spells the call (or the property): `self.graph.propagation()`."""
    statement = outer[-1].statement if outer else None
    nodes = list(ast.walk(statement)) if statement is not None else []
    calls = [n for n in nodes if isinstance(n, ast.Call) and _last(n) == function]
    reads = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr == function]
    found: list[ast.expr] = [*calls, *reads]
    return ast.unparse(found[0]) if found else ""


def _guarded(lines: list[_Line], index: ProgramIndex) -> Memoized | None:
    """The `if` that lets one of the assignments on the way happen only once."""
    for line in reversed(lines):
        statement = line.statement
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        guard = None if isinstance(target, ast.Tuple) else _guard(line, statement, target)
        if guard is not None and not _filled_elsewhere(index, statement):
            at = line.source.place(guard.lineno, line.place.function, guard)
            return Memoized(at, ast.unparse(target), "guard")
    return None


def _guard(line: _Line, statement: ast.Assign, target: ast.expr) -> ast.If | None:
    nodes = [*own_nodes(line.function or line.source.tree)]
    names = [target, *_taken(nodes, target)]
    for node in nodes:
        if isinstance(node, ast.If) and not node.orelse:
            absent = any(_absent(node.test, name) for name in names)
            inside = any(n is statement for n in node.body) and absent
            if inside or (_returns(node, target) and node.lineno < statement.lineno):
                return node
    return None


def _taken(nodes: list[ast.AST], target: ast.expr) -> Iterator[ast.expr]:
    """The names that a function gives to what is remembered: `known = cache.get(key)`."""
    for node in nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        value, name = node.value, node.targets[0]
        got = _same(value, target)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.args:
            asked = value.func.attr == "get"
            got = asked and _is_item(target, value.func.value, value.args[0])
        if isinstance(name, ast.Name) and got:
            yield name


def _absent(test: ast.expr, target: ast.expr) -> bool:
    """Whether a test says that the target has no value yet."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _present(test.operand, target)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    left, right = test.left, test.comparators[0]
    if isinstance(test.ops[0], (ast.Is, ast.Eq)):
        return _same(left, target) and is_none(right)
    return isinstance(test.ops[0], ast.NotIn) and _is_item(target, right, left)


def _present(test: ast.expr, target: ast.expr) -> bool:
    if isinstance(test, ast.Call) and _last(test) == "hasattr" and len(test.args) == 2:
        named = isinstance(target, ast.Attribute) and _same(test.args[0], target.value)
        return named and ast.unparse(test.args[1]) == repr(getattr(target, "attr", ""))
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        if isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
            return _same(left, target) and is_none(right)
        return isinstance(test.ops[0], ast.In) and _is_item(target, right, left)
    container = target.value if isinstance(target, ast.Subscript) else target
    return _same(test, container)


def _returns(node: ast.If, target: ast.expr) -> bool:
    """`if key in cache: return cache[key]`."""
    only = node.body[0] if len(node.body) == 1 else None
    value = only.value if isinstance(only, ast.Return) else None
    reads = ast.walk(value) if value is not None else ()
    return _present(node.test, target) and any(_same(n, target) for n in reads)


def _filled_elsewhere(index: ProgramIndex, statement: ast.Assign) -> bool:
    """Whether something else gives the target a value: then it is a state, not a memory."""
    target = statement.targets[0]
    for node in _assignments(index):
        given = [value for leaf, value in _pairs(node) if _same(leaf, target)]
        if given and ast.unparse(node) != ast.unparse(statement) and not all(map(_empty, given)):
            return True
    return False


def _pairs(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a statement gives to what: `a, b = 1, None` taken apart."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        leaves = target.elts if isinstance(target, ast.Tuple) else [target]
        apart = isinstance(node.value, ast.Tuple) and isinstance(target, ast.Tuple)
        values = node.value.elts if apart and isinstance(node.value, ast.Tuple) else [node.value]
        if len(values) != len(leaves):
            values = [node.value] * len(leaves) if node.value is not None else []
        yield from ((leaf, v) for leaf, v in zip(leaves, values, strict=False) if v is not None)


def _assignments(index: ProgramIndex) -> Iterator[ast.Assign | ast.AugAssign | ast.AnnAssign]:
    for _, node in index.nodes(ast.stmt):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            yield node


def _empty(value: ast.expr) -> bool:
    return is_none(value) or ast.unparse(value) in ("{}", "dict()", "[]", "list()", "False")


def _is_item(target: ast.expr, container: ast.expr, key: ast.expr) -> bool:
    item = isinstance(target, ast.Subscript)
    return (
        item
        and _same(getattr(target, "value", None), container)
        and _same(getattr(target, "slice", None), key)
    )


def _same(a: ast.AST | None, b: ast.AST | None) -> bool:
    return a is not None and b is not None and ast.unparse(a) == ast.unparse(b)
