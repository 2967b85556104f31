"""What was computed anew beside the old value, and nothing reads: `adv = net(x)` before a loss of
`out`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from autograd_explain.arguments import values_given
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import own_nodes

from .freed_part import FreedPart


@dataclass(frozen=True)
class Unread:
    """`name` got the new value; `reader` is the first statement behind it that reads the `old` one,
    `reads` are all places where one does, up to the backward that failed."""

    name: str
    old: str
    reader: Place
    reads: tuple[Place, ...]


def unread_result(scene: Scene, part: FreedPart) -> Unread | None:
    """The one value that the call behind the old value has given once more, of the same arguments
    or of ones made from them, if the program reads it nowhere and goes on with the old one."""
    at, failed = scene.place, scene.program.statement_at(scene.place)
    source = scene.program.source_at(at)
    if failed is None or source is None or at is None or part.maker is None:
        return None
    scope = source.function_around(failed)
    trees = [scope] if scope is not None else [s.tree for s in scene.index.namespace(source)]
    own = [n for tree in trees for n in own_nodes(tree) if isinstance(n, ast.Assign)]
    makers = [scene.program.statement_at(place) for place in part.maker.path]
    first = next((s for s in own if any(s is m for m in makers)), None)
    if first is None:
        return None
    here = [n for n in own if any(source.parents.get(n) is b for b in source.around(failed))]
    before = (n for n in here if n.lineno < failed.lineno)
    again = [n for n in before if own.index(n) > own.index(first) and _is_alike(own, first, n)]
    pairs = dict.fromkeys((n, *p) for n in again for p in _pairs(first, n))
    found = [p for p in pairs if not _is_read(trees, p[2]) and _has_graph(scene, part, p[2])]
    for anew, old, new in found if len(found) == 1 else ():
        names = [n for n in _names(scope or source.tree, old) if _is_between(anew, n, failed)]
        reads = [n for n in names if isinstance(n.ctx, ast.Load)]
        places = tuple(source.place(n.lineno, at.function, n) for n in reads)
        if reads and len(reads) == len(names):
            statement = source.statement_at(reads[0].lineno, reads[0].col_offset)
            reader = source.place(reads[0].lineno, at.function, statement)
            return Unread(new, old, reader, places)
    return None


def _is_alike(own: list[ast.Assign], first: ast.Assign, again: ast.Assign) -> bool:
    """Whether both call the same, with the same arguments or with what is made from them."""
    one, other = first.value, again.value
    if not isinstance(one, ast.Call) or not isinstance(other, ast.Call):
        return False
    if ast.unparse(one.func) != ast.unparse(other.func):
        return False
    given, anew = (values_given(call) for call in (one, other))
    named = [[k.arg for k in call.keywords] for call in (one, other)]
    pairs = zip(given, anew, strict=False)
    alike = len(given) == len(anew) and named[0] == named[1]
    return alike and all(_is_from(own, was, now) for was, now in pairs)


def _is_from(own: list[ast.Assign], was: ast.expr, now: ast.expr) -> bool:
    """Whether an argument is the former one, or spelled with it, or a name given such a value."""
    text = ast.unparse(was)
    values = [now]
    if isinstance(now, ast.Name):
        values += [s.value for s in own if any(ast.unparse(t) == now.id for t in s.targets)]
    return any(
        isinstance(n, ast.expr) and ast.unparse(n) == text for v in values for n in ast.walk(v)
    )


def _pairs(first: ast.Assign, again: ast.Assign) -> Iterator[tuple[str, str]]:
    """The names that both statements give the same part of what they call."""
    one, other = (getattr(s.targets[0], "elts", s.targets) for s in (first, again))
    for old, new in zip(one, other, strict=False) if len(one) == len(other) else ():
        if isinstance(old, ast.Name) and isinstance(new, ast.Name) and old.id != new.id:
            if not new.id.startswith("_"):
                yield old.id, new.id


def _has_graph(scene: Scene, part: FreedPart, name: str) -> bool:
    """Whether a name stands for a tensor, or for what holds one, with a graph of its own."""
    old = {id(node.node) for node in part.old}
    live = (n for n in scene.names.tensors if n.name == name or n.name.startswith(_inside(name)))
    return any(not n.tensor.is_leaf and id(n.tensor.grad_fn) not in old for n in live)


def _inside(name: str) -> tuple[str, str]:
    return f"{name}.", f"{name}["


def _is_read(trees: list[Any], name: str) -> bool:
    found = (n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name))
    return any(n.id == name and isinstance(n.ctx, ast.Load) for n in found)


def _names(tree: ast.AST, name: str) -> list[ast.Name]:
    found = [n for n in own_nodes(tree) if isinstance(n, ast.Name) and n.id == name]
    return sorted(found, key=lambda n: (n.lineno, n.col_offset))


def _is_between(anew: ast.stmt, node: ast.Name, failed: ast.stmt) -> bool:
    return (anew.end_lineno or anew.lineno) < node.lineno <= (failed.end_lineno or failed.lineno)
