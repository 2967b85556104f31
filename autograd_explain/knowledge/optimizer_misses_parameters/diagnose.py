"""An optimizer steps tensors that the model no longer uses, and leaves the model's own alone."""

import ast
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.container_puts import live_object
from autograd_explain.inspect.facts.silent_evidence import (
    assignments,
    culprit,
    listed,
    moment,
    name_of,
    optimizer_name,
    tensors,
)
from autograd_explain.inspect.facts.torch_call import optimizers_made
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Confidence, Event, Finding, Place, What, label
from autograd_explain.program import called_name

from .replaced_parameters import exchanges

PATTERNS = ("optimizer-misses-parameters",)

EXAMPLE = {
    "parameter": "model[2].weight",
    "parameters": "model[2].weight, model[2].bias",
    "count": "2",
    "dead": "2",
    "gone": "2",
    "optimizer": "optimizer",
    "made": "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    "made_place": "In[1]:6",
    "replaced": "model[2] = nn.Linear(4, 5)",
    "replaced_place": "In[1]:8",
}

_SHOWN = 4


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    names: tuple[str, ...]  #: of the parameters
    replaced: Place | None  #: where the parameters were, at the level of the optimizer
    attributes: tuple[Place, ...] = ()  #: where a module keeps plain tensors
    unfrozen: tuple[Place, ...] = ()  #: the lines, outermost first, that switched the flag on
    put_in: tuple[Place, ...] = ()  #: the lines, outermost first, that made what is in their place
    renewed: tuple[Place, ...] = ()  #: each `layer.w = nn.Parameter(…)` that gave one another
    rebound: Place | None = None  #: `x = f(x)`, which gives the name a new leaf in every round


def diagnose(scene: Scene) -> Finding[Details] | None:
    if moment(scene, "made") is not None:
        return _of_rounds(scene)
    missing = tensors(scene, "parameters")
    # The parameters of a model that lived in a function are gone when it has returned.
    gone: tuple[str, ...] = scene.incident.evidence.get("names", ())
    names = tuple(name_of(scene, p) for p in missing) or gone
    if not names:
        return None
    optimizer = _named_optimizer(scene)
    made = _construction(scene, optimizer) or _only_optimizer(scene)
    unfrozen = _unfrozen(scene, missing)
    replaced = None
    if made is not None and not unfrozen:
        replaced = _replacement(scene, names[0], made, optimizer)
    later = None if made is None or not missing else _made_later(scene, missing[0], made)
    replaced = later if replaced is None else replaced
    if replaced is None and unfrozen:
        replaced = unfrozen[-1]
    put_in = () if made is None or unfrozen else _put_in(scene, missing, replaced)
    replaced = put_in[-1] if replaced is None and put_in else replaced
    renewed = _renewed(scene, missing)
    plain = _plain_attributes(scene)
    replaced = next(iter(plain), replaced)
    told = next(iter(renewed), replaced)
    step = moment(scene, "step")
    name = optimizer or _kind(scene) or (step.place.source if step else "")
    others = (*(names[1:] if missing else names)[:_SHOWN], optimizer)
    dead = str(scene.incident.evidence.get("dead_count", 0))
    return Finding(
        cause="optimizer_misses_parameters",
        confidence=Confidence.PROVEN if dead != "0" else Confidence.LIKELY,
        facts={
            "parameter": names[0],
            "parameters": ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else ""),
            "count": str(len(names)),
            "dead": "" if dead == "0" else dead,
            "gone": _gone(scene),
            "optimizer": name,
            "made": "" if made is None else made.source,
            "made_place": "" if made is None else label(made),
            "replaced": "" if told is None else told.source,
            "replaced_place": "" if told is None else label(told),
        },
        tensors=(culprit(scene, next(iter(missing), None), *others),),
        events=tuple(Event(What.CAUSE, p) for p in (*plain, made) if p is not None),
        details=Details(
            names, None if plain else later or replaced, plain, unfrozen, put_in, renewed
        ),
        variant=_variant(plain, unfrozen, replaced),
        awaited=names[:1] if missing else (),
        awaits_steps=True,
    )


