"""The expressions by which a call of NumPy's gets tensors with a graph, and how each is taken out.

What is taken out may be the expression itself, each of its elements, or what a function that is
handed over returns.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import FunctionType, MethodType
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt, safe_lookup
from autograd_explain.inspect.dataflow.expression import Scope
from autograd_explain.inspect.dataflow.reaching_definitions import Body
from autograd_explain.inspect.dataflow.syntax import definition, returns
from autograd_explain.inspect.facts.called_back import names_on_the_way
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import bases, class_table, is_a, items, table_of
from autograd_explain.program import Source, called_name, is_of_package, last_name

from .containers import items_of

_DISPLAYS = (ast.List, ast.Tuple, ast.Set)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp)


class Of(Enum):
    """What of an expression is taken out of the graph."""

    ITSELF = "itself"
    EACH = "each"  #: all elements of a container
    EACH_VALUE = "each_value"  #: all values of a mapping
    RESULT = "result"  #: what the function returns to the library


@dataclass(frozen=True)
class Way:
    """How an expression is taken out of the graph: by a method of the tensors."""

    method: str
    of: Of = Of.ITSELF


#: A number of its own, a tensor of its own, an array.
NUMBER, DETACHED, ARRAY = Way("item"), Way("detach"), Way("detach().numpy")


@dataclass(frozen=True, eq=False)
class Read:
    """`container` is the name or attribute behind the expression of a container; `way` is None
    where no one way fits all of its elements."""

    spot: ExprAt
    way: Way | None
    value: Any = None
    container: ExprAt | None = None


def reads_of(
    scene: Scene, spot: ExprAt, given: Mapping[int, Any], asked: torch.Tensor, element: bool = False
) -> Iterator[Read]:
    """The reads inside one argument.  `given` are values known from the library's frame, `asked`
    the tensor that NumPy asked for; `element`: it stands inside a display."""
    node = spot.node
    if isinstance(node, _DISPLAYS):
        for part in node.elts:
            yield from reads_of(scene, spot.inside(part), given, asked, True)
    elif isinstance(node, _COMPREHENSIONS):
        made = spot.inside(node.elt)
        elements = items_of(given.get(id(node))) or []
        if any(v is asked for v in elements):
            yield Read(made, _of_elements(elements), asked, made)
        else:
            yield from reads_of(scene, made, given, asked, True)
    else:
        value = given.get(id(node), scene.slicer.value(_plain(spot)))
        yield from _of_value(scene, spot, value, asked, element)


def _of_value(
    scene: Scene, spot: ExprAt, value: Any, asked: torch.Tensor, element: bool
) -> Iterator[Read]:
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            yield Read(spot, _of_tensor(value, element), value)
    elif items_of(value) is not None:
        yield from _of_container(spot, value, _key(spot))
    elif value is safe_lookup.MISSING:
        yield from _of_unknown(scene, spot, asked, element)


def _of_elements(items: Sequence[Any]) -> Way | None:
    """How each of the elements is taken out; None where there are numbers or lists among them."""
    if not all(isinstance(v, torch.Tensor) for v in items):
        return None
    return NUMBER if all(_is_number(v) for v in items) else DETACHED


def _of_tensor(value: torch.Tensor, element: bool) -> Way:
    if not element:
        return ARRAY
    return NUMBER if value.dim() == 0 else DETACHED


def _of_container(spot: ExprAt, value: Any, container: ExprAt) -> Iterator[Read]:
    items = items_of(value) or []
    if not any(isinstance(v, torch.Tensor) and v.requires_grad for v in items):
        return
    way = _of_elements(items)
    of = Of.EACH_VALUE if isinstance(value, dict) else Of.EACH
    yield Read(spot, None if way is None else replace(way, of=of), value, container)


def _is_number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() == 0


def _of_unknown(scene: Scene, spot: ExprAt, asked: torch.Tensor, element: bool) -> Iterator[Read]:
    """An expression whose value nothing holds any more."""
    behind = _key(spot)
    if behind is not spot:
        value = scene.slicer.value(behind)
        if items_of(value) is not None:
            yield from _of_container(spot, list(items_of(value) or ()), behind)
            return
    if not scene.gradient_tracer.trace(_plain(spot)).carries:
        return
    if isinstance(spot.node, ast.Starred) or _is_display(scene, spot):
        yield Read(spot, replace(_of_tensor(asked, True), of=Of.EACH), [asked], spot)
    else:
        yield Read(spot, _of_tensor(asked, element), asked if element else None)


def _is_display(scene: Scene, spot: ExprAt) -> bool:
    """Whether the value was built as a list: `calib.coefficients`, `fit.weights()`."""
    makers = scene.slicer.makers(spot)
    kinds = (*_DISPLAYS, *_COMPREHENSIONS)
    return bool(makers) and all(isinstance(m.node, kinds) for m in makers)


def _plain(spot: ExprAt) -> ExprAt:
    node = spot.node
    return spot.inside(node.value) if isinstance(node, ast.Starred) else spot


def _key(spot: ExprAt) -> ExprAt:
    """The container behind `*xs`, `list(xs)`, `xs.values()`."""
    node = spot.node
    if isinstance(node, ast.Starred):
        return _key(spot.inside(node.value))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        if node.func.id in ("list", "tuple", "sorted"):
            return _key(spot.inside(node.args[0]))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        if node.func.attr in ("values", "copy"):
            return spot.inside(node.func.value)
    return spot


# -- what the user's function returned to the library ----------------------------------------


def returned(scene: Scene, at: ExprAt, asked: torch.Tensor) -> Iterator[Read]:
    """The result of a function that the call was given, or was made of: `np.vectorize(f)(xs)`."""
    for node in ast.walk(at.node):
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Lambda)):
            continue
        scope = _function(scene, at.inside(node))
        results = (
            [ExprAt(scope, value) for value in returns(scope.body)] if scope is not None else []
        )
        if any(scene.gradient_tracer.trace(r).carries for r in results):
            way = _of_tensor(asked, True)
            if _used_elsewhere(scene, node):
                yield Read(at.inside(node), replace(way, of=Of.RESULT), asked)
            else:
                yield from (Read(r, way, asked) for r in results)
            return


def handed_back(scene: Scene, asked: torch.Tensor) -> Iterator[Read]:
    """What a method of the user's returned that only a package calls, or that the library's source
    calls for what failed: the one attribute that is the tensor and was computed there, else the one
    value that ends with the operation which made it; nothing where several may be it.  The values
    like it that the package asks other methods of the class for would fail next."""
    called = {called_name(n) for _, n in scene.index.nodes(ast.Call)}
    near = names_on_the_way(scene)
    kept: list[ExprAt] = []
    found: list[tuple[str, type, ExprAt]] = []
    owners: dict[type, object] = {}
    for source, function in scene.index.nodes(ast.FunctionDef):
        kind = _subclass(scene, source, function)
        if kind is None:
            continue
        if kind not in owners:
            owners[kind] = _owner(kind, asked)
        kept += _own_attribute(scene, owners[kind], function, asked)
        spots = _returned_by(scene, source, function, owners[kind])
        named = function.name in near or _asked_by_package(kind, function.name)
        found += [(function.name, kind, s) for s in spots if _is_made_by(scene, s, asked, named)]
    likely = [f for f in found if f[0] in near] or [f for f in found if f[0] not in called]
    if kept or len(likely) != 1:
        yield from (Read(spot, DETACHED, asked) for spot in kept if len(kept) == 1)
        return
    _, owner, first = likely[0]
    yield Read(first, DETACHED, asked)
    for name, kind, spot in found:
        if spot is not first and kind is owner and _asked_by_package(kind, name):
            yield Read(spot, DETACHED)


def _is_made_by(scene: Scene, spot: ExprAt, asked: torch.Tensor, named: bool) -> bool:
    """Whether a value ends with the operation that made a tensor; of a method that the library is
    known to call also, whether it has a graph where no operation's name tells (`net(x) + 1`)."""
    made = "" if asked.grad_fn is None else asked.grad_fn.name().lower()
    ends = [m.called for m in scene.slicer.makers(spot)]
    if any(e and made.startswith(f"{e}backward") for e in ends):
        return True
    told = any(e and hasattr(torch.Tensor, e) for e in ends)
    return named and not told and scene.gradient_tracer.trace(spot).carries


