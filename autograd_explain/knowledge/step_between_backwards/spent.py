"""A value that went backward already and is kept with its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from autograd_explain.inspect.dataflow.syntax import PUTS
from autograd_explain.inspect.facts.binding import NodesOfName
from autograd_explain.inspect.live.graph import GraphNode
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import own_nodes


def spent(scene: Scene, needed: Iterable[GraphNode]) -> Place | None:
    """Where a value that went backward already is kept: the `loss` of `curve.append(loss)`.

    None unless cutting it there leads past all the `needed` nodes and leaves something else to go
    backward to.
    """
    forbidden = {id(n.node) for n in needed}
    calls = [m for m in scene.history.steps if m.op == "backward" and m.operands]
    seen = set()
    for call in reversed(calls):
        name = call.operands[0]
        if call.place.line_id in seen or not name.isidentifier():
            continue
        seen.add(call.place.line_id)
        places = list(_keepers(scene, call.place, name))
        if len(places) == 1 and _cuts_off(scene, call.place, name, forbidden):
            return places[0]
    return None


def _keepers(scene: Scene, call: Place, name: str) -> Iterator[Place]:
    """The statements of the function around a backward that keep the value it went from."""
    source = scene.program.source_at(call)
    statement = scene.program.statement_at(call)
    if source is None or statement is None:
        return
    for node in own_nodes(source.function_around(statement) or source.tree):
        value = _kept_value(node)
        if isinstance(value, ast.Name) and value.id == name:
            yield source.place(value.lineno, call.function, value)


def _kept_value(node: ast.AST) -> ast.expr | None:
    """What a statement keeps for later: `total += loss`, `curve.append(loss)`, `best[k] = loss`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return node.value
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.value
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        left = ast.unparse(node.value.left) == ast.unparse(node.targets[0])
        return node.value.right if left and isinstance(node.value.op, ast.Add) else None
    call = node.value if isinstance(node, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    puts = isinstance(method, ast.Attribute) and method.attr in PUTS
    return call.args[-1] if puts and isinstance(call, ast.Call) and call.args else None


def _cuts_off(scene: Scene, call: Place, name: str, forbidden: set[int]) -> bool:
    """Whether no forbidden node is reached past the values of this name, but some leaf is."""
    return scene.graph.ends_at(NodesOfName(scene, name, call).__contains__, forbidden)
