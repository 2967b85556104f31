"""A backward formula gave a gradient that does not fit its input."""

import ast
import re
from dataclasses import dataclass, replace
from itertools import combinations
from types import ModuleType

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.reaching_definitions import constant_of
from autograd_explain.inspect.dataflow.syntax import is_none
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact

from .function_inputs import Lies, is_operand, known_as, lies, read_once, stands_for

PATTERNS = ("invalid-gradient-shape", "invalid-gradient-device")

EXAMPLE = {
    "place": "In[1]:13",
    "function": "Project",
    "index": "1",
    "input": "weight",
    "got": "[3, 2]",
    "expected": "[2, 3]",
    "value": "x.t() @ grad",
}


Owner = tuple[ExprAt, ast.ClassDef]


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    transposed: bool = False  #: two sizes in reverse order
    reshaped: str = ""  #: the shape to give the gradient, which differs in dimensions of size 1
    squeezed: bool = False  #: that dimension was squeezed away last
    summed: tuple[int, ...] = ()  #: dimensions of the gradient that the input does not have
    reduced: tuple[Place, ...] = ()  #: the calls that sum over others than those
    like: str = ""  #: the input, by its name in `backward`
    size: str = ""  #: the input's shape, as backward can write it
    at: Place | None = None  #: the expression to change


def diagnose(scene: Scene) -> Finding[Details] | None:
    captures = scene.match.captures
    op = captures.get("op", "")
    index = int(captures.get("index", "0") or 0)
    got = captures.get("shape", captures.get("device", ""))
    cls = _function_class(scene, op.removesuffix("Backward"))
    value = None if cls is None else _returned(scene, *cls, index)
    return finding_from_message(
        scene,
        "gradient_of_wrong_shape",
        EXAMPLE,
        facts={
            "function": op.removesuffix("Backward") if cls is not None else op,
            "index": str(index),
            "input": "" if cls is None else _input(cls[1], index),
            "got": got,
            "expected": captures.get("expected", ""),
            "value": "" if value is None else value.text,
        },
        at=None if cls is None or value is None else _computed(cls[1], value),
        variant=_variant(scene, cls is not None),
        confidence=Confidence.PROVEN if value is not None else Confidence.LIKELY,
        tensors=(TensorFact(Role.CULPRIT, (_input(cls[1], index) if cls is not None else op,)),),
    ).with_details(_details(scene, cls, value, index))


def _details(scene: Scene, cls: Owner | None, value: ExprAt | None, index: int) -> Details:
    got, expected = (scene.match.captures.get(key, "") for key in ("shape", "expected"))
    if value is None or cls is None or not (got and expected):
        return Details()
    at = scene.place_at(_to_change(cls[1], value))
    if _is_reverse(got, expected):
        return Details(transposed=True, at=at)
    like = _like(cls[1], index)
    has, wants = _sizes(got), _sizes(expected)
    if [n for n in has if n != 1] == [n for n in wants if n != 1]:
        return _with_ones(scene, cls[1], value, (has, wants), Details(like=like, at=at))
    reduced = _reduction(scene, value)
    at_axis = _lies(cls[1], index)
    if at_axis is not None and reduced is not None:
        dims = at_axis.others(_rank(reduced, has) or at_axis.of)
        return Details(summed=dims, reduced=_alike(scene, cls, at_axis, reduced))
    if at_axis is not None and has[at_axis.axis :][:1] == wants:
        return Details(summed=at_axis.others(len(has)), at=at)
    place = None if reduced is None else scene.place_at(reduced)
    size = f"{like}.shape" if like else _trailing(cls[1], index, reduced, wants)
    if place is not None and size:
        return Details(reduced=(place,), size=size)
    return Details(summed=_missing(has, wants), at=at)


def _with_ones(
    scene: Scene,
    cls: ast.ClassDef,
    value: ExprAt,
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
    known: Details,
) -> Details:
    """How the gradient gets its dimensions of size 1 back; the sizes themselves are those of this
    call alone."""
    if known.like:
        return replace(known, reshaped=f"{known.like}.shape")
    made = _computed(cls, value)
    alone = made is value or read_once(_method(cls, "backward"), value.node)
    if alone and _is_method_call(scene, made, "squeeze") and _is_squeezed(made, *sizes):
        return Details(squeezed=True, at=scene.place_at(made))
    return replace(known, reshaped="-1" if len(sizes[1]) == 1 else "")


