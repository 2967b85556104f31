"""The lists that rounds fill together: one that begins anew empties all of them."""

from __future__ import annotations

import ast
from collections.abc import Collection

from autograd_explain.inspect.facts.container_puts import live_object
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import blocks

_READ = (ast.Name, ast.Attribute, ast.Subscript)


def filled_beside(scene: Scene, path: str) -> tuple[str, ...]:
    """The paths of the live lists that are as long as the one at a path, and that the program
    appends to and reads: `buf.rewards` beside `buf.values`.  None that each round makes."""
    filled, owner = live_object(scene, path), path.rpartition(".")[0]
    found: dict[int, str] = {id(filled): path}
    for _, call in scene.index.calls("append"):
        spelled = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        here = spelled
        if owner and spelled.startswith("self."):
            here = owner + spelled.removeprefix("self")
        other = live_object(scene, here) if spelled else None
        if type(other) is list and len(other) == len(filled) and _is_read(scene, spelled):
            if not _is_made_by_round(scene, here):
                found.setdefault(id(other), here)
    return tuple(found.values())[1:]


def _is_read(scene: Scene, spelled: str) -> bool:
    """Whether the program reads a list otherwise than to append to it."""
    named = ast.parse(spelled, mode="eval").body
    attribute = named.attr if isinstance(named, ast.Attribute) else ""
    name = attribute or getattr(named, "id", "")
    for source, node in scene.index.nodes(ast.expr, naming=(name,) if name else ()):
        if isinstance(node, _READ) and isinstance(node.ctx, ast.Load):
            around = source.parents.get(node)
            puts = isinstance(around, ast.Attribute) and around.attr == "append"
            same = ast.unparse(node) == spelled or getattr(node, "attr", None) == attribute
            if same and not puts:
                return True
    return False


def _is_made_by_round(scene: Scene, path: str) -> bool:
    """Whether the loop around the failing line, or else its function, gives the name a list."""
    source, failed = scene.program.source_at(scene.place), scene.program.statement_at(scene.place)
    if source is None or failed is None:
        return False
    loops = (n for n in source.around(failed) if isinstance(n, (ast.For, ast.While)))
    around = next(loops, None) or source.function_around(failed)
    inside = () if around is None else ast.walk(around)
    stored = (n for n in inside if isinstance(getattr(n, "ctx", None), ast.Store))
    return any(ast.unparse(n) == path for n in stored)


def last_reading(scene: Scene, paths: Collection[str]) -> Place | None:
    """The last statement behind the failing one, in its block, that reads one of the lists; None
    where that returns."""
    source, failed = scene.program.source_at(scene.place), scene.program.statement_at(scene.place)
    if source is None or failed is None:
        return None
    block = next((b for b in blocks(source.parents.get(failed)) if failed in b), [failed])
    behind = [s for s in block[block.index(failed) :] if s is failed or _reads(s, paths)]
    last = behind[-1]
    return None if isinstance(last, ast.Return) else source.place(last.lineno, None, last)


def _reads(statement: ast.stmt, paths: Collection[str]) -> bool:
    nodes = (n for n in ast.walk(statement) if isinstance(n, _READ))
    return any(ast.unparse(n) in paths for n in nodes)
