"""A value that several reentrant checkpoints read and are not given: each goes back through it when
it is computed again, in one backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.checkpointed import asked_for
from autograd_explain.inspect.facts.torch_call import local
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import blocks, own_nodes

from .freed_part import FreedPart


def read_by_checkpoints(scene: Scene, part: FreedPart) -> tuple[Place, ...]:
    """Where the program asks for reentrant checkpoints, if one of them failed at a value of this
    round, made before it ran, that no other backward is seen to have freed; else ()."""
    node = local(scene, "backward", "ctx", "torch/utils/checkpoint.py")
    if node is MISSING or part.first is not None or part.carrier is None or part.maker is None:
        return ()
    if part.boundary.sequence >= node._sequence_nr():
        return ()  # what the checkpointed function read has been replaced since
    names, made = scene.names.of(part.carrier.tensor), [p.line_id for p in part.maker.path]
    if not any(n in names and at.line_id in made for n, at in _of_this_round(scene)):
        return ()
    return tuple(scene.slicer.place(spot) for spot in asked_for(scene))


def _of_this_round(scene: Scene) -> Iterator[tuple[str, Place]]:
    """The names that statements before the failing one, in the same round of a loop, alone bind,
    and these statements."""
    place = scene.place
    source, child = scene.program.source_at(place), scene.program.statement_at(place)
    if source is None or place is None or child is None:
        return
    bound = [
        n.id
        for n in own_nodes(source.function_at(place) or source.tree)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    around = source.parents.get(child)
    while around is not None:
        for block in blocks(around):
            at = next((i for i, s in enumerate(block) if s is child), 0)
            assigned = (s for s in block[:at] if isinstance(s, ast.Assign))
            named = ((s, t) for s in assigned for t in s.targets if isinstance(t, ast.Name))
            for statement, name in named:
                if bound.count(name.id) == 1:
                    yield name.id, source.place(statement.lineno, None, statement)
        if isinstance(around, (ast.For, ast.While, ast.FunctionDef)):
            return
        if isinstance(around, ast.stmt):
            child = around
        around = source.parents.get(around)
