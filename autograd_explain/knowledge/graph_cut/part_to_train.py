"""Which part of a frozen module the program means to train: what it replaced, or gave to an
optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt, Slicer
from autograd_explain.inspect.dataflow.reaching_definitions import head_of
from autograd_explain.inspect.facts.torch_call import optimizers_made
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.program import called_name, expression_of

_READS_PARAMETERS = ("parameters", "named_parameters")


@dataclass(frozen=True, eq=False)
class PartToTrain:
    """`parts` as the program spells them; `after` is the statement that froze them."""

    parts: tuple[str, ...]
    after: ExprAt


def part_to_train(
    scene: Scene, modules: tuple[ExprAt, ...], freezer: ExprAt | None
) -> PartToTrain | None:
    """The parts of frozen modules that are to learn, where one statement of the same scope froze
    them; None where the program does not tell."""
    slicer = scene.slicer
    live = [v for v in map(slicer.value, modules) if isinstance(v, torch.nn.Module)]
    if freezer is None or not live:
        return None
    for wanted in (_optimized(scene), _replaced(scene), _put_on(scene, freezer)):
        found: dict[int, tuple[ExprAt, list[str]]] = {}
        for spot in wanted:
            after = _froze(scene, freezer, spot) if _is_part(scene, spot, live) else None
            if after is not None:
                found.setdefault(id(after.node), (after, []))[1].append(spot.text)
        if len(found) == 1:
            ((after, parts),) = found.values()
            return PartToTrain(tuple(dict.fromkeys(parts)), after)
    return None


def _optimized(scene: Scene) -> Iterator[ExprAt]:
    """`model.fc` of `Adam(model.fc.parameters())`, `model.prompt` of `Adam([model.prompt])`."""
    for call in optimizers_made(scene):
        for listed in (n for n in ast.walk(call.node) if isinstance(n, (ast.List, ast.Tuple))):
            yield from (call.inside(e) for e in listed.elts if isinstance(e, ast.Attribute))
        for node in ast.walk(call.node):
            if isinstance(node, ast.Call) and called_name(node) in _READS_PARAMETERS:
                assert isinstance(node.func, ast.Attribute)
                yield call.inside(node.func.value)


def _replaced(scene: Scene) -> Iterator[ExprAt]:
    """`model.fc` of `model.fc = nn.Linear(…)`, `model.head[2]` of `model.head[2] = …`."""
    for source, node in scene.index.nodes(ast.Assign, newest_first=True):
        for target in node.targets if isinstance(node.value, ast.Call) else ():
            if isinstance(target, (ast.Attribute, ast.Subscript)):
                yield scene.slicer.at(source, target)


def _put_on(scene: Scene, freezer: ExprAt) -> Iterator[ExprAt]:
    """`model.head`, the last layer of a `model` that was frozen whole and given to an optimizer."""
    slicer, function = scene.slicer, freezer.scope.function
    calls = scene.index.calls_of(function) if function is not None else ()
    called = [slicer.at(source, call) for source, call in calls]
    for spot in called or [_outermost(slicer, freezer) or freezer]:
        for node in (n for n in ast.walk(spot.node) if isinstance(n, (ast.Name, ast.Attribute))):
            name = _last_layer(scene, slicer.value(spot.inside(node)))
            reading = f"[{name}]" if name.isdigit() else f".{name}"
            part = expression_of(f"{ast.unparse(node)}{reading}") if name else None
            if part is not None:
                yield slicer.imagined(spot, part)


def _last_layer(scene: Scene, whole: object) -> str:
    """The name of a model's last part, where an optimizer holds it and it is of torch's own layers,
    beside one other part that has a name or parts of another make: what was put on what is trained
    already."""
    if not is_a(whole, torch.nn.Module):
        return ""
    parts = [(n, m) for n, m in whole.named_children() if [*m.parameters()]]
    name, last = parts[-1] if len(parts) > 1 else ("", whole)
    others = [m for _, m in parts[:-1]]
    tied = {id(p) for m in others for p in m.parameters()} & {id(p) for p in last.parameters()}
    apart = not tied and not _is_of_others(last) and scene.gradient_tracer.holds(last.parameters())
    two = len(others) == 1 and not name.isdigit()
    return name if apart and (two or any(map(_is_of_others, others))) else ""


def _is_of_others(module: torch.nn.Module) -> bool:
    """Whether something in it is no layer of torch's."""
    return any(type(m).__module__.partition(".")[0] != "torch" for m in module.modules())


