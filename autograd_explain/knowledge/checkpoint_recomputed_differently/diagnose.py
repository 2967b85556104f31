"""A checkpointed function did something else when backward ran it again."""

import ast

from autograd_explain.inspect.facts.checkpointed import Divergence, suspects, switched_on
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.opposite_method import opposite_method
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding, Role, TensorFact

from .details import Details
from .switched_module import Switched, switched_since_forward

PATTERNS = (
    "checkpoint-different-number-of-tensors",
    "checkpoint-different-metadata",
    "checkpoint-more-tensors-recomputed",
    "checkpoint-debug-trace",
    "checkpoint-selective-not-found",
    "checkpoint-selective-invocation-index",
)

EXAMPLE = {
    "function": "mix",
    "statement": 'state["step"] += 1',
    "place": "In[1]:8",
    "expected": "2",
    "count": "1",
}


def diagnose(scene: Scene) -> Finding[Details] | None:
    found = suspects(scene)
    first: Divergence | None = found[0] if found else None
    if first is None or first.kind == "mode":
        switched = switched_since_forward(scene)
        if switched is not None:
            return _of_switch(scene, switched)
    kind = "" if first is None else first.kind
    draws = tuple(d.place for d in found if d.kind == kind == "random")
    told = finding_from_message(
        scene,
        "checkpoint_recomputed_differently",
        EXAMPLE,
        facts={}
        if first is None
        else {"function": first.function, "statement": first.place.source},
        at=None if first is None else first.place,
        tensors=() if first is None else _changed(scene, first),
        variant=kind,
    )
    if first is None:
        return told.with_details(Details())
    return told.with_details(Details(kind, draws, first.switch))


def _of_switch(scene: Scene, found: Switched) -> Finding[Details]:
    """A module was switched between its forward pass and the backward that runs it again."""
    place = scene.slicer.place(found.at)
    return finding_from_message(
        scene,
        "checkpoint_recomputed_differently",
        EXAMPLE,
        facts={"function": found.module.text, "statement": place.source},
        at=found.at,
        tensors=(TensorFact(Role.CULPRIT, (found.module.text,)),),
        variant="mode",
    ).with_details(
        Details(
            "mode",
            switch=switched_on(scene),
            opposite=opposite_method(scene, place),
            backward=scene.slicer.place(found.backward),
        )
    )


def _changed(scene: Scene, found: Divergence) -> tuple[TensorFact, ...]:
    """What the two runs see different values of: `self.steps` of `self.steps += 1`."""
    statement = scene.program.statement_at(found.place)
    targets: list[ast.expr] = [statement.target] if isinstance(statement, ast.AugAssign) else []
    targets = statement.targets if isinstance(statement, ast.Assign) else targets
    paths = [ast.unparse(t) for t in targets if isinstance(t, (ast.Name, ast.Attribute))]
    paths += [ast.unparse(t.value) for t in targets if isinstance(t, ast.Subscript)]
    names = tuple(paths) if found.kind == "state" else ()
    return (TensorFact(Role.CULPRIT, names),) if names else ()
