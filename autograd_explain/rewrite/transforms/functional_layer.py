"""A computed tensor used in the place of a parameter, without making a parameter of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import fresh
from ..analysis.inplace_writes import without_data
from ..engine.cst_tools import called_name, called_on, dotted, expression, find, make, walk
from ..engine.draft import Draft
from ..engine.imports import torch_at
from ..engine.tree import Statement, Tree, statement_at, statements_in
from .grad_mode import is_off


@dataclass(frozen=True, eq=False)
class _Made:
    """`owner.name = Parameter(value)`, `owner.name.data = value`, `owner.name.copy_(value)`.

    `whole` is the statement, or the block of simple statements under no_grad that it stands in.
    """

    statement: Statement
    whole: Statement
    target: cst.Attribute
    owner: str
    value: cst.BaseExpression

    @property
    def name(self) -> str:
        return self.target.attr.value


def parameter_as_argument(program: Program, place: Place) -> Edits | None:
    """`self.fc.weight = nn.Parameter(w)`, `self.fc(x)` -> `weight = w`,
    `torch.func.functional_call(self.fc, {"weight": weight}, (x,))`; the same for
    `self.fc.weight.data = w` and `self.fc.weight.copy_(w)`.

    A parameter of the object itself (`self.weight`) is a local name for the rest of the function.
    None where the function does anything else with the layer.
    """
    (tree, own), torch = statement_at(program, place), torch_at(program, place)
    function = None if own is None else tree.scope_of(own)
    if own is None or torch is None or not isinstance(function, cst.FunctionDef):
        return None
    inside = [s for s in tree.statements if tree.scope_of(s) is function]
    every = [m for s in inside if (m := _made(tree, s)) is not None]
    owner = next((m.owner for m in every if m.statement is own), None)
    made = [m for m in every if m.owner == owner]
    used = _uses(tree, inside, function, made) if made else None
    if not used:
        return None
    names = {m.name: fresh(tree, own, m.name) for m in made}
    given = ", ".join(f'"{name}": {local}' for name, local in names.items())
    draft = _assigned(Draft(tree), made, names)
    for node in used:
        if isinstance(node, cst.Attribute):
            draft.replace(node, cst.Name(names[node.attr.value]))
        else:
            draft.change(node, partial(functional, f"{torch}.func.functional_call", given))
    return draft.edits()


def _made(tree: Tree, statement: Statement) -> _Made | None:
    """The parameter that a statement gives a value, and that value."""
    written, call = called_on(statement, "copy_"), getattr(statement, "value", None)
    value = call.args[0].value if isinstance(call, cst.Call) and call.args else None
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        written = statement.targets[0].target
        if without_data(written) is not written:
            value = statement.value
        elif called_name(statement.value) != "Parameter":
            return None
    target = None if written is None else without_data(written)
    owner = dotted(target.value) if isinstance(target, cst.Attribute) else None
    if not isinstance(target, cst.Attribute) or owner is None or value is None:
        return None
    outer = tree.outer(statement)
    if isinstance(outer, cst.With) and len(outer.items) == 1 and is_off(tree.imports, outer):
        if all(isinstance(s, (cst.Assign, cst.Expr)) for s in statements_in(outer.body)):
            return _Made(statement, outer, target, owner, value)
    return _Made(statement, statement, target, owner, value)


def _uses(
    tree: Tree, inside: Sequence[Statement], function: cst.FunctionDef, made: Sequence[_Made]
) -> list[cst.Attribute | cst.Call]:
    """The calls of the layer, or the readings of the object's own parameter, all of them behind
    the assignments in one block with them, or in the function's own; [] where it is used
    otherwise, or where another method reads the parameter."""
    own, block, last = made[0].owner == "self", tree.block_of(made[0].whole), made[-1].whole
    codes = {f"self.{m.name}" if own else m.owner for m in made}
    targets = [m.target if own else m.whole for m in made]
    read = [n for s in inside for code in codes for n in find(tree, s, code)]
    found: list[cst.Attribute | cst.Call] = []
    for node in (n for n in read if not any(tree.inside(n, t) for t in targets)):
        use = node if own else tree.parents[node]
        if not own and not _is_plain(use, node):
            return []
        if tree.start(use) < tree.start(last) or tree.inside(use, last):
            return []
        if block is None or (block is not function.body and not tree.inside(use, block)):
            return []
        assert isinstance(use, (cst.Attribute, cst.Call))
        found.append(use)
    others = [s for s in tree.siblings(function)[0] if s is not function] if own else []
    together = all(tree.block_of(m.whole) is block for m in made)
    return found if together and not any(_reads(s, codes) for s in others) else []


def _is_plain(call: cst.CSTNode, function: cst.CSTNode) -> bool:
    """Whether a node is a call of the function whose arguments are given by position."""
    called = isinstance(call, cst.Call) and call.func is function and bool(call.args)
    return called and not any(a.star or a.keyword is not None for a in call.args)  # type: ignore[attr-defined]


def _reads(method: Statement, codes: set[str]) -> bool:
    """Whether a method other than the constructor knows one of the parameters."""
    known = not isinstance(method, cst.FunctionDef) or method.name.value != "__init__"
    return known and any(dotted(n) in codes for n in walk(method))


def _assigned(draft: Draft, made: Sequence[_Made], names: dict[str, str]) -> Draft:
    """Local names in the place of the parameters; the block around them goes."""
    local = {m.statement: make(f"{names[m.name]} = {{v}}", v=m.value) for m in made}
    for whole in dict.fromkeys(m.whole for m in made):
        inside = statements_in(whole.body) if isinstance(whole, cst.With) else [whole]
        draft.instead(whole, [local.get(s) or draft.piece(s) for s in inside])
    return draft


def functional(function: str, given: str, call: cst.Call) -> cst.BaseExpression:
    """`functional_call(layer, {given}, (x,))` for a call `layer(x)` by position."""
    args = cst.Tuple([cst.Element(arg.value) for arg in call.args])
    return expression(f"{function}({{m}}, {{{given}}}, {{a}})", m=call.func, a=args)
