"""A value computed beside the result, which computes it again from the same: `v = net.table(ids)`
and `net(ids)`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.arguments import bind, default, given_by, parameters
from autograd_explain.inspect.dataflow import ExprAt, How, Scope
from autograd_explain.inspect.dataflow.reaching_definitions import FUNCTIONS, key_of
from autograd_explain.inspect.dataflow.safe_lookup import MISSING, is_module
from autograd_explain.inspect.dataflow.syntax import is_none
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import class_attribute
from autograd_explain.nodes import GraphTraversal
from autograd_explain.program import own_nodes


@dataclass(frozen=True)
class Handed:
    """What the call may be given: `value` for `parameter`, which "" says is its own result.

    `at` is the shared argument among all, which goes where it is `left_out`.
    """

    value: str
    parameter: str
    at: int
    left_out: bool


@dataclass(frozen=True, eq=False)
class MadeAgain:
    """`call`, on the way to the result, is given `shared`, which `made` computed the value from."""

    call: ExprAt
    made: ExprAt
    shared: ExprAt
    handed: Handed | None


def made_again(
    scene: Scene, roots: list[ExprAt], shown: ExprAt | None, tensor: torch.Tensor | None
) -> MadeAgain | None:
    """The one call that computes a value, which the user's call made from the same, again."""
    made = None if shown is None else _made(scene, shown)
    if made is None or tensor is None or shown is None or shown.key is None:
        return None
    found: dict[int, MadeAgain] = {}
    for way in (w for root in roots for w in _ways(scene, root)):
        for call in (c for c in way if c.scope.body is made.scope.body):
            shared = None if call.node is made.node else _shared(scene, made, call, shown.key)
            if shared is not None and _again(scene, made, way, call, shared, tensor):
                handed = _handed(scene, made, call, shared, shown.key, tensor)
                found[id(call.node)] = MadeAgain(call, made, shared, handed)
    return next(iter(found.values())) if len(found) == 1 else None


def _made(scene: Scene, shown: ExprAt) -> ExprAt | None:
    """The user's call whose value the name was given."""
    bound = scene.slicer.bindings(shown, shown.key or "")
    if len(bound) != 1:
        return None
    scope, binding = bound[0]
    plain = binding.how is How.ASSIGN and not binding.path and isinstance(binding.value, ast.Call)
    return ExprAt(scope, binding.value) if plain and binding.value is not None else None


def _ways(scene: Scene, root: ExprAt) -> Iterator[list[ExprAt]]:
    """What the root was computed from, each with the calls that led into its function."""
    for spot in (*scene.slicer.makers(root), *computation(scene, root)):
        way = [spot]
        while (outer := way[-1].scope.call) is not None and len(way) < 20:
            way.append(outer)
        yield [s for s in way if isinstance(s.node, ast.Call)]


def _shared(scene: Scene, made: ExprAt, call: ExprAt, key: str) -> ExprAt | None:
    """The first argument that made the value, where the other call is given all of them under the
    same names, which stand for the same, and not the value, too."""
    read, given = _arguments(made), _arguments(call)
    known = {s.key or "": s for s in given}
    named = [s for s in read if not isinstance(s.node, ast.Constant)]
    handed_in = any(key_of(n) == key for n in ast.walk(call.node))
    if not named or handed_in or not all(s.key in known for s in named):
        return None
    same = all(_bound(scene, s) == _bound(scene, known[s.key or ""]) for s in named)
    return known[named[0].key or ""] if same else None


def _bound(scene: Scene, spot: ExprAt) -> list[int]:
    return [id(b.statement) for _, b in scene.slicer.bindings(spot, spot.key or "")]


def _arguments(call: ExprAt) -> list[ExprAt]:
    return (
        [call.inside(a) for _, a in given_by(call.node)] if isinstance(call.node, ast.Call) else []
    )


def _again(
    scene: Scene,
    made: ExprAt,
    way: list[ExprAt],
    call: ExprAt,
    shared: ExprAt,
    tensor: torch.Tensor,
) -> bool:
    """Whether the call is of a module that holds all that the value was computed with, or leads to
    the call that made it."""
    value = scene.slicer.value
    module, given = value(call.inside(_function(call))), value(shared)
    if is_module(module):
        used = _leaves(tensor) - _leaves(given)
        return bool(used) and used <= {id(p) for p in module.parameters()}
    inner = way[: way.index(call) + 1]
    return any(_same_call(scene, made, spot, shared) for spot in inner)


def _same_call(scene: Scene, made: ExprAt, spot: ExprAt, shared: ExprAt) -> bool:
    """Whether a call is of the user's function, or of the module, that made the value, and is given
    the shared argument."""
    function = scene.slicer.value(made.inside(_function(made)))
    if function is MISSING or scene.slicer.value(spot.inside(_function(spot))) is not function:
        return False
    if not is_module(function) and scene.slicer.callee(made) is None:
        return False
    given = [scene.slicer.argument(s.scope, s.key or "") or s for s in _arguments(spot)]
    return any(s.node is shared.node for s in given)


