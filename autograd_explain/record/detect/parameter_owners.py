"""Live modules and optimizers after a cell: who holds which parameter.

Reads plain data only (`vars`, containers): no property, no method of the user's runs.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import IntEnum
from itertools import chain, islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ...isolation.type_checks import elements, is_a, items, table_of, with_subclasses
from ...program import is_library
from ..observe.event_log import EventLog
from ..observe.tensor_facts import address, storage
from .finding import CandidateFault, Marks, Weak, weak
from .plain_leaves import OF_MODULE, plain_leaves
from .unused_gradients import Followed, Gradients

_MAX_OBJECTS = 5_000
_DEPTH = 3
_STEPS = (2, 20)
#: So many times a cell all objects are looked at, tenths of a second each; then ever more rarely.
_LOOKS = 8


def look(namespace: Mapping[str, Any], gradients: Gradients, log: EventLog) -> list[CandidateFault]:
    """Layers that no module knows, and parameters that no optimizer steps."""
    if not gradients.last_step.clock:
        return []
    return _judged(list(live(namespace, (nn.Module, Optimizer, Tensor))), gradients, log)


class InFunctions:
    """What `look` finds of models that functions alone hold: they are gone when these have
    returned, so that all there are are looked at after some steps."""

    def __init__(self) -> None:
        self._found: list[CandidateFault] = []
        self._asked = 0

    def begin(self) -> None:
        """A cell begins."""
        self._found.clear()
        self._asked = 0

    def stepped(self, followed: Followed, names: Mapping[str, Any], gradients: Gradients) -> None:
        """An optimizer has stepped; `names` are the program's."""
        if followed.steps == 1:  # what it holds is trained, though it was not before
            self._found = [s for s in self._found if not _is_held(s, gradients)]
        if followed.steps not in _STEPS or not _are_beyond(names, [followed]):
            return
        self._asked += 1
        if self._asked > _LOOKS and self._asked.bit_count() > 1:
            return
        self._found = self.left_behind()
        # A module may be of any kind, half made or with methods of the user's.
        with suppress(Exception):
            cut_off = {i for _, lost in followed.cuts.values() for i in lost}
            judged = _judged(_top_level(), gradients, gradients.log)
            self._found += [s for s in judged if not _is_cut_off(s, cut_off)]

    def left_behind(self) -> list[CandidateFault]:
        """The findings of which nothing is left: no other look has them."""
        return [s for s in self._found if not any(w() is not None for w in _parameters(s))]


def _parameters(suspect: CandidateFault) -> tuple[Weak, ...]:
    found: tuple[Weak, ...] = suspect.evidence["parameters"]
    return found


def _is_cut_off(suspect: CandidateFault, lost: set[int]) -> bool:
    """Whether cuts, which are told, keep the gradient from all that is stepped in vain."""
    dead = _tensors(suspect, "dead")
    return bool(dead) and dead <= lost


def _is_held(suspect: CandidateFault, gradients: Gradients) -> bool:
    kept = [p for w in _parameters(suspect) if (p := w()) is not None]
    return any(id(p) in gradients.held for p in kept)


def _top_level() -> list[Any]:
    """Every optimizer, and every module that no other module holds, in whatever way."""
    kinds = with_subclasses(nn.Module) | with_subclasses(Optimizer)
    found = [*islice((o for o in gc.get_objects() if type(o) in kinds), _MAX_OBJECTS)]
    modules = [o for o in found if is_a(o, nn.Module)]
    inner = {id(child) for m in modules for child in _children(m)}
    inner |= {id(m) for owner in modules for v in vars(owner).values() for _, m in _modules_in(v)}
    return [o for o in found if id(o) not in inner and not _is_half_made(o)]


def _children(module: nn.Module) -> list[nn.Module]:
    held = vars(module).get("_modules")
    return [m for m in held.values() if m is not None] if is_a(held, dict) else []


def _is_half_made(value: Any) -> bool:
    """A module or an optimizer whose `__init__` failed: it cannot be asked for anything."""
    needed = {"_modules", "_parameters"} if is_a(value, nn.Module) else {"param_groups"}
    return not needed <= vars(value).keys()


