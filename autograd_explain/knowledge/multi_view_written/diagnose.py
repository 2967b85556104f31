"""One of several views made by a single operation was written in place, or their base was."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

import torch

from autograd_explain.forward_flow import flows_out
from autograd_explain.inspect.dataflow import Each
from autograd_explain.inspect.facts import base_write, view_write
from autograd_explain.inspect.facts.called_back import library_frames
from autograd_explain.inspect.facts.leaf_write import find_leaf_write
from autograd_explain.inspect.facts.rebinding import value_goes_on
from autograd_explain.inspect.facts.user_hooks import ModuleHook, full_backward_hooks
from autograd_explain.inspect.facts.view_write import ViewWrite
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Confidence, Event, Finding, Place, Role, TensorFact, What, label

PATTERNS = (
    "view-multi-output-inplace",
    "view-multi-output-base-modified",
    "view-custom-function-inplace",
    "view-custom-function-base-modified",
)

EXAMPLE = {
    "tensor": "gate",
    "base": "projected",
    "maker": "projected.chunk(2, dim=1)",
    "made": "In[1]:10",
    "write": "gate.sigmoid_()",
    "place": "In[1]:11",
    "module": "",
    "holder": "",
}


class Write(Enum):
    """What was written."""

    BASE = "base"  #: the tensor that the views look into
    MODULE = "module"  #: a view, by an in-place module
    LIBRARY = "library"  #: a view that a full backward hook made, by code that is not the user's
    ROW = "row"  #: a view that a loop over a tensor made
    PART = "part"  #: one of several views that a call made


@dataclass(frozen=True)
class Details:
    """What the rewrites go by; `maker` is where the views are made."""

    tensor: str
    maker: Place | None
    write: Write
    base_read_later: bool = False  #: so that the write must reach it
    sets_values: bool = False  #: of a parameter, which belong to no graph
    in_tuple: bool = False
    module: str = ""
    owner: str = ""  #: the outermost module with a name that the module is a part of
    called_by_torch: bool = False
    reached: Place | None = None  #: where a changed base is read
    hook: ModuleHook | None = None  #: the full backward hook that made the view


def diagnose(scene: Scene) -> Finding[Details] | None:
    if scene.match.pattern.endswith("base-modified"):
        return _of_base(scene)
    found = view_write.find(scene)
    if found is not None and scene.match.pattern == "view-multi-output-inplace":
        found = view_write.made_together(scene, found)
    if found is not None:
        return _of_view(scene, found)
    hook = _hook(scene)
    return None if hook is None else _of_hook(scene, hook)


def _hook(scene: Scene) -> ModuleHook | None:
    """The one full backward hook of the program, where such a hook made the view."""
    hooks = full_backward_hooks(scene.program) if _of_function(scene) == "function" else []
    return hooks[0] if len(hooks) == 1 else None


def _of_hook(scene: Scene, hook: ModuleHook) -> Finding[Details]:
    """The write is in a library: what the user can change is the hook."""
    found = [(name, module) for name, module in view_write.modules(scene) if module._backward_hooks]
    one = len({id(module) for _, module in found}) == 1
    hooked = view_write.hooked(scene) or [name for name, _ in found if one]
    hooked = [name for name in hooked if not name.startswith("self.")]
    place = scene.place
    return Finding(
        cause="multi_view_written",
        confidence=Confidence.LIKELY,
        facts={
            "tensor": hook.module,
            "base": "",
            "maker": hook.hook,
            "made": label(hook.place),
            "write": "" if place is None else place.source,
            "place": label(place),
            "module": "",
            "holder": "",
        },
        tensors=(TensorFact(Role.CULPRIT, tuple(dict.fromkeys((hook.module, *hooked)))),),
        events=(Event(What.CAUSE, hook.place), scene.failed()),
        variant="hook",
        details=Details(tensor=hook.module, maker=None, write=Write.LIBRARY, hook=hook),
    )


def _of_view(scene: Scene, found: ViewWrite) -> Finding[Details]:
    culprit = view_write.fact(scene, found)
    base = view_write.base_names(scene, found)
    place = scene.place
    known = found.written is not None or bool(found.module)
    in_tuple, variant = view_write.in_tuple(scene, found), _variant(scene, found)
    hook, hooked = _hook(scene), _hooked(scene, found)
    # A module of a library writes: what there is to change of the user's is the hook.
    by_library = hook is not None and found.written is None and bool(library_frames(scene))
    registered = (Event(What.CAUSE, hook.place),) if hook is not None and by_library else ()
    names, made = (*culprit.names, *hooked), scene.place_at(found.maker)
    if registered and hooked and found.module not in hooked:
        names, made, variant = (*hooked, *culprit.names), registered[0].place, "hook"
    culprit = replace(culprit, names=tuple(dict.fromkeys(names)))
    return Finding(
        cause="multi_view_written",
        confidence=Confidence.PROVEN if known else Confidence.LIKELY,
        facts={
            "tensor": culprit.names[0] if culprit.names else "",
            "base": base[0] if base else "",
            "maker": "" if found.maker is None else found.maker.text,
            "made": label(made),
            "write": "" if place is None else place.source,
            "place": label(place),
            "module": found.module,
            "holder": "tuple" if in_tuple else "",
        },
        tensors=(culprit,),
        events=(
            *registered,
            view_write.changed(scene, found),
            *view_write.created(scene, found),
            scene.failed(),
        ),
        variant=variant,
        details=Details(
            tensor=culprit.names[0] if culprit.names else "",
            maker=scene.place_at(found.maker),
            write=_write(scene, found),
            base_read_later=any(_base_reads(scene, found)),
            sets_values=_sets_values(scene, found),
            in_tuple=in_tuple,
            module=found.module,
            owner=_owner(scene, found.module),
            called_by_torch=_of_function(scene) == "function",
            hook=hook,
        ),
    )


def _hooked(scene: Scene, found: ViewWrite) -> list[str]:
    """The module whose hook made the view that a module, called by a library, writes."""
    by_module = found.written is None and found.module
    return view_write.hooked(scene) if by_module and _of_function(scene) == "function" else []


def _owner(scene: Scene, module: str) -> str:
    """`explainer.net` of `explainer.net.features[1]`."""
    named = {name for name, _ in scene.names.held_modules}
    ends = (match.start() for match in re.finditer(r"[.[]|$", module))
    return next((module[:end] for end in ends if module[:end] in named), "")


def _write(scene: Scene, found: ViewWrite) -> Write:
    if found.module:
        return Write.MODULE
    return Write.ROW if _is_loop(scene, found) else Write.PART


def _base_reads(scene: Scene, found: ViewWrite) -> Iterator[ast.Name | ast.Attribute]:
    """Where the function of the write reads the base below it."""
    base = view_write.base_expression(scene, found)
    if base is None or found.written is None or found.maker is None:
        return
    line = found.written.node.lineno
    for node in ast.walk(base.scope.body):
        if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == base.text:
            if node.lineno > line and isinstance(node.ctx, ast.Load):
                yield node


def _sets_values(scene: Scene, found: ViewWrite) -> bool:
    """Whether the base is a parameter that is initialised or updated part by part, and the
    function's result is not computed of what was written."""
    write, base = find_leaf_write(scene), view_write.base_expression(scene, found)
    if write is None or base is None or isinstance(base.node, ast.AugAssign):
        return False
    value = scene.slicer.value(base) if write.leaf is None else write.leaf
    if not is_a(value, torch.nn.Parameter) or not value.requires_grad:
        return False
    on = scene.place is None or value_goes_on(scene.program, scene.place, base.node)
    scope = base.scope.body
    on = on or (
        not isinstance(scope, ast.Module)
        and any(flows_out(scope, node) for node in _base_reads(scene, found))
    )
    return not on and replace(write, leaf=value).sets_values