def _is_part(scene: Scene, spot: ExprAt, live: list[torch.nn.Module]) -> bool:
    """Whether an expression is a frozen part of what the loss was computed with, not the whole."""
    path = spot.key
    if path is None or path == head_of(path):
        return False
    if isinstance(spot.node, ast.Attribute) and ast.unparse(spot.node.value) == "self":
        return False  # a class stores every layer so
    value = scene.slicer.value(spot)
    if isinstance(value, torch.nn.Parameter):
        return not value.requires_grad
    if isinstance(value, torch.nn.Module):
        inner = {id(m) for m in value.modules()}
        used = any(id(m) in inner for m in live) or any(
            m is value for v in live for m in v.modules()
        )
        parameters = list(value.parameters())
        return used and bool(parameters) and not any(p.requires_grad for p in parameters)
    return _is_path(scene, spot.text.partition(".")[2], live)


def _is_path(scene: Scene, path: str, live: list[torch.nn.Module]) -> bool:
    """For a local name that is gone: whether the path leads to one of the modules from any of the
    user's."""
    dotted = path.replace("[", ".").replace("]", "")
    owners = [v for _, v in scene.names.objects if isinstance(v, torch.nn.Module)]
    return bool(dotted) and any(
        name == dotted and any(m is module for v in live for m in v.modules())
        for owner in owners
        for name, module in owner.named_modules()
    )


def _froze(scene: Scene, freezer: ExprAt, part: ExprAt) -> ExprAt | None:
    """The statement of the part's scope that set the flags: a loop, or a call of the function
    that holds it, for the module that the part belongs to."""
    slicer = scene.slicer
    body = part.scope.body
    if freezer.scope.body is body:
        outermost = _outermost(slicer, freezer)
        return outermost if outermost and _is_about(slicer, outermost, part) else None
    if freezer.scope.function is None:
        return None
    found = scene.index.calls_of(freezer.scope.function)
    calls = (slicer.at(source, call) for source, call in found)
    return next((c for c in calls if c.scope.body is body and _is_about(slicer, c, part)), None)


def _outermost(slicer: Slicer, spot: ExprAt) -> ExprAt | None:
    """The outermost loop around an expression in its scope, as the spot of what it goes through;
    the expression itself where there is none."""
    found = spot
    for node in slicer.index(spot.scope.source).ancestors(spot.node):
        if node is spot.scope.body:
            return found
        if isinstance(node, (ast.For, ast.AsyncFor)):
            found = spot.inside(node.iter)
    return None


def _is_about(slicer: Slicer, spot: ExprAt, part: ExprAt) -> bool:
    """Whether what was frozen (`model.parameters()`, `freeze(model)`, and the new `model` of
    `model = freeze(Tuned(lm))`) is what holds the part."""
    wholes = {ast.unparse(n) for n in _wholes(part.node)}
    meant: list[ast.AST] = [spot.node, *_given(slicer.statement(spot), spot.node)]
    for node in ast.walk(spot.node):
        meant += getattr(node, "elts", ())
        if isinstance(node, ast.Call):
            meant += [getattr(node.func, "value", node.func), *node.args]
    return any(ast.unparse(n) in wholes for n in meant)


def _given(statement: ast.stmt | None, value: ast.AST) -> list[ast.expr]:
    """The names that a statement gives to just this value."""
    whole = isinstance(statement, ast.Assign) and statement.value is value
    return statement.targets if whole and isinstance(statement, ast.Assign) else []


def _wholes(node: ast.AST) -> Iterator[ast.AST]:
    """`model.body` and `model` of `model.body.fc`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
        yield node
