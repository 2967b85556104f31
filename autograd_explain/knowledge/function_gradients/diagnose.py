"""`backward` of a custom Function returns too many, too few or other values than gradients,
or mixes dtypes."""

import ast
from dataclasses import dataclass
from enum import Enum

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.facts.finding_from_message import At, finding_from_message
from autograd_explain.inspect.facts.user_definitions import (
    function_names,
    function_of_node,
    functions,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact

from .dtypes import function_running, mixed
from .ignored import ignored, incoming, inputs_of

#: What kernels say of operands of several dtypes; found-dtype is a loss's too.
_OF_DTYPES = ("found-dtype", "backward-dtype-")

PATTERNS = (
    "gradient-ignored",
    "function-takes-too-few-gradients",
    "function-wrong-number-of-gradients",
    "function-gradient-for-non-tensor",
    "function-returns-non-tensor-gradient",
    "invalid-number-of-gradients",
    "found-dtype",
    "backward-dtype-matmul",
    "backward-dtype-addmm",
    "backward-dtype-scalar-type",
    "backward-dtype-addmv",
    "backward-dtype-dot",
    "backward-dtype-batched",
    "backward-dtype-tensordot",
    "backward-dtype-index-put",
    "backward-dtype-index-add",
    "backward-dtype-scatter",
    "backward-dtype-result-type",
    "backward-dtype-lerp",
    "backward-dtype-solve",
)

EXAMPLE = {
    "function": "Clamp",
    "returned": "grad * inside",
    "inputs": "x, low, high",
    "expected": "3",
    "count": "1",
    "index": "",
    "type": "",
    "unneeded": "1 2",
    "operand": "",
    "dtype": "",
    "like": "",
    "wanted": "",
    "gradient": "",
    "input": "",
}

VARIANTS = {
    "function-wrong-number-of-gradients": "number",
    "function-gradient-for-non-tensor": "plain",
    "function-returns-non-tensor-gradient": "type",
}


class Why(Enum):
    """What is wrong with the returned values; also the variant of the texts."""

    NUMBER = "number"
    PLAIN = "plain"
    TYPE = "type"
    DTYPE = "dtype"
    DTYPES = "dtypes"
    IGNORED = "ignored"
    MISSING = "missing"
    PARTLY = "partly"
    TAKEN = "taken"
    UNKNOWN = ""


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    why: Why
    expected: int
    count: int
    index: int
    unneeded: frozenset[int]  #: the inputs that need no gradient
    like: str = ""  #: the tensor whose dtype the operand should have
    gradient: str = ""  #: the one that comes in, where times it is what is meant
    places: tuple[Place, ...] = ()  #: the returned values that should be times it
    input: str = ""  #: the one that is owed a gradient and gets none
    tensors: frozenset[str] = frozenset()  #: the inputs that are known to be tensors
    more: tuple[str, ...] = ()  #: what backward may call the gradients that it does not take
    used: bool = False  #: whether something of the loss was computed of one of their outputs


def diagnose(scene: Scene) -> Finding[Details] | None:
    if scene.match.pattern == "gradient-ignored":
        return _of_ignored(scene)
    if scene.match.pattern == "function-takes-too-few-gradients":
        return _of_taken(scene)
    return _of_dtypes(scene) if scene.match.pattern.startswith(_OF_DTYPES) else _of_values(scene)


def _of_dtypes(scene: Scene) -> Finding[Details] | None:
    cls = function_running(scene)
    if cls is None:
        return None
    found = mixed(scene)
    facts = {"function": cls.__name__, "dtype": "", "wanted": "", "type": "", "expected": ""}
    if found is not None:
        facts |= {"operand": found.operand.text, "like": found.like}
        facts |= {"dtype": found.dtype, "wanted": found.wanted}
    told = finding_from_message(
        scene,
        "function_gradients",
        EXAMPLE,
        facts=facts,
        at=At.FAILING if found is None else found.operand,
        confidence=Confidence.LIKELY if found is None else Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, function_names(scene, cls)),),
        variant=Why.DTYPE.value if found is not None else Why.DTYPES.value,
    )
    like = "" if found is None else found.like
    return told.with_details(Details(Why(told.variant), 0, 0, 0, frozenset(), like))


def _of_ignored(scene: Scene) -> Finding[Details] | None:
    """A backward that hands back the same whatever comes in, or nothing, as running it has
    shown."""
    found = ignored(scene)
    if found is None:
        return None
    why = Why.MISSING if found.missing else Why.IGNORED
    why = Why.PARTLY if found.partly else why
    return Finding(
        cause="function_gradients",
        confidence=Confidence.PROVEN,
        facts={
            **dict.fromkeys(EXAMPLE, ""),
            "function": found.function,
            "inputs": ", ".join(found.inputs),
            "input": found.input,
            "returned": found.returned,
            "gradient": found.gradient,
        },
        tensors=(TensorFact(Role.CULPRIT, found.names),),
        events=found.events,
        variant=why.value,
        details=Details(
            why,
            0,
            0,
            0,
            frozenset(),
            gradient=found.factor,
            places=found.places,
            input=found.input,
        ),
    )