def _is_loop(scene: Scene, found: ViewWrite) -> bool:
    """Whether a loop over a tensor unbound it; a loop over `x.unbind(1)` names its views itself,
    and what a function cut with `split` torch says to be of that."""
    maker, said = found.maker, scene.match.captures.get("op", "Unbind")
    if maker is None or maker.called in base_write.MAKES_PARTS or not said.startswith("Unbind"):
        return False
    return bool(maker.path) and maker.path[0] is Each.ITEM


def _variant(scene: Scene, found: ViewWrite) -> str:
    return _of_function(scene) or ("loop" if _is_loop(scene, found) else "")


def _of_function(scene: Scene) -> str:
    if not scene.match.pattern.startswith("view-custom-function"):
        return ""
    return "function" if "BackwardHookFunction" in scene.incident.message else "own_function"


def _of_base(scene: Scene) -> Finding[Details] | None:
    found = base_write.find(scene)
    if found is None:
        return None
    slicer = scene.slicer
    place = slicer.place_of(found.scope.scope, found.write.statement)
    names = (found.view.text, found.write.target_text, *found.names)
    return Finding(
        cause="multi_view_written",
        confidence=Confidence.LIKELY,
        facts={
            "tensor": found.view.text,
            "base": found.write.target_text,
            "maker": found.maker.text,
            "made": label(scene.place_at(found.maker)),
            "write": place.source,
            "place": label(place),
            "module": "",
            "holder": "",
        },
        tensors=(TensorFact(Role.CULPRIT, tuple(dict.fromkeys(names))),),
        events=(
            Event(What.CHANGED, place, found.write.op),
            scene.event_at(What.CREATED, found.maker),
            scene.failed(),
        ),
        variant="base",
        details=Details(
            tensor=found.view.text,
            maker=scene.place_at(found.maker),
            write=Write.BASE,
            reached=scene.place_at(found.reached),
        ),
    )
