"""Leaves: which tensor is asked for its gradient, where that is read, which a module knows."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Edits
from ..engine.cst_tools import (
    called_name,
    keyword,
    make,
    positional_parameters,
    repeatable,
    single_targets,
    targets,
    without,
)
from ..engine.draft import Draft
from ..transforms.casts import requires_grad_last, without_flag
from ..transforms.functional_layer import parameter_as_argument
from ..transforms.training_step import is_parameter, module_list, parameter_attribute
from .site import Change, Site


def flag_last(site: Site) -> Iterator[Change]:
    """`torch.tensor(v, requires_grad=True).double()` -> the same with the result as the leaf."""
    if site.value is not None:
        yield site.change("leaf_last", site.value, site.made(requires_grad_last), group="leaf")


def new_leaf(site: Site) -> Iterator[Change]:
    """`x = f(y)` -> `x = f(y).detach().requires_grad_()`."""
    value = site.value
    if isinstance(value, (cst.Call, cst.BinaryOperation, cst.Attribute, cst.Subscript)):
        if isinstance(site.statement, cst.Return):
            return
        for ending in ("requires_grad_()", "detach().requires_grad_()"):
            yield site.change("new_leaf", value, site.called_on, ending, value, group=ending)


def no_flag(site: Site) -> Iterator[Change]:
    """`torch.rand(n, requires_grad=True)` -> `torch.rand(n)`; `x.requires_grad_()` -> `x`."""
    for call in site.calls:
        if keyword(call, "requires_grad") or called_name(call) in ("requires_grad_", "Parameter"):
            plain = without_flag(call)
            yield site.change("no_flag", call, site.replaced, call, plain, group="flag")


def registered(site: Site) -> Iterator[Change]:
    """A list of layers as a ModuleList, a tensor as a Parameter: not what a method computes in
    every call, whose graph a parameter would end."""
    value, scope = site.value, site.tree.scope_of(site.statement)
    once = not isinstance(scope, cst.FunctionDef) or scope.name.value == "__init__"
    if value is not None and any(isinstance(t, cst.Attribute) for t in targets(site.statement)):
        for how in (module_list, parameter_attribute) if once else ():
            yield site.change("registered", value, site.made(how), group=how.__name__)


def as_argument(site: Site) -> Iterator[Change]:
    """`self.fc.weight = nn.Parameter(w)`, `self.fc(x)` -> the layer called with `w` as its weight,
    which no module owns then."""
    made, given = site.value, targets(site.statement)
    if isinstance(made, cst.Call) and any(isinstance(t, cst.Attribute) for t in given):
        if is_parameter(site.imports, made):
            yield site.change("as_argument", given[0], site.made(parameter_as_argument))


def kept_gradient(site: Site) -> Iterator[Change]:
    """`x.retain_grad()` on a line behind the statement that gives x its value."""
    block = isinstance(site.statement, (cst.For, cst.With))
    leaves = [] if block else single_targets(site.statement)
    named = [n for n in leaves if isinstance(n, (cst.Name, cst.Attribute)) and repeatable(n)]
    for chosen in [[leaf] for leaf in named] + ([named] if len(named) > 1 else []):
        code = ", ".join(map(site.tree.code, chosen))
        yield site.change("retain_grad", code, _retained, site, *chosen)
    if isinstance(site.statement, cst.FunctionDef):
        for name in positional_parameters(site.statement):
            if name != "self":
                yield site.change("retain_grad", name, site.opening, f"{name}.retain_grad()")


def whole_argument(site: Site) -> Iterator[Change]:
    """A True or False given to a call turned round, or left out."""
    for call in site.calls:
        for arg in call.args:
            word = arg.value.value if isinstance(arg.value, cst.Name) else ""
            if arg.keyword is None or word not in ("True", "False") or arg.keyword.value in _OWN:
                continue
            other = cst.Name("False" if word == "True" else "True")
            code = f"{arg.keyword.value}={other.value}"
            yield site.change("turn_flag", code, site.replaced, arg.value, other, group=code)
            yield site.change("turn_flag", code, site.replaced, call, without(call, arg))


#: Flags that other operators set, and such as would agree with a reference whatever is meant.
_OWN = frozenset({"requires_grad", "inplace", "retain_graph", "create_graph"})


def _retained(site: Site, *tensors: cst.BaseExpression) -> Edits | None:
    calls = [make("{x}.retain_grad()", x=tensor) for tensor in tensors]
    return Draft(site.tree).after(site.statement, calls).edits()