def _of_taken(scene: Scene) -> Finding[Details] | None:
    """A backward that takes fewer gradients than forward has outputs; of another class's method of
    the name `backward` nothing is said."""
    cls = function_of_node(scene, scene.match.captures["function"].split(".")[-1] + "Backward")
    backward = scene.index.method(cls, "backward")
    if cls is None or backward is None or not isinstance(backward.node, ast.FunctionDef):
        return None
    count, expected = (int(scene.match.captures[n]) - 1 for n in ("taken", "given"))
    taken = positional_parameters(backward.node)
    node = _node(scene, cls)
    edges = (e for n in scene.graph.nodes for e in getattr(n.node, "next_functions", ()))
    more = [f"grad_{n}" for n in _outputs(scene, cls, expected)[count:]]
    return finding_from_message(
        scene,
        "function_gradients",
        EXAMPLE,
        facts={
            "function": cls.__name__,
            "count": str(count),
            "expected": str(expected),
            "gradient": ", ".join(taken[1:]),
        },
        at=backward.at(backward.node.args.args[-1]),
        confidence=Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, function_names(scene, cls)),),
        variant=Why.TAKEN.value,
    ).with_details(
        Details(
            Why.TAKEN,
            expected,
            count,
            0,
            frozenset(),
            more=() if {*more} & {*taken} else tuple(more),
            used=any(to is node and number >= count for to, number in edges),
        )
    )


def _outputs(scene: Scene, cls: type, count: int) -> list[str]:
    """What `forward` calls what it returns; of what has no name its number."""
    forward = scene.index.method(cls, "forward")
    returned = () if forward is None else forward.returned
    last = returned[-1] if returned else None
    named = last.elts if isinstance(last, ast.Tuple) and len(last.elts) == count else [None] * count
    return [n.id if isinstance(n, ast.Name) else str(i) for i, n in enumerate(named)]


def _of_values(scene: Scene) -> Finding[Details]:
    cls = _function(scene)
    backward = scene.index.method(cls, "backward")
    returned = () if backward is None else backward.returned
    at = backward.at(returned[0]) if backward is not None and len(returned) == 1 else None
    unneeded = _unneeded(scene, cls)
    told = finding_from_message(
        scene,
        "function_gradients",
        EXAMPLE,
        VARIANTS,
        facts={
            "function": "" if cls is None else cls.__name__,
            "returned": ast.unparse(returned[0]) if at is not None else "",
            "inputs": ", ".join(_inputs(scene, cls)),
            "unneeded": " ".join(map(str, unneeded)),
        },
        at=at,
        confidence=Confidence.PROVEN if at is not None else Confidence.LIKELY,
        tensors=() if cls is None else (TensorFact(Role.CULPRIT, function_names(scene, cls)),),
    )
    expected, count, index = (int(told.facts[n] or 0) for n in ("expected", "count", "index"))
    why, inputs = Why(told.variant), _inputs(scene, cls)
    function = None if at is None or backward is None else backward.node
    owed = [n for n in range(count, expected) if n not in unneeded]
    return told.with_details(
        Details(
            why,
            expected,
            count,
            index,
            frozenset(unneeded),
            gradient=incoming(function) if isinstance(function, ast.FunctionDef) else "",
            input=inputs[owed[0]] if len(owed) == 1 and owed[0] < len(inputs) else "",
            tensors=_tensors(scene, cls, inputs),
        )
    )


def _function(scene: Scene) -> type | None:
    name = scene.match.captures.get("function", "")
    if name:
        return function_of_node(scene, name)
    known = functions(scene)
    return known[0] if len(known) == 1 else None


def _inputs(scene: Scene, cls: type | None) -> list[str]:
    """The parameters of `forward` without `ctx`, which it has where `setup_context` is not."""
    forward = scene.index.method(cls, "forward")
    if forward is None or isinstance(forward.node, ast.Lambda):
        return []
    return inputs_of(forward.node, "setup_context" in vars(cls))


def _unneeded(scene: Scene, cls: type | None) -> list[int]:
    """The numbers of the inputs that need no gradient, as the live node's context says."""
    needs = getattr(_node(scene, cls), "needs_input_grad", ())
    return [number for number, needed in enumerate(needs) if not needed]


def _tensors(scene: Scene, cls: type | None, inputs: list[str]) -> frozenset[str]:
    """The inputs that are tensors for sure: those that need a gradient, or all where the node has
    an edge, be it an empty one, for each."""
    node = _node(scene, cls)
    needs = getattr(node, "needs_input_grad", ())
    every = len(getattr(node, "next_functions", ())) == len(needs)
    pairs = zip(inputs, needs, strict=False)
    return frozenset(name for name, needed in pairs if needed or every)


def _node(scene: Scene, cls: type | None) -> object:
    nodes = (n.node for n in scene.graph.nodes)
    return next((n for n in nodes if cls is not None and _forward_class(n) is cls), None)


def _forward_class(node: object) -> object:
    return getattr(type(node), "_forward_cls", None)