def _judged(found: list[Any], gradients: Gradients, log: EventLog) -> list[CandidateFault]:
    stepped = [f for f in gradients.followed.values() if f.stepped.clock > gradients.since]
    leaves = [o for o in found if is_a(o, Tensor)]
    modules = [o for o in found if is_a(o, nn.Module)]
    optimizers = [o for o in found if is_a(o, Optimizer)]
    optimizers += [o for f in gradients.followed.values() if (o := f.optimizer()) is not None]
    held = {id(p) for o in optimizers for g in o.param_groups for p in g["params"]}
    held |= {k for k, weak in gradients.held.items() if weak() is not None}
    suspects = list(_plain_lists(modules, held, gradients))
    suspects += _plain_leaves(stepped, modules, held, gradients, log)
    every = [_missing(f, gradients, modules, leaves, held, log) for f in stepped]
    claims = [
        _claims(f, missing, gradients, modules, log)
        for f, missing in zip(stepped, every, strict=True)
    ]
    for followed, missing, own in zip(stepped, every, claims, strict=True):
        ours = {
            key: missing[key]
            for key, claim in own.items()
            if claim == max(c.get(key, claim) for c in claims)
        }
        if ours:
            linked = [p for key, (_, p) in ours.items() if own[key] > _Claim.BESIDE]
            suspects.append(_missed(followed, ours, linked, gradients, modules, log))
    return suspects


def told_once(
    found: list[CandidateFault], owners: list[CandidateFault], namespace: Mapping[str, Any]
) -> list[CandidateFault]:
    """The suspects; where an optimizer steps in vain what a cut keeps the gradient from, the cut is
    told if the model still has that, else that it is not what the model has.  Where another model
    of the same shapes gets the gradients, and is no copy made for the loss, the optimizer has the
    wrong one of the two."""
    misses = [s for s in owners if s.name == "optimizer-misses-parameters"]
    cuts = [s for s in found if s.name == "graph-cut"]
    if not misses or not cuts:
        return found + owners
    modules = live(namespace, (nn.Module,))
    owned = {id(p) for m in modules for p in m.parameters()}
    lost = {key for s in cuts if s.sure for key in _tensors(s, "parameters")} & owned
    gone = [s for s in misses if lost and lost >= _tensors(s, "dead") & owned]
    copied = {key for s in cuts if s.evidence["copied"] for key in _tensors(s, "parameters")}
    twins = [
        s
        for s in misses
        if _shapes(s, "dead") == _shapes(s, "parameters") and not _tensors(s, "dead") & copied
    ]
    gone = [s for s in gone if s not in twins]
    vain = {key for s in twins for key in _tensors(s, "dead")}
    gone += [s for s in cuts if (own := _tensors(s, "parameters")) and not own & owned - vain]
    return [s for s in (*found, *owners) if not any(s is g for g in gone)]


def _shapes(suspect: CandidateFault, key: str) -> list[torch.Size]:
    found = (t for weak in suspect.evidence.get(key, ()) if (t := weak()) is not None)
    return sorted(t.shape for t in found)


def _tensors(suspect: CandidateFault, key: str) -> set[int]:
    return {id(t) for weak in suspect.evidence.get(key, ()) if (t := weak()) is not None}


def out_of_reach(namespace: Mapping[str, Any], gradients: Gradients, since: int) -> bool:
    """Whether an optimizer that stepped after a time trained what no name of the user's leads to:
    a model that lived in a function."""
    every = (*gradients.past, *gradients.followed.values())
    stepped = [f for f in every if f.stepped.clock > since]
    return bool(stepped) and _are_beyond(namespace, stepped)


def _are_beyond(namespace: Mapping[str, Any], stepped: Iterable[Followed]) -> bool:
    """Whether the names lead to neither the optimizer nor the first parameter of some."""
    names = list(namespace.items())
    named = {id(v) for name, v in names if v is not None and not name.startswith("_")}
    stepped = [f for f in stepped if not _in_reach(f, named)]
    if not stepped:
        return False  # as in most programs: no need to search
    reachable = list(live(namespace, (nn.Module, Optimizer, Tensor)))
    found = {id(o) for o in reachable}
    found |= {id(p) for o in reachable if isinstance(o, nn.Module) for p in o.parameters()}
    return any(not _in_reach(f, found) for f in stepped)


def _in_reach(followed: Followed, found: set[int]) -> bool:
    first = None if followed.first is None else followed.first()
    return id(followed.optimizer()) in found or (first is not None and id(first) in found)


def live(
    namespace: Mapping[str, Any], kinds: tuple[type, ...] = (nn.Module, Optimizer)
) -> Iterator[Any]:
    """Modules and optimizers within reach of the user's names."""
    seen: set[int] = set()
    names = [v for k, v in list(namespace.items()) if not k.startswith("_")]
    todo = [(v, 0) for v in names]
    while todo and len(seen) < _MAX_OBJECTS:
        value, depth = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, kinds):
            yield value
        if depth < _DEPTH:
            todo += [(v, depth + 1) for v in _inside(value)]


