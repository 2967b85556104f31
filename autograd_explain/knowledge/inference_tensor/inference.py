"""Inference tensors: which one a statement uses, and the inference_mode that made it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import torch

from autograd_explain.incident import LiveFrame
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import in_frame
from autograd_explain.inspect.facts.container_puts import put_of
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.torch_call import maker
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import table_of
from autograd_explain.program import expression_of, last_name, library_source


def inference_tensors(scene: Scene) -> Iterator[tuple[ExprAt, torch.Tensor]]:
    """The expressions of the failing statement that name an inference tensor."""
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    if spot is None or statement is None:
        return
    for node in (*ast.walk(spot.node), *ast.walk(statement)):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            if isinstance(getattr(node, "ctx", None), ast.Load) or isinstance(
                statement, ast.AugAssign
            ):
                found = spot.inside(node)
                value: Any = scene.slicer.value(found)
                if isinstance(value, torch.Tensor) and value.is_inference():
                    yield found, value


def handed_over(scene: Scene) -> Iterator[tuple[ExprAt, torch.Tensor]]:
    """The inference tensors that the functions behind the user's failing line read where they
    stopped, or hold, torch's or a library's, as live names of the program's."""
    own = {id(live) for live in scene.incident.user_frames}
    for live in takewhile(lambda f: id(f) not in own, reversed(scene.incident.frames)):
        for value in (*_read_where_stopped(live), *live.frame.f_locals.values()):
            for tensor in value if type(value) in (tuple, list) else (value,):
                if isinstance(tensor, torch.Tensor) and tensor.is_inference():
                    node = expression_of(next(iter(scene.names.of(tensor)), ""))
                    if node is not None and scene.surfaced is not None:
                        yield scene.slicer.imagined(scene.surfaced, node), tensor


def _read_where_stopped(live: LiveFrame) -> Iterator[Any]:
    """What the attributes and items are that a library's line names: `self.total += n`."""
    for node in library_source(live.filename).nodes_from.get(live.line, ()):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            yield in_frame(node, live.frame)


def kept_by_owners(scene: Scene) -> Iterator[tuple[ExprAt, torch.Tensor]]:
    """The calls of methods in the failing statement whose object keeps an inference tensor: in a
    cache that the method hands out."""
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    if spot is None or statement is None:
        return
    for node in (n for n in ast.walk(statement) if isinstance(n, ast.Call)):
        called = node.func
        if isinstance(called, ast.Attribute) and scene.slicer.callee(spot.inside(node)) is not None:
            owner = scene.slicer.value(spot.inside(called.value))
            for value in table_of(owner).values():
                held = value.values() if type(value) is dict else (value,)
                for tensor in held:
                    if isinstance(tensor, torch.Tensor) and tensor.is_inference():
                        yield spot.inside(node), tensor


def spelled(scene: Scene, live: str) -> Iterator[str]:
    """What the user's failing call is given that asks an object for what has a live name:
    `store["a"]` for `store.table['a']`."""
    call = None if scene.surfaced is None else scene.surfaced.node
    for node in call.args if isinstance(call, ast.Call) else ():
        if isinstance(node, ast.Subscript):
            text, owner = ast.unparse(node), ast.unparse(node.value)
            key = text.removeprefix(owner)
            if live.startswith(f"{owner}.") and live.endswith(key):
                yield text


def unpacked_together(scene: Scene, shown: ExprAt) -> tuple[str, ...]:
    """The names that got inference tensors by one unpacking with this one: `feats, labels`."""
    source, body = shown.scope.source, shown.scope.body
    for node in ast.walk(body):
        loop = node.target if isinstance(node, (ast.For, ast.AsyncFor)) else None
        targets = node.targets if isinstance(node, ast.Assign) else [loop]
        for target in (t for t in targets if isinstance(t, (ast.Tuple, ast.List))):
            names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
            if shown.text in names and source.function_around(node) is _function(shown):
                return tuple(n for n in names if _is_inference(scene, shown, n))
    return ()