def _of_rounds(scene: Scene) -> Finding[Details] | None:
    """Every round gives the name that the optimizer's tensor had another leaf."""
    born, optimizer = moment(scene, "made"), optimizer_name(scene)
    path = () if born is None else born.path
    if found := _of_replaced(scene, optimizer, path):
        return found
    for place in path:
        node = scene.program.statement_at(place)
        targets = node.targets if isinstance(node, ast.Assign) else []
        if len(targets) != 1 or not isinstance(targets[0], (ast.Name, ast.Attribute)):
            continue
        name, made = ast.unparse(targets[0]), _construction(scene, optimizer)
        return Finding(
            cause="optimizer_misses_parameters",
            confidence=Confidence.PROVEN,
            facts=dict.fromkeys(EXAMPLE, "")
            | {
                "parameter": name,
                "optimizer": optimizer,
                "made": "" if made is None else made.source,
                "made_place": "" if made is None else label(made),
                "replaced": place.source,
                "replaced_place": label(place),
            },
            tensors=(culprit(scene, None, name, optimizer),),
            events=tuple(Event(What.CAUSE, p) for p in (place, made) if p is not None),
            details=Details((name,), None, rebound=place),
            variant="rebound",
            awaited=(name,),
            awaits_steps=True,
        )
    return None


def _of_replaced(scene: Scene, optimizer: str, path: tuple[Place, ...]) -> Finding[Details] | None:
    """What a library did to the model gives it other parameters in every round, made on the lines
    of `path`: no optimizer can hold them."""
    weak, made = scene.incident.evidence["optimizer"], _construction(scene, optimizer)
    names = _in_the_place(scene, weak())
    told = _replacement(scene, names[0], made, optimizer) if names and made else None
    if told is None or made is None or told.line_id in {p.line_id for p in path}:
        return None
    return Finding(
        cause="optimizer_misses_parameters",
        confidence=Confidence.LIKELY,
        facts=dict.fromkeys(EXAMPLE, "")
        | {
            "parameter": names[0],
            "parameters": listed(names),
            "count": str(len(names)),
            "gone": str(len(names)),
            "optimizer": optimizer,
            "made": made.source,
            "made_place": label(made),
            "replaced": told.source,
            "replaced_place": label(told),
        },
        tensors=(culprit(scene, None, *names, optimizer),),
        events=tuple(Event(What.CAUSE, p) for p in (told, made)),
        details=Details(names, None),
        variant="replaced",
    )


def _in_the_place(scene: Scene, optimizer: torch.optim.Optimizer | None) -> tuple[str, ...]:
    """The parameters of the module that has others, of the same shapes in the same order, than the
    optimizer was given."""
    held = [p for g in optimizer.param_groups for p in g["params"]] if optimizer else []
    for owner, module in scene.names.held_modules:
        own = dict(module.named_parameters())
        alike = [p.shape for p in own.values()] == [p.shape for p in held]
        if held and alike and not any(p is q for p in own.values() for q in held):
            return tuple(f"{owner}.{name}" for name in own)
    return ()


def _variant(plain: object, unfrozen: object, replaced: Place | None) -> str:
    if plain:
        return "attribute"
    if unfrozen:
        return "unfrozen"
    return "" if replaced is None else "replaced"


def _unfrozen(scene: Scene, missing: tuple[torch.Tensor, ...]) -> tuple[Place, ...]:
    """The lines that switched the flag of frozen parameters on after the optimizer was made."""
    created = scene.history.creation(missing[0]) if missing else None
    if created is None or not scene.incident.evidence.get("unfrozen"):
        return ()
    return created.path


def _put_in(
    scene: Scene, missing: tuple[torch.Tensor, ...], replaced: Place | None
) -> tuple[Place, ...]:
    """The lines that made the parameters after the optimizer, or the statement that replaced them
    as the source tells it."""
    newer = scene.incident.evidence.get("newer")
    created = scene.history.creation(missing[0]) if missing and newer else None
    if created is not None:
        return created.path
    return () if replaced is None else (replaced,)


def _renewed(scene: Scene, missing: tuple[torch.Tensor, ...]) -> tuple[Place, ...]:
    """Each statement of a function that gave a module one of the parameters in the place of one
    that it had before; () where one came otherwise."""
    newer = scene.incident.evidence.get("newer")
    created = [scene.history.creation(parameter) for parameter in missing if newer]
    places = tuple(dict.fromkeys(c.place for c in created if c is not None))
    return places if None not in created and all(_renews(scene, p) for p in places) else ()