def _inside(value: Any) -> list[Any]:
    if is_a(value, (list, tuple)):
        return elements(value, 100)
    if is_a(value, dict):
        return [v for _, v in items(value)][:100]
    if is_a(value, (nn.Module, Optimizer, Tensor, type)) or callable(value):
        return []
    return list(table_of(value).values())[:100]


def _plain_lists(
    modules: list[nn.Module], held: set[int], gradients: Gradients
) -> Iterator[CandidateFault]:
    """`self.layers = [nn.Linear(…), …]`, or layers of an object that is no module: used, but not
    the module's as far as torch knows."""
    for root in modules:
        known = {id(m) for m in root.modules()}
        for owner in root.modules():
            for keeper, attributes, listed in _kept_plainly(owner):
                inside = [(path, m) for path, m in listed if id(m) not in known]
                hidden = [m for _, m in inside]
                lost = {
                    f"{path}.{parameter}": p
                    for path, m in inside
                    for parameter, p in m.named_parameters()
                    if _lost(p, held, gradients)
                }
                if lost:
                    plain = keeper is not owner
                    evidence = {
                        "owner": type(keeper).__name__,
                        "attribute": attributes[0],
                        "kept": attributes,
                        "holder": type(owner).__name__ if plain else "",
                        "layers": len(hidden),
                        "parameters": tuple(weak(p) for p in lost.values()),
                        "names": (*lost,),
                        "count": len(lost),
                        "module": weakref.ref(owner),
                    }
                    # One module in a list, or modules in evaluation mode: perhaps hidden on
                    # purpose, as the network of a perceptual loss is.
                    meant = len(hidden) == 1 or not any(m.training for m in hidden)
                    marks: Marks = {"step": (gradients.last_step,)}
                    yield CandidateFault("plain-list-of-layers", marks, evidence, not meant)


def _kept_plainly(
    owner: nn.Module,
) -> Iterator[tuple[object, tuple[str, ...], list[tuple[str, nn.Module]]]]:
    """What holds modules without registering them, the attributes, and these with the way to each:
    the module itself, or an object of a class of the user's that is an attribute of it."""
    for name, value in list(vars(owner).items()):
        if name in OF_MODULE:
            continue
        if listed := _modules_in(value, f"self.{name}"):
            yield owner, (name,), listed
        if is_library(_file_of(type(value))) or is_a(value, (nn.Module, Tensor, Optimizer, type)):
            continue
        held = {
            attribute: [(path, v)] if is_a(v, nn.Module) else _modules_in(v, path)
            for attribute, v in list(table_of(value).items())
            for path in (f"self.{name}.{attribute}",)
        }
        held = {attribute: found for attribute, found in held.items() if found}
        if held:
            yield value, (*held,), [*chain.from_iterable(held.values())]


def _plain_leaves(
    stepped: list[Followed],
    modules: list[nn.Module],
    held: set[int],
    gradients: Gradients,
    log: EventLog,
) -> Iterator[CandidateFault]:
    """Weights in plain attributes of modules of which an optimizer steps the parameters."""
    for root in modules:
        own = {id(p) for p in root.parameters()}
        lost = {
            id(tensor): (owner, name, tensor)
            for owner, name, tensor in plain_leaves(root)
            if _lost(tensor, held, gradients)
            and not _written(tensor, log, gradients.filled_since(tensor))
        }
        steps = [f for f in stepped if own & f.with_gradient]
        if lost and steps:
            evidence = {
                "parameters": tuple(weak(tensor) for _, _, tensor in lost.values()),
                "names": tuple(name for _, name, _ in lost.values()),
                "count": len(lost),
                "attributes": tuple((owner, name) for owner, name, _ in lost.values()),
                "optimizer": steps[0].optimizer,
            }
            marks: Marks = {"step": (steps[0].stepped,)}
            yield CandidateFault("optimizer-misses-parameters", marks, evidence)
            return


def _modules_in(value: Any, name: str = "") -> list[tuple[str, nn.Module]]:
    """The modules in a list or dict, and the way to each."""
    held: Iterable[tuple[Any, Any]] = ()
    if is_a(value, dict):
        held = items(value)
    elif is_a(value, (list, tuple)) and not is_a(value, nn.Module):
        held = enumerate(value)
    named = [(f"{name}[{key!r}]", v) for key, v in held]
    nested = [m for path, v in named if is_a(v, (list, tuple, dict)) for m in _modules_in(v, path)]
    return [*((path, v) for path, v in named if is_a(v, nn.Module)), *nested]


