"""The method that takes back what another one of the same objects does."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from contextlib import suppress

from ...isolation.type_checks import class_attribute
from ...model import Place
from ...program import is_installed
from ..scene import Scene

_PAIRS = (("disable", "enable"), ("enable", "disable"))


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


def never_taken_back(scene: Scene) -> tuple[Place, str] | None:
    """The call of a library's method that sets `requires_grad` and that no call of the opposite
    one, with the same arguments, takes back, and that method: the newest such call."""
    made = {ast.unparse(node) for _, node in scene.index.nodes(ast.Call)}
    for source, node in scene.index.nodes(ast.Expr, newest_first=True):
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if not _sets_flags(scene, call.func.attr):
            continue
        place = source.place(node.lineno, None, node)
        other = opposite_method(scene, place)
        back = ast.Call(ast.Attribute(call.func.value, other), call.args, call.keywords)
        if other and ast.unparse(back) not in made:
            return place, other
    return None


def _sets_flags(scene: Scene, method: str) -> bool:
    """Whether a method of a module of the program is a library's and sets `requires_grad`."""
    kinds = {type(module) for _, module in scene.names.held_modules}
    for function in {class_attribute(kind, method) for kind in kinds}:
        inner = inspect.unwrap(function) if isinstance(function, types.FunctionType) else None
        if isinstance(inner, types.FunctionType) and is_installed(inner.__code__.co_filename):
            with suppress(OSError, TypeError):
                if ".requires_grad = " in inspect.getsource(inner):
                    return True
    return False


def _opposites(method: str) -> Iterator[str]:
    yield f"un{method}"
    if method == "eval":
        yield "train"
    for one, other in _PAIRS:
        if one in method:
            yield method.replace(one, other, 1)