def _function(spot: ExprAt) -> ast.AST | None:
    body = spot.scope.body
    return body if isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _is_inference(scene: Scene, shown: ExprAt, name: str) -> bool:
    value = scene.slicer.value(scene.slicer.imagined(shown, ast.Name(name, ast.Load())))
    return isinstance(value, torch.Tensor) and value.is_inference()


@dataclass(frozen=True, eq=False)
class Origin:
    """Where an inference tensor comes from: `made` is the one expression that computed it, `mode`
    the `torch.inference_mode()` (of a `with` or a decorator) to blame.  `around` says that this is
    the one around `made`, or that nothing of the program's is known to have made it: else something
    that the value was computed from was made there."""

    made: ExprAt | None
    mode: ExprAt | None = None
    around: bool = False


def origin_of(scene: Scene, shown: ExprAt, tensor: torch.Tensor) -> Origin:
    """The origin as the value's way through the program tells it, else as the statement does that
    put it into the container in which it lives."""
    stored = (put_of(scene, name) for name in scene.names.of(tensor) if "[" in name)
    puts = [scene.slicer.at(found[1].source, found[1].value) for found in stored if found]
    found = (_origin(scene, spot) for spot in (shown, *puts))
    known = next((o for o in found if o.mode is not None), None)
    if known is not None:
        return known
    made, mode = next(iter(puts), None) or _made(scene, shown), _only_switch(scene, shown)
    return Origin(made, mode, around=made is None)


def _made(scene: Scene, shown: ExprAt) -> ExprAt | None:
    """The one expression that computed it; of a part of what an attribute keeps, that which the
    attribute was given last."""
    made = maker(scene, shown)
    if made is not None and made.node is shown.node and shown.key is not None:
        made = None  # no statement of the program gave it its value
    part = made or shown
    node = part.node
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Attribute):
        return made
    owner = scene.slicer.value(part.inside(node.value))
    stored = scene.slicer.stores(owner, node.attr)
    stored = [s for s in stored if not isinstance(s.node, ast.Constant)]
    later = [s for s in stored if s.function != "__init__" or not _made_outside(owner)]
    return later[0] if len(later) == 1 else made


def _made_outside(owner: Any) -> bool:
    """Whether its constructor made tensors that are none of inference mode."""
    trained = owner.parameters() if isinstance(owner, torch.nn.Module) else ()
    return any(not p.is_inference() for p in trained)


def _only_switch(scene: Scene, shown: ExprAt) -> ExprAt | None:
    """The one inference mode of the program, of several the one whose code names the object that
    keeps the tensor: the calls between it and what was made may go through a library."""
    nodes = scene.index.nodes(ast.stmt)
    found = [(source, n, mode) for source, n in nodes if (mode := _switch(n)) is not None]
    if len(found) > 1 and isinstance(shown.node, ast.Attribute):
        owner = last_name(shown.node.value)
        found = [f for f in found if owner != "self" and _names(f[1], owner)]
    return scene.slicer.at(found[0][0], found[0][2]) if len(found) == 1 else None


def _names(statement: ast.stmt, word: str) -> bool:
    nodes = (n for n in ast.walk(statement) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(last_name(n) == word for n in nodes)


def _origin(scene: Scene, spot: ExprAt) -> Origin:
    slicer = scene.slicer
    makers, made = slicer.makers(spot), _made(scene, spot)
    for start in (*makers, *(c for m in makers for c in computation(scene, m))):
        index = slicer.index(start.scope.source)
        for around in index.ancestors(start.node):
            found = _switch(around)
            if found is not None:
                mode = replace(start, node=found, path=(), via=())
                return Origin(made, mode, makers == [start])
    return Origin(made)


def _switch(node: ast.AST) -> ast.expr | None:
    """The expression of a `with` or a decorator that says inference_mode."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        given = [item.context_expr for item in node.items]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = list(node.decorator_list)
    else:
        return None
    return next((e for e in given if "inference_mode" in ast.unparse(e)), None)
