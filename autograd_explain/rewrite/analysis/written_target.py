"""Which tensor a subscript writes to: `x` in `x[2:] = v`, `xs[0]` in `xs[0] += 1` for a list xs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import libcst as cst
from libcst import matchers as m

from ..engine.cst_tools import dotted, same, targets, walk
from ..engine.imports import Imports
from ..engine.tree import Statement, Tree
from .effects import parameter_names
from .inplace_writes import base_of, without_data, words, written_in

Kind = Literal["tensor", "container"]

_CONTAINERS = (
    cst.List,
    cst.Dict,
    cst.Set,
    cst.Tuple,
    cst.ListComp,
    cst.DictComp,
    cst.GeneratorExp,
)
_CONTAINER_CALLS = words("list dict tuple set sorted zip defaultdict OrderedDict deque Counter")
_SEQUENCES = words(
    "split chunk unbind tensor_split hsplit vsplit dsplit meshgrid parameters named_parameters "
    "state_dict keys values items children modules buffers tolist copy pop get"
)


def written_tensor(
    tree: Tree,
    statement: Statement,
    place: cst.BaseExpression,
    target: str | None = None,
) -> cst.BaseExpression | None:
    """The expression for the tensor that a write to `place` changes; None where text cannot tell.

    `target` is that tensor as the user writes it, where the caller knows.
    """
    place = without_data(place)
    if not isinstance(place, cst.Subscript):
        base = base_of(place)
        return base if target is None or same(tree, base, target) else None
    layers = list(_layers(place))
    if target is not None:
        return next((n for n in layers if same(tree, n, target)), None)
    whole_is_written = not isinstance(statement, cst.Assign)
    if not whole_is_written:
        layers = layers[:-1]
    kind = kind_of(tree, layers[0])
    if kind == "tensor" or _slices(place if len(layers) == 1 else layers[1]):
        return layers[0]
    if kind == "container" or _keyed(layers[1] if len(layers) > 1 else place):
        return layers[1] if len(layers) > 1 else None
    # An item assigned to a list or dict writes no tensor, so what was written is one.
    return layers[0] if len(layers) == 1 and not whole_is_written else None


def written_parts(
    tree: Tree, statement: Statement, target: str | None = None
) -> list[cst.BaseExpression]:
    """The tensors that a statement's own writes change, each once; [] where one is not known."""
    places = written_in(tree, statement)
    parts = [written_tensor(tree, statement, place, target) for place in places]
    if target is not None:
        parts = [p for p in parts if p is not None]
    if any(p is None for p in parts):
        return []
    return list({tree.code(p): p for p in parts if p is not None}.values())


def kind_of(tree: Tree, node: cst.BaseExpression) -> Kind | None:
    """What the assignments to a name or attribute show it to be."""
    code = dotted(node)
    if code is None:
        return None
    found = {_kind(tree.imports, value) for value in _values(tree, node, code)}
    return found.pop() if len(found) == 1 else None


def _layers(place: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`x`, `x[0]`, `x[0][1]` for the last of them."""
    if isinstance(place, cst.Subscript):
        yield from _layers(without_data(place.value))
    yield place


def _values(tree: Tree, node: cst.BaseExpression, code: str) -> Iterator[cst.BaseExpression]:
    """Every value assigned to a name in the function and, for globals, in all cells."""
    scope = tree.scope_of(node)
    own = scope if isinstance(scope, cst.FunctionDef) and "." not in code else tree.module
    local = list(assigned(tree, own, code))
    if local or (isinstance(scope, cst.FunctionDef) and code in parameter_names(scope)):
        yield from local
        return
    for other in tree.namespace:
        if other is not tree:
            yield from assigned(other, other.module, code)


def assigned(tree: Tree, where: cst.CSTNode, code: str) -> Iterator[cst.BaseExpression]:
    """The values that the statements inside a node assign to a name or attribute."""
    for node in walk(where):
        if not isinstance(node, (cst.Assign, cst.AnnAssign)) or node.value is None:
            continue
        if any(same(tree, target, code) for target in targets(node)):
            yield node.value


def _kind(imports: Imports, value: cst.BaseExpression) -> Kind | None:
    if isinstance(value, _CONTAINERS):
        return "container"
    if not isinstance(value, cst.Call):
        return None
    full, path = imports.full(dotted(value.func)), dotted(value.func) or ""
    if full.startswith(("torch.nn.Parameter", "torch.nn.Module")) and full.endswith(
        ("List", "Dict")
    ):
        return "container"
    last = value.func.attr.value if isinstance(value.func, cst.Attribute) else path
    if last in _SEQUENCES or path in _CONTAINER_CALLS or full.startswith("collections."):
        return "container"
    made = full.startswith(("torch.nn.Parameter", "torch.nn.parameter.Parameter"))
    function = full.startswith("torch.") and full.count(".") == 1
    new = last in {"clone", "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"}
    return "tensor" if made or function or new or last == "requires_grad_" else None


def _slices(place: cst.BaseExpression) -> bool:
    """Whether only a tensor takes such an index: `x[2:]`, `x[:, t]`, `x[...]`, `x[x < 0]`."""
    return isinstance(place, cst.Subscript) and any(
        m.matches(element.slice, _OF_TENSOR) for element in place.slice
    )


def _keyed(place: cst.BaseExpression) -> bool:
    """Whether the index is a string: a dict of tensors."""
    text = m.SubscriptElement(m.Index(m.SimpleString() | m.FormattedString()))
    return m.matches(place, m.Subscript(slice=[text]))


_OF_TENSOR = m.Slice() | m.Index(
    m.Name("None") | m.UnaryOperation(m.BitInvert()) | m.Ellipsis() | m.Comparison()
)
