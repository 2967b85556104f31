"""`.grad` was read of a tensor that the user takes for the leaf: a cast or copy came between."""

import ast
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import attribute_read
from autograd_explain.inspect.facts.grad_access import non_leaf_read
from autograd_explain.inspect.facts.leaf_updates import LeafUpdate, leaf_updates, names_of
from autograd_explain.inspect.facts.no_graph import backward_root
from autograd_explain.inspect.facts.non_leaf import NonLeaf, events, fact
from autograd_explain.inspect.facts.replaced_leaf import ReplacedLeaf
from autograd_explain.inspect.facts.torch_call import live_value, without_flag
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact, What, label
from autograd_explain.program import called_name

PATTERNS = (
    "nonleaf-grad-access",
    "grad-none-arithmetic",
    "grad-none-first",
    "grad-none-unary",
    "grad-none-attribute",
    "no-grad-fn",
    "grad-of-nongrad-input",
)

EXAMPLE = {
    "tensor": "params['rate']",
    "maker": "raw.float()",
    "place": "In[1]:11",
    "leaf": "",
    "node": "ToCopyBackward0",
}


@dataclass(frozen=True)
class Rebinding:
    """An assignment that gave a leaf's name a new tensor, by the place of the value; `cleared`
    where the program resets the gradient, `last` where no later one rebinds the same name."""

    value: Place
    cleared: bool
    last: bool


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    update: ReplacedLeaf | None  #: `w = w - lr * w.grad`
    named: bool  #: the leaf has a name of its own
    updates: tuple[Rebinding, ...] = ()  #: all those of the round
    recorded: bool = False  #: autograd recorded the update
    asked: bool = False  #: its gradient is asked for, and no `.grad` filled
    parameter: bool = False  #: an attribute that is no parameter, computed of one


def diagnose(scene: Scene) -> Finding[Details] | None:
    asked = without_flag(scene)
    root = _without_leaf(scene) if asked is None else asked[2]
    updates = () if root is None else leaf_updates(scene, root)
    found = non_leaf_read(scene)
    if updates and (found is None or found.replaced is None):
        return _of_updates(scene, updates, found, asked=asked is not None)
    if found is None or not (found.lost_leaf or found.renamed_leaf):
        return None
    culprit = fact(scene, found)
    return Finding(
        cause="cast_made_non_leaf",
        confidence=Confidence.PROVEN if found.maker is not None else Confidence.LIKELY,
        facts={
            "tensor": culprit.names[0] if culprit.names else "",
            "maker": "" if found.maker is None else found.maker.text,
            "place": label(scene.place_at(found.maker)) if found.maker is not None else "",
            "leaf": found.leaf_names[0] if found.leaf_names else "",
            "node": culprit.grad_fn or "",
        },
        tensors=(culprit,),
        events=(*events(scene, found, culprit.grad_fn), scene.failed()),
        variant=_variant(found),
        details=Details(
            update=found.replaced,
            named=found.renamed_leaf,
            updates=_rebindings(scene, _with(found, updates)),
            recorded=found.replaced is not None,
            parameter=_is_parameter(scene, found.maker),
        ),
    )


def _is_parameter(scene: Scene, maker: ExprAt | None) -> bool:
    """Whether an attribute was computed of a parameter made there: `nn.Parameter(w).to(device)`."""
    statement = None if maker is None else scene.slicer.statement(maker)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    made = [] if maker is None else [called_name(n) for n in ast.walk(maker.node)]
    return "Parameter" in made and any(isinstance(t, ast.Attribute) for t in targets)


def _variant(found: NonLeaf) -> str:
    if found.renamed_leaf:
        return "named"
    return "" if found.replaced is None else "update"


def _without_leaf(scene: Scene) -> ExprAt | None:
    """What backward was called on without a graph, or what has no `.grad`, being no leaf or without
    the flag."""
    if scene.match.pattern == "no-grad-fn":
        return backward_root(scene) if torch.is_grad_enabled() else None
    shown = attribute_read(scene, "grad")
    tensor = None if shown is None else live_value(scene, shown)
    if tensor is None:
        tensor = scene.incident.evidence.get("object")
    is_leaf = isinstance(tensor, torch.Tensor) and tensor.requires_grad and tensor.is_leaf
    return shown if isinstance(tensor, torch.Tensor) and not is_leaf else None


def _of_updates(
    scene: Scene, updates: tuple[LeafUpdate, ...], found: NonLeaf | None, *, asked: bool
) -> Finding[Details]:
    """`self.w = self.w - lr * self.w.grad`: the new tensor has no flag, or is no leaf."""
    made = [scene.event_at(What.CAUSE, u.value) for u in updates]
    roles = [Role.CULPRIT, *(Role.OTHER for _ in updates[1:])]
    return Finding(
        cause="cast_made_non_leaf",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": updates[0].target.text,
            "maker": updates[0].value.text,
            "place": "" if made[0].place is None else label(made[0].place),
            "leaf": "",
            "node": "",
        },
        tensors=tuple(
            TensorFact(role, names_of(scene, u), requires_grad=found is not None)
            for role, u in zip(roles, updates, strict=True)
        ),
        events=(*made, scene.failed()),
        variant="unrecorded" if found is None else "update",
        details=Details(
            None,
            False,
            _rebindings(scene, updates),
            recorded=found is not None,
            asked=asked,
        ),
    )


def _rebindings(scene: Scene, updates: tuple[LeafUpdate, ...]) -> tuple[Rebinding, ...]:
    last = {_bound(u): u for u in sorted(updates, key=lambda u: u.value.node.lineno)}
    return tuple(
        Rebinding(scene.slicer.place(u.value), u.cleared, last[_bound(u)] is u) for u in updates
    )


def _with(found: NonLeaf, updates: tuple[LeafUpdate, ...]) -> tuple[LeafUpdate, ...]:
    """The updates, where the one that was found is among them and does not ask for the flag."""
    maker, update = found.maker, found.replaced
    if maker is None or update is None or update.flagged:
        return ()
    return updates if any(u.value.node is maker.node for u in updates) else ()


def _bound(update: LeafUpdate) -> tuple[int, str]:
    return id(update.target.scope.body), update.target.text
