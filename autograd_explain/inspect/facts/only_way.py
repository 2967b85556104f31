"""Whether a loss depends on a tensor only by a value that was read out of it without its graph."""

from __future__ import annotations

import ast

from ...forward_flow import computed_from, flows_out, is_differentiated
from ...program import own_nodes
from ..dataflow import ExprAt
from ..scene import Scene
from .value_names import stored_names


def is_only_way(scene: Scene, read: ExprAt, source: ExprAt) -> bool | None:
    """Whether a loss is computed from what `read` gives, and in no other way from its `source`:
    beside that (`z - torch.tensor(z)`) the value is meant to be apart.  What a module's `forward`
    or `training_step` gives to a library goes into a loss.  None where another function gives it to
    callers that are not known."""
    if _goes_on_itself(scene, read, source):
        return False
    at: ExprAt | None = read
    while at is not None:
        assert isinstance(at.node, ast.expr)
        statements = list(computed_from(_around(at), at.node))
        if any(map(is_differentiated, statements)):
            return True
        if not any(isinstance(s, ast.Return) for s in statements):
            return False
        if at.scope.call is None and getattr(at.scope.body, "name", "") in _TRAINED:
            return True
        at = at.scope.call
    return None


_TRAINED = ("forward", "training_step")


def _goes_on_itself(scene: Scene, read: ExprAt, source: ExprAt) -> bool:
    scope, inside = _around(read), set(ast.walk(read.node))
    nodes = (n for n in own_nodes(scope) if isinstance(n, ast.expr) and n not in inside)
    others = [n for n in nodes if isinstance(getattr(n, "ctx", None), ast.Load)]
    if source.text in stored_names(scene, read):  # below it the name is the value's
        others = [n for n in others if n.lineno < read.node.lineno]
    return any(flows_out(scope, n) for n in others if ast.unparse(n) == source.text)


def _around(spot: ExprAt) -> ast.AST:
    text = spot.scope.source
    return text.function_around(spot.node) or text.tree
