"""Layers in a plain list, dict or object: the forward uses them, but `parameters()` does not see
them."""

import ast
from dataclasses import dataclass

from autograd_explain.inspect.facts.silent_evidence import culprit, name_of, tensors
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Place, What, label

PATTERNS = ("plain-list-of-layers",)

EXAMPLE = {
    "owner": "Tower",
    "attribute": "layers",
    "holder": "",
    "parameter": "tower.layers[0].weight",
    "layers": "2",
    "count": "4",
    "statement": "self.layers = [nn.Linear(width, width) for _ in range(depth)]",
    "place": "In[1]:10",
}


@dataclass(frozen=True)
class Details:
    """`plain` is the class that holds the layers, where it is no module, `kept` the statements that
    store them there."""

    plain: Place | None = None
    kept: tuple[Place, ...] = ()


def diagnose(scene: Scene) -> Finding[Details] | None:
    evidence = scene.incident.evidence
    # The parameters of a model that lived in a function are gone when it has returned.
    lost = next(iter(tensors(scene, "parameters")), None)
    gone: tuple[str, ...] = evidence.get("names", ())
    if lost is None and not gone:
        return None
    name = gone[0] if lost is None else name_of(scene, lost)
    owner, attribute = str(evidence.get("owner", "")), str(evidence.get("attribute", ""))
    holder = str(evidence.get("holder", ""))
    place = _statement(scene, owner, attribute)
    cause = () if place is None else (Event(What.CAUSE, place),)
    return Finding(
        cause="plain_list_of_layers",
        confidence=Confidence.PROVEN,
        variant="object" if holder else "",
        details=_details(scene, owner) if holder else Details(),
        facts={
            "owner": owner,
            "attribute": attribute,
            "holder": holder,
            "parameter": name,
            "layers": str(evidence.get("layers", "")),
            "count": str(evidence.get("count", "")),
            "statement": "" if place is None else place.source,
            "place": "" if place is None else label(place),
        },
        tensors=(culprit(scene, lost, f"self.{attribute}"),),
        events=cause,
        awaited=(name,) if lost is not None else (),
        awaits_steps=True,
    )


def _details(scene: Scene, owner: str) -> Details:
    """Where the class is defined, if only one is called so, and what it keeps its layers by."""
    found = scene.index.classes(owner)
    attributes: tuple[str, ...] = scene.incident.evidence.get("kept", ())
    statements = (_statement(scene, owner, attribute) for attribute in attributes)
    plain = found[0][0].place(found[0][1].lineno) if len(found) == 1 else None
    return Details(plain, tuple(p for p in statements if p is not None))


def _statement(scene: Scene, owner: str, attribute: str) -> Place | None:
    """`self.layers = […]` in the class; None where several statements could be meant."""
    found = [
        source.place(node.lineno, None, node)
        for source, cls in reversed(scene.index.classes(owner))
        for node in ast.walk(cls)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and _stores(node, attribute)
    ]
    return found[-1] if len({p.source for p in found}) == 1 else None


def _stores(node: ast.Assign | ast.AnnAssign, attribute: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    stored = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return any(isinstance(t, ast.Attribute) and t.attr == attribute for t in stored)