def _is_squeezed(made: ExprAt, got: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Whether `x` of `x.squeeze(0)` has the expected sizes."""
    dim = made.argument(0, "dim")
    at = None if dim is None else constant_of(dim.node)
    if not isinstance(at, int):
        return False
    at = at if at >= 0 else len(expected) + at
    return (*got[:at], 1, *got[at:]) == expected


def _computed(cls: ast.ClassDef, value: ExprAt) -> ExprAt:
    """What surely computed the value that is returned; the value itself where that is not known."""
    made = [node for node in stands_for(_method(cls, "backward"), value.node) if not is_none(node)]
    return value.inside(made[0]) if len(made) == 1 and made[0] is not value.node else value


def _to_change(cls: ast.ClassDef, value: ExprAt) -> ExprAt | None:
    """The value that is returned; what computed it where it may be None instead."""
    backward = _method(cls, "backward")
    if not any(is_none(node) for node in stands_for(backward, value.node)):
        return value
    made = _computed(cls, value)
    return made if made is not value and read_once(backward, value.node) else None


def _sizes(shape: str) -> tuple[int, ...]:
    """Of a shape as torch writes it."""
    return tuple(map(int, re.findall(r"\d+", shape)))


def _reduction(scene: Scene, value: ExprAt) -> ExprAt | None:
    """`(grad * y).sum(dim=-1)` that the value is, where it is not None."""
    makers = [m for m in scene.slicer.makers(value) if not is_none(m.node)]
    call = makers[0] if len(makers) == 1 else None
    return call if call is not None and _is_method_call(scene, call, "sum") else None


def _is_method_call(scene: Scene, call: ExprAt, name: str) -> bool:
    """`x.sum(…)`, not `torch.sum(x, …)`."""
    owner = call.receiver if call.called == name else None
    return owner is not None and not is_a(scene.slicer.value(owner), ModuleType)


def _rank(reduced: ExprAt, result: tuple[int, ...]) -> int:
    """The number of dimensions of `x` in `x.sum(dim=(0, 2))`; 0 where that is not known."""
    dim = reduced.argument(0, "dim")
    named = getattr(dim and dim.node, "elts", [dim and dim.node])
    constant = all(n is not None and constant_of(n) is not None for n in named)
    return len(result) + len(named) if constant and reduced.argument(1, "keepdim") is None else 0


def _alike(scene: Scene, cls: Owner, at_axis: Lies, reduced: ExprAt) -> tuple[Place, ...]:
    """The reduction, and those of the other inputs that forward broadcasts in the same way."""
    found = [reduced]
    for index in range(len(_inputs(cls[1]))):
        value = _returned(scene, *cls, index) if _lies(cls[1], index) == at_axis else None
        call = None if value is None else _reduction(scene, value)
        found += [] if call is None else [call]
    return tuple(dict.fromkeys(place for call in found if (place := scene.place_at(call))))


def _missing(got: tuple[int, ...], expected: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions without which `got` is `expected`; () where that is not told apart."""
    kept = [
        dims
        for dims in combinations(range(len(got)), len(expected))
        if expected and tuple(got[d] for d in dims) == expected
    ]
    if len(kept) != 1 or len(got) == len(expected):
        return ()
    return tuple(d for d in range(len(got)) if d not in kept[0])


def _is_reverse(got: str, expected: str) -> bool:
    """Of two shapes as torch writes them."""
    sizes = re.findall(r"\d+", got)
    return len(sizes) == 2 and sizes == re.findall(r"\d+", expected)[::-1]


def _variant(scene: Scene, custom: bool) -> str:
    if scene.match.pattern == "invalid-gradient-device":
        return "device"
    return "" if custom else "builtin"


def _function_class(scene: Scene, name: str) -> Owner | None:
    """The user's `autograd.Function` of that name."""
    for source, node in scene.index.classes(name):
        backward = _method(node, "backward")
        if backward is not None:
            scope = scene.slicer.scope_of(source, backward)
            return ExprAt(scope, ast.Name("backward")), node
    return None


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    found = (n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == name)
    return next(found, None)


def _input(cls: ast.ClassDef, index: int) -> str:
    """The name of forward's input."""
    names = _inputs(cls)
    return names[index] if index < len(names) else ""


def _inputs(cls: ast.ClassDef) -> list[str]:
    """Those of forward; `ctx` stands before them."""
    forward = _method(cls, "forward")
    names = [] if forward is None else positional_parameters(forward)
    return names[1 if _method(cls, "setup_context") is None else 0 :]


def _like(cls: ast.ClassDef, index: int) -> str:
    """The input, by its name in `backward`."""
    saves, backward = (
        _method(cls, "setup_context") or _method(cls, "forward"),
        _method(cls, "backward"),
    )
    return known_as(saves, backward, _input(cls, index)) if saves and backward else ""


def _lies(cls: ast.ClassDef, index: int) -> Lies | None:
    forward = _method(cls, "forward")
    return None if forward is None else lies(forward, _input(cls, index))


def _trailing(cls: ast.ClassDef, index: int, reduced: ExprAt | None, wants: tuple[int, ...]) -> str:
    """`grad_x.shape[-1:]` of `grad_x.sum(…)`, where forward broadcasts the input as it is."""
    forward, owner = _method(cls, "forward"), reduced and reduced.receiver
    if forward is None or owner is None or not isinstance(owner.node, ast.Name) or 1 in wants:
        return ""
    plain = wants and is_operand(forward, _input(cls, index))
    return f"{owner.text}.shape[-{len(wants)}:]" if plain else ""


def _returned(scene: Scene, at: ExprAt, cls: ast.ClassDef, index: int) -> ExprAt | None:
    """The expression that backward returns for this input."""
    backward = _method(cls, "backward")
    returns = [n for n in ast.walk(backward) if isinstance(n, ast.Return)] if backward else []
    if len(returns) != 1 or returns[0].value is None:
        return None
    value = returns[0].value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return ExprAt(at.scope, parts[index]) if index < len(parts) else None