def _leaves(value: Any) -> set[int]:
    known = isinstance(value, torch.Tensor) and value.grad_fn is not None
    return {id(leaf) for leaf in GraphTraversal([value.grad_fn]).leaves()} if known else set()


def _function(call: ExprAt) -> ast.expr:
    assert isinstance(call.node, ast.Call)
    return call.node.func


# -- what the call takes in its place -------------------------------------------------------------


def _handed(
    scene: Scene, made: ExprAt, call: ExprAt, shared: ExprAt, value: str, tensor: torch.Tensor
) -> Handed | None:
    at = [s.node for s in _arguments(call)].index(shared.node)
    if call.text == made.text:
        return Handed(value, "", at, left_out=True)
    scope = scene.slicer.callee(call)
    if scope is None:
        return _of_documented(scene, call, at, value, tensor)
    if len(_arguments(made)) != 1 or not isinstance(scope.body, FUNCTIONS):
        return None
    given = {n: scene.slicer.argument(scope, n) for n in parameters(scope.body)}
    names = [n for n, s in given.items() if s is not None and s.node is shared.node]
    stand = [p for p in given for n in names if _stands_for(scene, made, scope, p, n, tensor)]
    if len(names) != 1 or len(stand) != 1:
        return None
    left_out = is_none(default(scope.body, names[0])) and _read_once(scope, names[0])
    return Handed(value, stand[0], at, left_out)


def _stands_for(
    scene: Scene, made: ExprAt, scope: Scope, name: str, source: str, tensor: torch.Tensor
) -> bool:
    """Whether the function computes the parameter from the other where it is None, as the user's
    call did: `if v is None: v = self.table(ids)`."""
    if name == source or not isinstance(scope.body, FUNCTIONS):
        return False
    without, given = default(scope.body, name), scene.slicer.argument(scope, name)
    if not is_none(without) or given is None or given.node is not without:
        return False
    computed = [
        node
        for test in own_nodes(scope.body)
        if isinstance(test, (ast.If, ast.IfExp))
        for node in _where_none(test, name)
    ]
    return len(computed) == 1 and _computes(scene, made, ExprAt(scope, computed[0]), source, tensor)


def _where_none(test: ast.If | ast.IfExp, name: str) -> Iterator[ast.expr]:
    """What the name is given where it is None."""
    compared = ast.unparse(test.test)
    if compared not in (f"{name} is None", f"{name} is not None"):
        return
    branch: Any = test.body if compared.endswith("is None") else test.orelse
    if isinstance(test, ast.IfExp):
        yield branch
        return
    for statement in branch:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            yield statement.value


def _computes(scene: Scene, made: ExprAt, spot: ExprAt, source: str, tensor: torch.Tensor) -> bool:
    given = _arguments(spot)
    if len(given) != 1 or given[0].key != source:
        return False
    function = scene.slicer.value(spot.inside(_function(spot)))
    if function is not MISSING and function is scene.slicer.value(made.inside(_function(made))):
        return True
    return is_module(function) and _leaves(tensor) == {id(p) for p in function.parameters()}


def _read_once(scope: Scope, name: str) -> bool:
    """Whether nothing but the one computation reads the parameter, tests for None left out."""
    nodes = [n for n in ast.walk(scope.body) if isinstance(n, ast.Name) and n.id == name]
    tested = [
        n
        for c in ast.walk(scope.body)
        if isinstance(c, ast.Compare) and all(is_none(o) for o in c.comparators)
        for n in ast.walk(c)
    ]
    return len([n for n in nodes if n not in tested]) == 1


def _of_documented(
    scene: Scene, call: ExprAt, at: int, value: str, tensor: torch.Tensor
) -> Handed | None:
    """A model of transformers' takes `inputs_embeds` instead of `input_ids`: what its embedding
    looks up by them."""
    module = scene.slicer.value(call.inside(_function(call)))
    forward = class_attribute(type(module), "forward") if is_module(module) else MISSING
    signature: Mapping[str, inspect.Parameter] = {}
    with suppress(ValueError, TypeError):
        signature = inspect.signature(forward).parameters
    if type(tensor.grad_fn).__name__ != "EmbeddingBackward0" or not isinstance(call.node, ast.Call):
        return None
    bound = bind([n for n in signature if n != "self"], given_by(call.node))
    ids, documented = bound.get("input_ids"), "inputs_embeds" in signature
    if not documented or "inputs_embeds" in bound or ids is not _arguments(call)[at].node:
        return None
    return Handed(value, "inputs_embeds", at, left_out=True)
