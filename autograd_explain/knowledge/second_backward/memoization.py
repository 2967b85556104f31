"""Values that a function computes once and hands out again: a decorator's memory, or one by hand.

`@lru_cache`, `@cached_property`; `if self.adj is None: self.adj = …`; `if key in cache: return
cache[key]`.  The graph of what is handed out belongs to the first round.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from autograd_explain.inspect.facts.statements import statement_at
from autograd_explain.model import Place
from autograd_explain.program import Program, Source, own_nodes
from autograd_explain.program_index import index_of

_DECORATORS = frozenset({"lru_cache", "cache", "cached", "cached_property", "memoize", "memoized"})


@dataclass(frozen=True)
class Memoized:
    """`place` is what makes it be remembered: the decorator, or the `if`; `name` is the value as
    the user writes it; `how` is "decorator" or "guard"."""

    place: Place
    name: str
    how: str


def remembered(
    program: Program, path: tuple[Place, ...], running: tuple[Place, ...] = ()
) -> Memoized | None:
    """What keeps a value that was made along this path of user lines, the outermost first.

    Lines that are still `running` keep nothing yet.
    """
    path = path[next((i for i, p in enumerate(path) if p not in running), len(path)) :]
    for number, place in enumerate(path):
        source = program.source_at(place)
        function = None if source is None else source.function_at(place)
        if source is None or function is None:
            continue
        for decorator in function.decorator_list:
            if _last(decorator) in _DECORATORS:
                at = source.place(decorator.lineno, None, decorator)
                name = _called(program, path[:number], function.name)
                return Memoized(at, name or function.name, "decorator")
    for place in path[::-1]:
        source = program.source_at(place)
        found = None if source is None else _guard(program, source, place)
        if found is not None:
            return found
    return None


def _last(decorator: ast.expr) -> str:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _called(program: Program, outer: tuple[Place, ...], function: str) -> str:
    """How the calling line spells the call (or the property): `self.graph.propagation()`."""
    statement = statement_at(program, outer[-1]) if outer else None
    nodes = list(ast.walk(statement)) if statement is not None else []
    calls = [n for n in nodes if isinstance(n, ast.Call) and _last(n) == function]
    reads = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr == function]
    found: list[ast.expr] = [*calls, *reads]
    return ast.unparse(found[0]) if found else ""


def _guard(program: Program, source: Source, place: Place) -> Memoized | None:
    """The `if` that lets the assignment at a place happen only once."""
    statement = statement_at(program, place)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if isinstance(target, ast.Tuple) or _filled_elsewhere(program, statement):
        return None
    function = source.function_at(place)
    for node in own_nodes(function) if function is not None else ast.walk(source.tree):
        if not isinstance(node, ast.If) or node.orelse:
            continue
        inside = any(n is statement for n in node.body) and _absent(node.test, target)
        before = _returns(node, target) and node.lineno < statement.lineno
        if inside or before:
            at = source.place(node.lineno, place.function, node)
            return Memoized(at, ast.unparse(target), "guard")
    return None


def _absent(test: ast.expr, target: ast.expr) -> bool:
    """Whether a test says that the target has no value yet."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _present(test.operand, target)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    left, right = test.left, test.comparators[0]
    if isinstance(test.ops[0], (ast.Is, ast.Eq)):
        return _same(left, target) and _is_none(right)
    return isinstance(test.ops[0], ast.NotIn) and _is_item(target, right, left)


def _present(test: ast.expr, target: ast.expr) -> bool:
    if isinstance(test, ast.Call) and _last(test) == "hasattr" and len(test.args) == 2:
        named = isinstance(target, ast.Attribute) and _same(test.args[0], target.value)
        return named and ast.unparse(test.args[1]) == repr(getattr(target, "attr", ""))
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        if isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
            return _same(left, target) and _is_none(right)
        return isinstance(test.ops[0], ast.In) and _is_item(target, right, left)
    container = target.value if isinstance(target, ast.Subscript) else target
    return _same(test, container)


def _returns(node: ast.If, target: ast.expr) -> bool:
    """`if key in cache: return cache[key]`."""
    only = node.body[0] if len(node.body) == 1 else None
    value = only.value if isinstance(only, ast.Return) else None
    reads = ast.walk(value) if value is not None else ()
    return _present(node.test, target) and any(_same(n, target) for n in reads)


def _filled_elsewhere(program: Program, statement: ast.Assign) -> bool:
    """Whether something else gives the target a value: then it is a state, not a memory."""
    target = statement.targets[0]
    for node in _assignments(program):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        leaves = (n for t in targets for n in (t.elts if isinstance(t, ast.Tuple) else [t]))
        if any(_same(t, target) for t in leaves) and node.value is not None:
            if ast.unparse(node) != ast.unparse(statement) and not _empty(node.value):
                return True
    return False


def _assignments(program: Program) -> Iterator[ast.Assign | ast.AugAssign | ast.AnnAssign]:
    for _, node in index_of(program).nodes(ast.stmt):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            yield node


def _empty(value: ast.expr) -> bool:
    return _is_none(value) or ast.unparse(value) in ("{}", "dict()", "[]", "list()", "False")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_item(target: ast.expr, container: ast.expr, key: ast.expr) -> bool:
    item = isinstance(target, ast.Subscript)
    return (
        item
        and _same(getattr(target, "value", None), container)
        and _same(getattr(target, "slice", None), key)
    )


def _same(a: ast.AST | None, b: ast.AST | None) -> bool:
    return a is not None and b is not None and ast.unparse(a) == ast.unparse(b)
