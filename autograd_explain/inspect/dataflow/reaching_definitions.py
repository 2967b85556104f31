"""Which statements may have given a name its value, read from one piece of source.

A *key* is the text of a name, an attribute path or a constant subscript (`h`, `self.h`,
`out['mask']`).  `reaching` climbs from the use towards the start of the function, nearest
statement first, and stops at a statement that binds the key on every path.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from ...arguments import FunctionNode
from ...program import blocks


class How(Enum):
    """How a statement binds."""

    ASSIGN = "assign"
    AUGMENTED = "augmented"  #: `x += y`
    OTHER = "other"  #: import, def, class, with … as, del


class Each(Enum):
    """Any element: of an iteration, or any value of a mapping."""

    ITEM = "item"
    VALUE = "value"


#: The way from a value to the part meant: a tuple index, a mapping key, or any element.
Part = int | str | Each
Body = ast.Module | FunctionNode
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass(frozen=True, eq=False)
class Binding:
    """A statement that binds a key to `value` or to a part of it."""

    statement: ast.stmt
    how: How
    value: ast.expr | None
    path: tuple[Part, ...] = ()


@dataclass(frozen=True, eq=False)
class BindingIndex:
    """One parsed source with the way from a node to its parent."""

    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first, without itself."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that holds a node (the node itself, if it is one)."""
        if isinstance(node, ast.stmt):
            return node
        return next((a for a in self.ancestors(node) if isinstance(a, ast.stmt)), None)

    def body_of(self, node: ast.AST) -> Body:
        """The function, lambda or module that a node runs in."""
        around = (a for a in self.ancestors(node) if isinstance(a, (*FUNCTIONS, ast.Module)))
        found = next(around, self.tree)
        assert isinstance(found, (*FUNCTIONS, ast.Module))
        return found

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        """The class a method is defined in."""
        parent = self.parents.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def key_of(node: ast.AST) -> str | None:
    """The key that an expression is, or None where it is no plain path."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = key_of(node.value)
        return None if base is None else f"{base}.{node.attr}"
    if isinstance(node, ast.Subscript):
        base = key_of(node.value)
        constant = constant_of(node.slice)
        return None if base is None or constant is None else f"{base}[{constant!r}]"
    return None


def head_of(key: str) -> str:
    """The name a key begins with: `self` of `self.layers[0].weight`."""
    return key.split(".")[0].split("[")[0]


def constant_of(node: ast.AST) -> int | str | None:
    """The value of an integer or string literal, `-1` included."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, str)):
        return None if isinstance(node.value, bool) else node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant_of(node.operand)
        return -inner if isinstance(inner, int) else None
    return None


def reaching(index: BindingIndex, use: ast.AST, key: str) -> list[Binding]:
    """The bindings of `key` that may be seen at `use`, nearest first, inside one function."""
    found: list[Binding] = []
    for ancestor in (use, *index.ancestors(use)):
        if isinstance(ancestor, _COMPREHENSIONS):
            bound = list(_from_comprehension(ancestor, key, index))
            if bound:
                return bound
        if isinstance(ancestor, _SCOPES):
            break
        if isinstance(ancestor, ast.stmt) and _climb(index, ancestor, key, found):
            break
    return found


def ends_with(index: BindingIndex, body: list[ast.stmt], key: str) -> tuple[list[Binding], bool]:
    """The bindings of `key` after a block has run, and whether one of them is certain."""
    found: list[Binding] = []
    certain = any(_scan(statement, key, found) for statement in reversed(body))
    return found, certain


def all_bindings(body: Body, key: str) -> list[Binding]:
    """Every binding of `key` in a function or module, in source order, nested defs left out."""
    statements = body.body if isinstance(body.body, list) else []
    return [b for s in statements for b in _everywhere(s, key)]


def _climb(index: BindingIndex, statement: ast.stmt, key: str, found: list[Binding]) -> bool:
    """Bindings before `statement` in its own block and, for a loop, from its last round."""
    parent = index.parents.get(statement)
    for block in blocks(parent):
        if statement not in block:
            continue
        before = block[: block.index(statement)]
        if any(_scan(earlier, key, found) for earlier in reversed(before)):
            return True
    if isinstance(parent, (ast.For, ast.AsyncFor, ast.While)) and statement in parent.body:
        after = parent.body[parent.body.index(statement) :]
        any(_scan(later, key, found) for later in reversed(after))
        if isinstance(parent, (ast.For, ast.AsyncFor)):
            return _add(found, _for_binding(parent, key))
    if isinstance(parent, (ast.With, ast.AsyncWith)):
        return _add(found, _with_binding(parent, key))
    return False