def _returned_by(
    scene: Scene, source: Source, function: ast.FunctionDef, owner: object
) -> list[ExprAt]:
    """What a method returns, the elements of a tuple one by one, where it can as that of an
    object that lives."""
    method = class_table(type(owner)).get(function.name)
    bound = MethodType(method, owner) if isinstance(method, FunctionType) else None
    entered = None if bound is None else scene.slicer.entry(bound)
    if entered is not None and entered.source is source:
        return [ExprAt(entered, part) for part in _returned_parts(entered.body)]
    return [scene.slicer.at(source, part) for part in _returned_parts(function)]


def _asked_by_package(kind: type, name: str) -> bool:
    """Whether a method stands for one of a package's class, which that package calls."""
    return any(name in class_table(b) and is_of_package(b) for b in bases(kind))


def _owner(kind: type, asked: torch.Tensor) -> object:
    """The first object of a class that has the tensor as an attribute, else the first at all."""
    living = [owner for owner in gc.get_referrers(kind) if type(owner) is kind]
    having = (o for o in living if any(v is asked for _, v in items(table_of(o))))
    return next(having, next(iter(living), None))


def _own_attribute(
    scene: Scene, owner: object, function: ast.FunctionDef, asked: torch.Tensor
) -> Iterator[ExprAt]:
    """`self.state` of what a method of the object that has the tensor there returns, where the
    method itself computes it of what has a graph."""
    method = class_table(type(owner)).get(function.name)
    if owner is None or not isinstance(method, FunctionType):
        return
    entered = scene.slicer.entry(MethodType(method, owner))
    if entered is None:
        return
    attributes = {name for name, value in items(table_of(owner)) if value is asked}
    for part in _returned_parts(entered.body):
        if isinstance(part, ast.Attribute) and part.attr in attributes:
            spot = ExprAt(entered, part)
            if any(scene.gradient_tracer.trace(m).carries for m in scene.slicer.makers(spot)):
                yield spot


