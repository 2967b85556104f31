"""One loss that goes backward twice: where it is computed or logged, and in the caller."""

from __future__ import annotations

import ast

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.syntax import returns
from autograd_explain.inspect.facts.torch_call import differentiated, gone_back_from
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place

from .evidence import Evidence
from .freed_part import FreedPart


def backward_before(scene: Scene, known: Evidence) -> Place | None:
    """The earlier of two backwards of one loss that stand in different functions, the later one
    maybe in a library's, which scales the loss first.

    Two in one function may be meant to add up.  These come from a misunderstanding of who calls
    backward: with the graph kept, every gradient would come twice.
    """
    part, call = known.part, known.calls.first
    if part.first is None or part.first.op != "backward" or part.first.inside is not None:
        return None
    if call is None or scene.place is None or known.steps or differentiated(scene):
        return None
    if call.called == "grad":  # it accumulates nothing, whether it was seen or followed
        return None
    place, loss = part.first.place, gone_back_from(scene, call)
    if place.function_id == scene.place.function_id or loss is None:
        return None
    if not _is_of(scene, loss, part):
        return None
    return place if _is_root(scene, loss, known.roots) or _is_returned(scene, place, loss) else None


def _is_of(scene: Scene, loss: ExprAt, part: FreedPart) -> bool:
    """Whether all that was freed is the graph of this loss, up to the loss itself."""
    statement = None if part.binding is None else part.binding.statement
    made = (scene.slicer.statement(maker) for maker in scene.slicer.makers(loss))
    return part.whole or (statement is not None and statement in made)


def _is_root(scene: Scene, loss: ExprAt, roots: tuple[ExprAt, ...]) -> bool:
    return len(roots) == 1 and bool(_makers(scene, loss) & _makers(scene, roots[0]))


def _makers(scene: Scene, loss: ExprAt) -> set[int]:
    return {id(maker.node) for maker in scene.slicer.makers(loss)}


def _is_returned(scene: Scene, place: Place, loss: ExprAt) -> bool:
    """Whether the function hands the loss on, alone or among others."""
    source = scene.program.source_at(place)
    function = None if source is None else source.function_at(place)
    given = [] if function is None else [n for r in returns(function) for n in ast.walk(r)]
    return any(ast.unparse(n) == ast.unparse(loss.node) for n in given if isinstance(n, ast.expr))
