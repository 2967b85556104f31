"""NumPy on the way to a value that the program differentiates: detaching would cut its gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from autograd_explain.inspect.dataflow import CutKind, ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import cut_of
from autograd_explain.inspect.dataflow.safe_lookup import is_module
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.torch_call import calls_in, gone_back_from
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place


class Part(Enum):
    """What of such a computation has to change."""

    FUNCTION = "function"  #: a function of NumPy's, for which torch's is to be called
    ARRAY_OF = "array_of"  #: `np.array(losses)`
    ARRAY = "array"  #: an array that a name holds
    END = "end"  #: `x.numpy()`
    BACK = "back"  #: `torch.from_numpy(array)`


@dataclass(frozen=True)
class Differentiated:
    """The parts of the computation, each where it stands."""

    parts: tuple[tuple[Place, Part], ...]


def differentiated(scene: Scene, failing: ExprAt) -> Differentiated | None:
    """None where what the failing call computes is not behind a value that is differentiated."""
    for root in (*_roots(scene), *_forward(scene, failing)):
        spots = [*scene.slicer.makers(root), *computation(scene, root)]
        inside = set(ast.walk(failing.node))
        if any(s.node in inside for s in spots):
            parts = {place: part for s in spots for place, part in _parts(scene, s)}
            return Differentiated(tuple(parts.items()))
    return None


def _roots(scene: Scene) -> Iterator[ExprAt]:
    """`loss` of `loss.backward()` and of `torch.autograd.grad(loss, x)`."""
    losses = (gone_back_from(scene, call) for call in calls_in(scene, "backward", "grad"))
    return (loss for loss in losses if loss is not None)


def _forward(scene: Scene, failing: ExprAt) -> Iterator[ExprAt]:
    """The call of the module whose `forward` failed: what a module gives is there to be learned
    from, though the cell that does so may not have run."""
    at: ExprAt | None = failing
    while at is not None:
        call = at.scope.call
        if at.scope.function == "forward" and is_module(at.scope.receiver) and call is not None:
            yield call
        at = call


def _parts(scene: Scene, spot: ExprAt) -> Iterator[tuple[Place, Part]]:
    """What of one operation has to change, so that the gradient passes through it."""
    node = spot.node
    if spot.called == "from_numpy" and isinstance(node, ast.Call) and node.args:
        yield scene.slicer.place(spot), Part.BACK
        return
    kind = cut_of(scene.slicer, spot) if isinstance(node, ast.Call) else None
    if kind is CutKind.NUMPY and any(_depends(scene, o) for o in scene.slicer.operands(spot)):
        if spot.called in ("numpy", "__array__") and spot.receiver is not None:
            yield scene.slicer.place(spot), Part.END
            return
        array_of = spot.called in ("array", "asarray", "asanyarray")
        yield scene.slicer.place(spot), Part.ARRAY_OF if array_of else Part.FUNCTION
    if kind is CutKind.NUMPY or isinstance(node, ast.BinOp):
        for operand in scene.slicer.operands(spot):
            if type(scene.slicer.value(operand)).__module__ == "numpy" and operand.key is not None:
                yield scene.slicer.place(operand), Part.ARRAY


def _depends(scene: Scene, spot: ExprAt) -> bool:
    trace = scene.gradient_tracer.trace(spot)
    return trace.carries or bool(trace.cuts)