def _renews(scene: Scene, place: Place) -> bool:
    node = scene.program.statement_at(place)
    if place.function in (None, "__init__"):
        return False
    match node:
        case ast.Assign(targets=[ast.Attribute()], value=value):
            return called_name(value) == "Parameter"
    return False


def _plain_attributes(scene: Scene) -> tuple[Place, ...]:
    """Each `self.scale = torch.ones(3, requires_grad=True)` that the optimizer misses."""
    kept: tuple[tuple[str, str], ...] = scene.incident.evidence.get("attributes", ())
    made = (found for pair in kept for found in scene.index.attribute(*pair))
    return tuple(source.place(node.lineno, None, node) for source, node in made)


def _gone(scene: Scene) -> str:
    """How many of the tensors that never got a gradient no name of the program leads to, neither
    as a module's parameter nor otherwise; "" where there are none."""
    named = {id(n.tensor) for n in scene.names.tensors}
    return str(sum(id(t) not in named for t in tensors(scene, "dead")) or "")


def _construction(scene: Scene, optimizer: str) -> Place | None:
    """`optimizer = SGD(…)`, where one statement of the program makes it; not one that only keeps
    it."""
    texts = {optimizer, f"self.{optimizer.rpartition('.')[2]}"} if optimizer else set()
    given = (at for text in texts for at in assignments(scene.program, text))
    found = [place for place, s in given if not isinstance(s.value, (ast.Name, ast.Attribute))]
    return found[0] if len(found) == 1 else None


def _named_optimizer(scene: Scene) -> str:
    """What the program calls the optimizer; "" where that is the name of what steps it, as a
    `trainer` does."""
    name = optimizer_name(scene)
    found = live_object(scene, name) if name else MISSING
    return "" if found is not MISSING and not is_a(found, torch.optim.Optimizer) else name


def _kind(scene: Scene) -> str:
    weak = scene.incident.evidence.get("optimizer")
    optimizer = None if weak is None else weak()
    return "" if optimizer is None else type(optimizer).__name__


def _only_optimizer(scene: Scene) -> Place | None:
    """The program's only call of a class of torch.optim, where that is the optimizer's."""
    found, kind = list(optimizers_made(scene)), _kind(scene)
    if len(found) != 1 or kind not in ("", called_name(found[0].node)):
        return None
    return scene.slicer.place(found[0])


def _replacement(scene: Scene, parameter: str, made: Place, optimizer: str) -> Place | None:
    """The statement that put the parameter's module there after the optimizer was made."""
    owner = _shorter(parameter)
    while owner and not optimizer.startswith(f"{owner}."):
        later = [p for p, _ in assignments(scene.program, owner) if _after(p, made)]
        later = later or [p for p in exchanges(scene.program, owner) if _after(p, made)]
        later = later or _by_attribute(scene, owner.rpartition(".")[2] if "." in owner else "")
        if later:
            return later[-1]
        owner = _shorter(owner)
    return None


def _made_later(scene: Scene, parameter: torch.Tensor, made: Place) -> Place | None:
    """The statement behind the optimizer's, in the same block of code, that a recording saw make
    the parameter: itself, or in a function or a library that it calls."""
    created = scene.history.creation(parameter)
    path = () if created is None else created.path
    around = _function_at(scene, made)
    inner = [p for p in path if around is not None and _function_at(scene, p) is around]
    outer = [p for p in path[:1] if around is None]
    return next((p for p in (*inner, *outer) if _after(p, made)), None)


def _function_at(scene: Scene, place: Place) -> ast.AST | None:
    source = scene.program.source_at(place)
    return None if source is None else source.function_at(place)


def _by_attribute(scene: Scene, attribute: str) -> list[Place]:
    """`self.model.head = …` in a method, the only statement outside constructors that sets it."""
    found = [
        source.place(node.lineno, function.name, node)
        for source, function in scene.index.nodes(ast.FunctionDef)
        if attribute and function.name != "__init__"
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Attribute) and t.attr == attribute for t in node.targets)
    ]  # fmt: skip
    return found if len(found) == 1 else []


def _after(place: Place, other: Place) -> bool:
    return (place.cell or 0, place.line) > (other.cell or 0, other.line)


def _shorter(name: str) -> str:
    """`model[2].weight` -> `model[2]` -> `model`."""
    at = max(name.rfind("."), name.rfind("["))
    return name[:at] if at > 0 else ""
