"""A second derivative that is not available."""

from __future__ import annotations

import ast

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.no_graph import find
from autograd_explain.inspect.facts.torch_call import (
    backward_roots,
    calls_in,
    failing_call,
    handed_on,
)
from autograd_explain.inspect.facts.value_names import stored_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact

from .kept import Kept, kept_constant
from .kernel import Kernel, backward_of_kernel, derivative_names

PATTERNS = (
    "once-differentiable-twice",
    "compile-double-backward",
    "cudnn-rnn-double-backward",
    "max-pool-double",
    "scatter-double-backward",
    "no-grad-fn",
    "gradient-ignored",
    "composite-derivative-not-implemented",
    "unused-input",
)

EXAMPLE = {"function": "Bend", "kept": "", "where": "", "ran": ""}

VARIANTS = {
    "once-differentiable-twice": "once",
    "compile-double-backward": "compiled",
    "cudnn-rnn-double-backward": "cudnn",
    "scatter-double-backward": "zeros",
    "no-grad-fn": "once",
    "unused-input": "once",
}


def diagnose(scene: Scene) -> Finding[Kept | Kernel | None] | None:
    if scene.match.pattern == "gradient-ignored":
        return kept_constant(scene)
    if scene.match.pattern == "composite-derivative-not-implemented":
        return backward_of_kernel(scene, EXAMPLE)
    if scene.match.pattern == "no-grad-fn" and not _is_derivative(scene):
        return None
    if scene.match.pattern == "unused-input" and not scene.graph.ends_early:
        return None
    once = VARIANTS.get(scene.match.pattern) == "once"
    functions = _once_differentiable(scene) if once else {}
    if scene.match.pattern == "no-grad-fn" and not functions:
        return None
    name, place = next(iter(functions.items())) if len(functions) == 1 else ("", None)
    return finding_from_message(
        scene,
        "no_second_derivative",
        EXAMPLE,
        VARIANTS,
        facts={"function": name},
        at=place,
        variant="named" if name else None,
        confidence=Confidence.LIKELY,
        tensors=_asked(scene) or _tensors(scene, name) if once else (),
    )


def _asked(scene: Scene) -> tuple[TensorFact, ...]:
    """What a derivative is asked of that is one already, in the words of who asks."""
    call = failing_call(scene, "grad") if scene.match.pattern == "unused-input" else None
    given = None if call is None else call.argument(1, "inputs")
    roots = () if given is None else handed_on(scene, backward_roots(scene), given)[0]
    names = tuple(r.text for r in roots if isinstance(r.node, ast.Name))
    return (TensorFact(Role.CULPRIT, names[:1]),) if names else ()


def _tensors(scene: Scene, function: str) -> tuple[TensorFact, ...]:
    """What the program calls the one derivative that it takes with `create_graph=True`, and what it
    gets of the one call of the Function."""
    calls = [c for c in calls_in(scene, "grad") if _creates_graph(c)]
    applied = [
        scene.slicer.at(source, call)
        for source, call in scene.index.nodes(ast.Call, naming=("apply",))
        if ast.unparse(call.func).split(".")[-2:] == [function, "apply"]
    ]
    derivative = derivative_names(scene, calls[0]) if len(calls) == 1 else ()
    result = stored_names(scene, applied[0]) if len(applied) == 1 else ()
    return tuple(TensorFact(Role.CULPRIT, names) for names in (derivative, result) if names)


def _creates_graph(call: ExprAt) -> bool:
    given = call.node.keywords if isinstance(call.node, ast.Call) else []
    said = next((k.value for k in given if k.arg == "create_graph"), None)
    return isinstance(said, ast.Constant) and said.value is True


def _is_derivative(scene: Scene) -> bool:
    """Whether what has no graph is a derivative taken with `create_graph=True`: a backward that was
    given nothing that requires grad leaves it without one, in place of an error."""
    found = find(scene)
    if found is None or found.root is None or found.cut is not None or found.recording_off:
        return False
    spots = (*scene.slicer.makers(found.root), *computation(scene, found.root))
    calls = (s for s in spots if isinstance(s.node, ast.Call) and s.called in ("grad", "backward"))
    return any(k.arg == "create_graph" for s in calls for k in s.node.keywords)  # type: ignore[union-attr]


def _once_differentiable(scene: Scene) -> dict[str, Place]:
    """The user's Functions whose `backward` is marked so, by name, and where it is defined."""
    return {
        node.name: source.place(inner.lineno, inner.name, inner)
        for source, node in scene.index.nodes(ast.ClassDef, naming=("once_differentiable",))
        for inner in node.body
        if isinstance(inner, ast.FunctionDef) and inner.name == "backward"
        if any(ast.unparse(d).endswith("once_differentiable") for d in inner.decorator_list)
    }