def _returned_parts(body: Body) -> list[ast.expr]:
    """What a function returns, the elements of a tuple one by one."""
    found = returns(body)
    return [p for v in found for p in (v.elts if isinstance(v, ast.Tuple) else [v])]


def _subclass(scene: Scene, source: Source, function: ast.FunctionDef) -> type | None:
    """The class of the program that this is a method of, if it inherits, and not from a module:
    what that returns is trained."""
    outer = source.parents.get(function)
    if not isinstance(outer, ast.ClassDef) or not outer.bases:
        return None
    kind = scene.slicer.value(scene.slicer.at(source, ast.Name(outer.name, ast.Load())))
    return kind if is_a(kind, type) and not issubclass(kind, torch.nn.Module) else None


def _function(scene: Scene, spot: ExprAt) -> Scope | None:
    """The scope of a function of the user's that is handed on without being called."""
    if isinstance(spot.node, ast.Lambda):
        return replace(spot.scope, body=spot.node, call=None)
    value = scene.slicer.value(spot)
    function = getattr(value, "__func__", value)
    if not safe_lookup.is_function(function):
        return None
    source = scene.program.source_of(function.__code__)
    found = None if source is None else definition(source, function.__code__)
    if found is None:
        return None
    return Scope(*found, {}, None, getattr(value, "__self__", safe_lookup.MISSING))


def _used_elsewhere(scene: Scene, node: ast.expr) -> bool:
    """Whether a function has further users, who need what it returns as it is."""
    if isinstance(node, ast.Lambda):
        return False
    name = last_name(node)
    uses = [
        n
        for _, n in scene.index.nodes(ast.expr)
        if getattr(n, "attr", getattr(n, "id", None)) == name
        and isinstance(getattr(n, "ctx", None), ast.Load)
    ]
    return len(uses) > 1
