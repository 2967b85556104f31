"""The method that takes back what another one of the same objects does."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass

from ...isolation.type_checks import class_attribute
from ...model import Place
from ...program import Source, called_name, is_installed
from ..live.class_source import function_node
from ..scene import Scene

_CALLS = 2  #: that a method leaves the setting of flags to
_PAIRS = (("disable", "enable"), ("enable", "disable"))


@dataclass(frozen=True)
class _OneWay:
    """A call of a library's method that no call of the opposite one takes back."""

    source: Source
    node: ast.Expr
    method: str
    functions: tuple[types.FunctionType, ...]  #: the packages' methods of that name
    place: Place
    opposite: str


def opposite_method(scene: Scene, place: Place) -> str:
    """`untoggle_optimizer` for a statement that calls `toggle_optimizer`, `train` for `eval`,
    where the modules that have the one method have the other too; "" otherwise."""
    called = scene.program.statement_at(place)
    call = called.value if isinstance(called, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    if not isinstance(method, ast.Attribute):
        return ""
    kinds = {type(module) for _, module in scene.names.held_modules}
    owners = [kind for kind in kinds if class_attribute(kind, method.attr) is not None]
    for other in _opposites(method.attr) if owners else ():
        if all(class_attribute(kind, other) is not None for kind in owners):
            return other
    return ""


def flags_not_taken_back(scene: Scene) -> tuple[Place, str] | None:
    """The call of a library's method that sets `requires_grad` and that no call of the opposite
    one, with the same arguments, takes back, and that method: the newest such call."""
    found = (one for one in _one_way(scene) if any(map(_sets_flags, one.functions)))
    return next(((one.place, one.opposite) for one in found), None)


def switch_not_taken_back(scene: Scene) -> tuple[Place, str] | None:
    """As `flags_not_taken_back`, for any method with an `un…` beside it, which may have run before
    what failed."""
    found = (one for one in _one_way(scene) if one.opposite == f"un{one.method}")
    came_first = (one for one in found if _came_first(scene, one.source, one.node))
    return next(((one.place, one.opposite) for one in came_first), None)


def flags_set_before(scene: Scene) -> Place | None:
    """The newest call of a library's method that sets `requires_grad`, which may have run before
    what failed."""
    for source, node, _, functions in _statements(scene):
        if _leads_to_flags(scene, functions, _CALLS) and _came_first(scene, source, node):
            return source.place(node.lineno, None, node)
    return None


def _one_way(scene: Scene) -> Iterator[_OneWay]:
    """All of them, the newest first."""
    made = {ast.unparse(node) for _, node in scene.index.nodes(ast.Call)}
    for source, node, method, functions in _statements(scene):
        place = source.place(node.lineno, None, node)
        other, call = opposite_method(scene, place), node.value
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        back = ast.Call(ast.Attribute(call.func.value, other), call.args, call.keywords)
        if other and ast.unparse(back) not in made:
            yield _OneWay(source, node, method, functions, place, other)


def _statements(
    scene: Scene,
) -> Iterator[tuple[Source, ast.Expr, str, tuple[types.FunctionType, ...]]]:
    """The statements that call a method which packages define, the newest first, with its name and
    the packages' functions."""
    for source, node in scene.index.nodes(ast.Expr, newest_first=True):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            functions = tuple(_of_packages(scene, call.func.attr))
            if functions:
                yield source, node, call.func.attr, functions


def _of_packages(scene: Scene, method: str) -> Iterator[types.FunctionType]:
    """The methods of this name that modules of the program have of a package, not of their own or
    of torch's base class."""
    kinds = {type(module) for _, module in scene.names.held_modules}
    for function in {class_attribute(kind, method) for kind in kinds}:
        inner = inspect.unwrap(function) if isinstance(function, types.FunctionType) else None
        if isinstance(inner, types.FunctionType) and is_installed(inner.__code__.co_filename):
            yield inner


def _leads_to_flags(scene: Scene, functions: tuple[types.FunctionType, ...], calls: int) -> bool:
    """Whether one of these methods sets flags, or calls one by a name that packages' modules have
    for a method that does."""
    if any(map(_sets_flags, functions)):
        return True
    texts = (function_node(f) for f in functions if calls)
    nodes = (n for text in texts if text is not None for n in ast.walk(text))
    functions_called = (n.func for n in nodes if isinstance(n, ast.Call))
    names = {f.attr for f in functions_called if isinstance(f, ast.Attribute)}
    named = (tuple(_of_packages(scene, name)) for name in sorted(names))
    return any(_leads_to_flags(scene, found, calls - 1) for found in named if found)


def _sets_flags(method: types.FunctionType) -> bool:
    """Whether a method sets the attribute, or calls what is named after that."""
    text = function_node(method)
    nodes = () if text is None else ast.walk(text)
    return any(
        any(getattr(t, "attr", "") == "requires_grad" for t in n.targets)
        if isinstance(n, ast.Assign)
        else isinstance(n, ast.Call) and "requires_grad" in (called_name(n) or "")
        for n in nodes
    )


def _came_first(scene: Scene, source: Source, node: ast.stmt) -> bool:
    """Whether a statement, or a call of the function that it stands in, may have run before what
    failed."""
    function, own = source.function_around(node), _is_before(scene, source, node)
    calls = () if function is None else tuple(scene.index.calls_of(function.name))
    return any(_is_before(scene, *c) is not False for c in calls) if own is None else own


def _is_before(scene: Scene, source: Source, node: ast.expr | ast.stmt) -> bool | None:
    """Whether a node stands before what failed in one function, or in a loop around both; None
    where nothing failed there."""
    function = source.function_around(node)
    for place in scene.path:
        if scene.program.source_at(place) is source and source.function_at(place) is function:
            loops = (n for n in source.around(node) if isinstance(n, (ast.For, ast.While)))
            failed = place.line - source.offset
            again = any(n.lineno <= failed <= (n.end_lineno or 0) for n in loops)
            return again or node.lineno <= failed
    return None


def _opposites(method: str) -> Iterator[str]:
    yield f"un{method}"
    if method == "eval":
        yield "train"
    for one, other in _PAIRS:
        if one in method:
            yield method.replace(one, other, 1)