def _add(found: list[Binding], bindings: Iterator[Binding]) -> bool:
    new = list(bindings)
    found.extend(new)
    return bool(new)


def _scan(statement: ast.stmt, key: str, found: list[Binding]) -> bool:
    """Collect what one statement may bind; True where it binds on every path."""
    own = [b for b in _own(statement, key) if all(b.statement is not f.statement for f in found)]
    if isinstance(statement, (ast.If, ast.Try)):
        return _scan_branches(statement, key, found)
    if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
        for inner in reversed([*statement.body, *statement.orelse]):
            if _scan(inner, key, found):
                break
        found.extend(own)
        return False
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        if any(_scan(inner, key, found) for inner in reversed(statement.body)):
            return True
    found.extend(own)
    return bool(own) and own[-1].how is not How.AUGMENTED


def _scan_branches(statement: ast.If | ast.Try, key: str, found: list[Binding]) -> bool:
    if isinstance(statement, ast.Try):
        if any(_scan(inner, key, found) for inner in reversed(statement.finalbody)):
            return True
        for handler in statement.handlers:
            any(_scan(inner, key, found) for inner in reversed(handler.body))
        whole = [*statement.body, *statement.orelse]
        return any(_scan(inner, key, found) for inner in reversed(whole))
    found.extend(_own(statement, key))
    then = any(_scan(inner, key, found) for inner in reversed(statement.body))
    other = any(_scan(inner, key, found) for inner in reversed(statement.orelse))
    return (
        (then or _leaves(statement.body))
        and (other or _leaves(statement.orelse))
        and (then or other)
    )


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _everywhere(statement: ast.stmt, key: str) -> Iterator[Binding]:
    yield from _own(statement, key)
    if isinstance(statement, _SCOPES):
        return
    for block in blocks(statement):
        for inner in block:
            yield from _everywhere(inner, key)
    for handler in getattr(statement, "handlers", ()):
        for inner in handler.body:
            yield from _everywhere(inner, key)


def _own(statement: ast.stmt, key: str) -> Iterator[Binding]:
    """What the statement itself binds, its blocks left out."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _targets(statement, target, statement.value, (), key)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _targets(statement, statement.target, statement.value, (), key)
    elif isinstance(statement, ast.AugAssign) and key_of(statement.target) == key:
        yield Binding(statement, How.AUGMENTED, statement.value)
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from _for_binding(statement, key)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        yield from _with_binding(statement, key)
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        if statement.name == key:
            yield Binding(statement, How.OTHER, None)
        return
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        if any((a.asname or a.name.split(".")[0]) == key for a in statement.names):
            yield Binding(statement, How.OTHER, None)
    yield from _walrus(statement, key)


def _walrus(statement: ast.stmt, key: str) -> Iterator[Binding]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            for node in ast.walk(child):
                if isinstance(node, ast.NamedExpr) and node.target.id == key:
                    yield Binding(statement, How.ASSIGN, node.value)


def _targets(
    statement: ast.stmt, target: ast.expr, value: ast.expr, path: tuple[Part, ...], key: str
) -> Iterator[Binding]:
    if isinstance(target, ast.Starred):
        yield from _targets(statement, target.value, value, (*path[:-1],), key)
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
        for i, element in enumerate(target.elts):
            place = i if starred is None or i <= starred else i - len(target.elts)
            yield from _targets(statement, element, value, (*path, place), key)
    elif key_of(target) == key:
        yield Binding(statement, How.ASSIGN, value, path)


def _for_binding(loop: ast.For | ast.AsyncFor, key: str) -> Iterator[Binding]:
    yield from _targets(loop, loop.target, loop.iter, (Each.ITEM,), key)


def _with_binding(block: ast.With | ast.AsyncWith, key: str) -> Iterator[Binding]:
    for item in block.items:
        if item.optional_vars is not None and key_of(item.optional_vars) == key:
            yield Binding(block, How.OTHER, item.context_expr)


def _from_comprehension(node: ast.AST, key: str, index: BindingIndex) -> Iterator[Binding]:
    statement = index.statement(node)
    if statement is None:
        return
    for generator in getattr(node, "generators", ()):
        yield from _targets(statement, generator.target, generator.iter, (Each.ITEM,), key)