def _lost(parameter: Tensor, held: set[int], gradients: Gradients) -> bool:
    """A parameter that got a gradient under watch which no optimizer will use."""
    has = parameter.requires_grad and parameter.grad is not None
    return has and id(parameter) not in held and gradients.may_have_filled(parameter)


class _Claim(IntEnum):
    """What links a parameter that nobody steps with an optimizer; the strongest link counts."""

    ALONE = 0  #: the optimizer steps in vain, and nothing speaks for another
    BESIDE = 1  #: one backward gave gradients to it and to what the optimizer holds
    NEWER = 2  #: it was made after the optimizer, which steps in vain
    ALIKE = 3  #: it has the shape of something that the optimizer steps in vain


def _missing(
    followed: Followed,
    gradients: Gradients,
    modules: list[nn.Module],
    leaves: list[Tensor],
    held: set[int],
    log: EventLog,
) -> dict[int, tuple[str, Tensor]]:
    """Parameters with gradients of this cell that nobody steps, and their names."""
    shapes = set() if followed.fed > gradients.since else {p.shape for p in followed.holds}
    named = (pair for module in modules for pair in module.named_parameters())
    alike = _alike(leaves, shapes)
    own = (leaf for leaf in leaves if _is_weight(leaf, followed, gradients))
    found: dict[int, tuple[str, Tensor]] = {}
    for name, p in chain(named, (("", leaf) for leaf in chain(alike, own))):
        if _lost(p, held, gradients) and not _written(p, log, gradients.filled_since(p)):
            found.setdefault(id(p), (name, p))
    return found


def _claims(
    followed: Followed,
    missing: Mapping[int, tuple[str, Tensor]],
    gradients: Gradients,
    modules: list[nn.Module],
    log: EventLog,
) -> dict[int, _Claim]:
    """What links parameters with an optimizer: those only that something does."""
    held = followed.holds
    never = [p for w in gradients.never(followed).values() if (p := w()) is not None]
    found = {}
    for key, (_, p) in missing.items():
        beside = gradients.are_filled_together(p, held)
        before = gradients.filled_here(p) < followed.stepped.clock
        in_vain = _steps_in_vain(followed, p, gradients, log)
        if not beside and not (in_vain and before):
            continue
        if _is_copy_of_trained(p, gradients, modules):
            continue
        shapes = {q.shape for q in (held if in_vain else never)}
        if any(True for _ in _fitting([p], shapes)):
            found[key] = _Claim.ALIKE
        elif shapes and _is_newer(p, followed, log):
            found[key] = _Claim.NEWER
        else:
            found[key] = _Claim.BESIDE if beside else _Claim.ALONE
    return found


def _is_copy_of_trained(parameter: Tensor, gradients: Gradients, modules: list[nn.Module]) -> bool:
    """Whether it is the copy, no part of the same model, of one that is stepped and got gradients
    in this cell: made for a task or as a target, it is not to be stepped."""
    sources = gradients.cuts.copied_from(parameter)
    sources = [s for s in sources if s.shape == parameter.shape and id(s) in gradients.held]
    keys = {id(s) for s in sources if gradients.filled_here(s)}
    owned = ({id(p) for p in root.parameters()} for root in modules)
    return bool(keys) and not any(id(parameter) in own and own & keys for own in owned)


def _steps_in_vain(
    followed: Followed, parameter: Tensor, gradients: Gradients, log: EventLog
) -> bool:
    """Whether no step of this cell has found a gradient since the parameter was made."""
    born = log.birth(address(parameter), parameter)
    return followed.fed <= max(gradients.since, 0 if born is None else born.clock)


