"""Where the program goes through the parameters of which it asks the gradients, in their order."""

from __future__ import annotations

import ast

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.torch_call import calls_in, maker
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import called_name

_LISTS = ("parameters", "named_parameters")
#: What keeps the order of what it is given.
_IN_ORDER = frozenset(
    "list tuple zip enumerate reversed iter map grad parameters_to_vector vector_to_parameters "
    "tree_map".split()
)


def parameter_lists(scene: Scene, given: ExprAt | None) -> tuple[Place, ...]:
    """The calls `model.parameters()` and `model.named_parameters()` whose order has to stay that of
    the gradients, that behind `given` first; () where it comes of no such call.

    What is kept by name, what an optimizer is given, and loops elsewhere that set flags or fill in
    values are not among them.
    """
    origin = None if given is None else _call_behind(scene, given)
    if origin is None or origin.receiver is None or given is None:
        return ()
    bodies = {id(given.scope.body), id(origin.scope.body)}
    found = [origin]
    for other in calls_in(scene, *_LISTS):
        inside = id(other.scope.body) in bodies
        if other.node is not origin.node and _is_of_same(scene, origin, other):
            found += [other] if _is_in_order(scene, other, inside=inside) else []
    return scene.places_at(found)


def _call_behind(scene: Scene, given: ExprAt) -> ExprAt | None:
    spot = maker(scene, given) or given
    calls = [n for n in ast.walk(spot.node) if called_name(n) in _LISTS]
    call = spot.inside(calls[0]) if len(calls) == 1 and isinstance(calls[0], ast.Call) else None
    in_order = call is not None and _is_in_order(scene, call, inside=True)
    return call if in_order and _hands_over_parameters(spot.node) else None


def _hands_over_parameters(node: ast.AST) -> bool:
    """Whether a comprehension gives the parameters themselves, no copies of them."""
    element = getattr(node, "elt", None)
    return element is None or isinstance(element, ast.Name)


def _is_of_same(scene: Scene, origin: ExprAt, other: ExprAt) -> bool:
    """Whether both calls are of one module: by the live object, else by the text of one function or
    of one class's methods."""
    owner, its = origin.receiver, other.receiver
    if owner is None or its is None:
        return False
    one, two = scene.slicer.value(owner), scene.slicer.value(its)
    if one is not MISSING and two is not MISSING:
        return one is two
    return owner.text == its.text and _definition(origin) is _definition(other)


def _definition(spot: ExprAt) -> ast.AST:
    """The class around, of a method's `self.net`, else the function."""
    around = spot.scope.source.around(spot.node)
    method = next((n for n in around if isinstance(n, ast.ClassDef)), None)
    return spot.scope.body if method is None or not spot.text.startswith("self.") else method


def _is_in_order(scene: Scene, call: ExprAt, *, inside: bool) -> bool:
    """Whether what reads the list goes by the order; `inside` what the gradients' own function
    does."""
    parent, outer, *_ = (*call.scope.source.around(call.node), None, None)
    if isinstance(parent, ast.comprehension):
        return not parent.ifs and not isinstance(outer, ast.DictComp)
    if isinstance(parent, ast.Call):
        with_others = [a for a in parent.args if called_name(a) in _LISTS and a is not call.node]
        return called_name(parent) in _IN_ORDER and not with_others
    if isinstance(parent, ast.For):
        return inside and call.called == "parameters" and not _sets_flags(parent)
    return isinstance(parent, (ast.Assign, ast.Return))


def _sets_flags(loop: ast.For) -> bool:
    return any("requires_grad" in getattr(n, "attr", "") for n in ast.walk(loop))