def _missed(
    followed: Followed,
    missing: Mapping[int, tuple[str, Tensor]],
    linked: list[Tensor],
    gradients: Gradients,
    modules: list[nn.Module],
    log: EventLog,
) -> CandidateFault:
    """An optimizer does not hold these, while it may step others in vain; `linked` are those of
    them for which more speaks than that one backward filled them with what it holds."""
    in_vain = any(_steps_in_vain(followed, p, gradients, log) for p in linked)
    dead = [*gradients.never(followed).values()]
    if in_vain or not followed.with_gradient:
        dead = [weak(p) for p in followed.holds]
    dead = [w for w in dead if w() is not None]
    switched = [p for _, p in missing.values() if _is_unfrozen(p, followed, modules, log)]
    evidence = {
        "parameters": tuple(weak(p) for _, p in missing.values()),
        "names": tuple(name for name, _ in missing.values()),
        "count": len(missing),
        "dead": tuple(dead),
        "dead_count": len(dead),
        "unfrozen": len(switched) == len(missing),
        "newer": all(_is_newer(p, followed, log) for _, p in missing.values()),
        "optimizer": followed.optimizer,
    }
    # Without parameters stepped in vain, or where nothing links these to what is left out and the
    # rest trains, it may be a head or an input that is trained alone on purpose, unless what is
    # left out comes behind all that is trained: the weights of a loss of the program's own;
    # or the program asked for its gradients since the optimizer was made; or it stands where the
    # model had what the optimizer still holds.
    behind = all(gradients.used_behind(p, followed.with_gradient) for _, p in missing.values())
    ours = all(
        _is_of_own(p, modules) or (not name and _is_weight(p, followed, gradients))
        for name, p in missing.values()
    )
    sure = bool(dead and (linked or not followed.with_gradient)) or (behind and ours)
    sure = sure or len(switched) == len(missing)
    sure = sure or _are_replaced({*missing}, followed, modules)
    marks: Marks = {"step": (followed.stepped,)}
    return CandidateFault("optimizer-misses-parameters", marks, evidence, sure)


def _is_weight(leaf: Tensor, followed: Followed, gradients: Gradients) -> bool:
    """Whether a plain tensor that the loss of a step uses behind all that the step trains is one of
    the program's own weights: its gradient adds up, and nobody uses it."""
    let_go = leaf.is_leaf and leaf._base is None and gradients.by_hand.is_let_go(leaf)
    return let_go and gradients.used_behind(leaf, followed.with_gradient)


def _is_unfrozen(
    parameter: Tensor, followed: Followed, modules: list[nn.Module], log: EventLog
) -> bool:
    """Whether the flag of a frozen parameter was switched on between the making of an optimizer
    and a step of it that trains other parameters of the same model."""
    born = log.birth(address(parameter), parameter)
    if born is None or not born.switched or not _is_newer(parameter, followed, log):
        return False
    roots = ({id(p) for p in root.parameters()} for root in modules)
    return any(id(parameter) in own and own & followed.with_gradient for own in roots)


def _is_newer(parameter: Tensor, followed: Followed, log: EventLog) -> bool:
    """Whether a parameter was made, or made trainable, between the making of an optimizer and its
    last step."""
    born = log.birth(address(parameter), parameter)
    return born is not None and followed.given < born.clock < followed.stepped.clock


def _are_replaced(missing: set[int], followed: Followed, modules: list[nn.Module]) -> bool:
    """Whether one model has all that is missing, with parameters that the optimizer trains and
    others in the place of such as no model has any more."""
    owned = [{id(p) for p in root.parameters()} for root in modules]
    gone = [p for p in followed.holds if not any(id(p) in own for own in owned)]
    whole = (own for own in owned if missing <= own and own & followed.with_gradient)
    return any(id(p) in followed.with_gradient for p in gone) and any(whole)


def _is_of_own(parameter: Tensor, modules: list[nn.Module]) -> bool:
    """Whether a class of no installed package holds it directly, in training mode."""
    owners = (m for root in modules for m in root.modules())
    found = [m for m in owners if any(p is parameter for p in m._parameters.values())]
    return any(m.training and not is_library(_file_of(type(m))) for m in found)


def _file_of(kind: type) -> str:
    """Where a class was defined; "" for the program itself, whoever runs it."""
    module = None if kind.__module__ == "__main__" else sys.modules.get(kind.__module__)
    return str(getattr(module, "__file__", None) or "")


def _alike(leaves: list[Tensor], shapes: set[torch.Size]) -> Iterator[Tensor]:
    """Tensors of the user's that may be what the optimizer was to have: what it steps in vain has
    the same shapes, or was stacked."""
    return (t for t in _fitting(leaves, shapes) if t._base is None and t.is_leaf)


def _fitting(tensors: Iterable[Tensor], shapes: set[torch.Size]) -> Iterator[Tensor]:
    return (t for t in tensors if t.shape in shapes or (t.dim() > 1 and t.shape[1:] in shapes))


def _written(parameter: Tensor, log: EventLog, since: int) -> bool:
    """Whether the program updates the parameter by hand (its initialiser came earlier)."""
    kept = storage(parameter)
    return any(w.storage == kept and w.clock > since for w in log.wrote)
