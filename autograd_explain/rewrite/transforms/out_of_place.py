"""`x.add_(1)` -> `x = x.add(1)`: the same value in a new tensor, under the old name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst
from libcst import matchers as m

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import (
    binding_around,
    can_rebind,
    is_own_local,
    loop_element_is_unseen,
    read_later,
)
from ..analysis.inplace_writes import (
    RESHAPES,
    InplaceCall,
    base_of,
    inplace_calls,
    is_view,
    without_data,
)
from ..analysis.written_target import written_tensor
from ..engine.cst_tools import (
    expression,
    find,
    head,
    make,
    named,
    pairs,
    repeatable,
    runs_once,
    same,
    targets,
    walk,
)
from ..engine.draft import Draft, only
from ..engine.edits import then
from ..engine.tree import Statement, Tree, statement_at, tree_at
from .clone import functional_write
from .grad_mode import blocks_around

_MOST_WRITES = 8  #: to one name that are made so together


def out_of_place(program: Program, place: Place, target: str | None = None) -> Edits | None:
    """Make the in-place operation at `place` compute a new tensor and give it the old name.

    Knows augmented assignments, `x.data = value`, methods and chains of methods
    (`x.mul_(a).add_(b)`), functions (`torch.relu_(x)`, `F.relu(x, inplace=True)`,
    `nn.init.ones_(x)`) and `out=`.  `target` is the
    written tensor as the user writes it and chooses among several writes; `xs[0]` says that xs is
    a container of tensors.  None for writes to parts of a tensor (see `functional_write`) and
    where the new tensor would not reach those who read the old one.
    """
    tree = tree_at(program, place)
    sites = (_Site(tree, statement, target) for statement in tree.candidates(place))
    return only(draft for site in sites for draft in _drafts(site))


def _drafts(site: _Site) -> Iterator[Draft]:
    own = _own_write(site)
    if own is not None and site.means(own[0]):
        draft, written = Draft(site.tree), without_data(own[0])
        if site.can_assign(written):
            draft.instead(site.statement, [make("{x} = {v}", x=written, v=own[1])])
        yield draft
    for call in site.calls:
        if site.means(call.target):
            yield _new_value(site, call)


def _own_write(site: _Site) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """What `x += 1` or `x.data = value` writes, and the new value, computed with the tensor itself
    where the write is hidden."""
    own = site.statement
    target = targets(own)[0] if isinstance(own, (cst.AugAssign, cst.Assign)) else None
    written = None if target is None else without_data(target)
    if target is None or written is None:
        return None
    hidden = written is not target
    if isinstance(own, cst.AugAssign):
        right = _in_graph(site, own.value, written) if hidden else own.value
        return target, operated(written, own, right)
    if isinstance(own, cst.Assign) and hidden and len(own.targets) == 1:
        return target, _in_graph(site, own.value, written)
    return None


def new_tensor(program: Program, place: Place) -> Edits | None:
    """A new tensor instead of the write at a place, to the whole or to a part of it."""
    return out_of_place(program, place) or functional_write(program, place)


def value_of_write(program: Program, place: Place) -> str | None:
    """What the statement at `place` gives the tensor that it writes in place, as an expression that
    writes nothing: `p - lr * g` of `p.data -= lr * g` and of `p.data.sub_(lr * g)`."""
    tree, statement = statement_at(program, place)
    if statement is None:
        return None
    site = _Site(tree, statement)
    own = _own_write(site)
    value = None if own is None else own[1]
    for call in site.calls:
        if isinstance(statement, cst.Expr) and call.node is statement.value:
            value = _in_graph(site, call.value, call.target)
    return None if value is None else tree.code(value)


@dataclass(frozen=True)
class _Site:
    """A statement with an in-place operation, and which tensor the caller means by it."""

    tree: Tree
    statement: Statement
    target: str | None = None

    @property
    def calls(self) -> list[InplaceCall]:
        return inplace_calls(self.tree, self.statement)

    def means(self, written: cst.BaseExpression) -> bool:
        meant = (written, without_data(written))
        return self.target is None or any(same(self.tree, node, self.target) for node in meant)

    def assigns(self, written: cst.BaseExpression) -> bool:
        """`x = x.add_(1)`: the name already gets the new value."""
        given, code = pairs(self.statement), self.tree.code(written)
        return len(given) == 1 and same(self.tree, given[0][0], code)

    def can_assign(self, written: cst.BaseExpression) -> bool:
        """Whether `written = …` is possible, evaluates nothing twice and reaches every reader."""
        if isinstance(written, cst.Tuple):
            return all(self.can_assign(e.value) for e in written.elements)
        if isinstance(written, cst.Subscript):
            part = written_tensor(self.tree, self.statement, written, self.target)
            if part is not written:  # a part of a tensor
                return False
        elif not isinstance(written, cst.Name | cst.Attribute) or is_view(written):
            return False
        if self.loses_graph(written):
            return False
        return repeatable(written) and can_rebind(self.tree, self.statement, written)

    def loses_graph(self, written: cst.BaseExpression) -> bool:
        """Whether the new tensor is made under no_grad and read after that block.

        A write under no_grad leaves the tensor its history; a new tensor has none.
        """
        blocks = blocks_around(self.tree, self.statement)
        return isinstance(written, cst.Name) and any(
            read_later(self.tree, block, written.value) for block in blocks
        )


def operated(
    left: cst.BaseExpression, statement: cst.AugAssign, right: cst.BaseExpression
) -> cst.BaseExpression:
    """`x + 1` of `x += 1`."""
    sign = cst.Module(()).code_for_node(statement.operator).strip().removesuffix("=")
    return expression(f"{{x}} {sign} {{y}}", x=left, y=right)


def _in_graph(
    site: _Site, value: cst.BaseExpression, written: cst.BaseExpression
) -> cst.BaseExpression:
    """What is computed for a hidden write, `x.data.div_(x.data.norm())`, with the tensor itself:
    the write is to be recorded, and so is what it takes from there."""
    code = site.tree.code(written)

    def unhidden(node: Any, _: object) -> Any:
        inner = without_data(node)
        return inner if inner is not node and same(site.tree, inner, code) else node

    made = m.replace(value, m.Attribute() | m.Call(), unhidden)
    assert isinstance(made, cst.BaseExpression)
    return made


def _new_value(site: _Site, call: InplaceCall) -> Draft:
    """The call's value without the write; the write becomes an assignment where it is needed."""
    draft, statement = Draft(site.tree), site.statement
    if call.hidden:
        call = replace(call, value=_in_graph(site, call.value, call.target))
    whole = getattr(statement, "value", None) is call.node
    if whole and isinstance(statement, cst.Expr):
        if site.can_assign(call.target):
            draft.instead(statement, [make("{x} = {v}", x=call.target, v=call.value)])
    elif (whole and site.assigns(call.target)) or _is_temporary(site, call):
        draft.replace(call.node, call.value)
    elif _may_come_first(site, call) and site.can_assign(call.target):
        draft.before(statement, [make("{x} = {v}", x=call.target, v=call.value)])
        draft.replace(call.node, call.target)
    return draft


def _is_temporary(site: _Site, call: InplaceCall) -> bool:
    """Whether nobody can look at the written tensor once the statement is done."""
    base = base_of(call.target)
    if base is call.target and isinstance(base, cst.Name):
        method = call.node.func if isinstance(call.node.func, cst.Attribute) else None
        reshaped = method is not None and method.value is base and method.attr.value in RESHAPES
        if reshaped and _is_part_used_once(site, base):
            return True
    if isinstance(base, cst.Name) and is_own_local(site.tree, site.statement, base):
        rebound = any(same(site.tree, t, base.value) for t in targets(site.statement))
        return rebound or not read_later(site.tree, site.statement, base.value)
    if isinstance(base, cst.Name):
        return loop_element_is_unseen(site.tree, site.statement, base.value)
    return isinstance(base, cst.Call | cst.BinaryOperation | cst.UnaryOperation)


def _is_part_used_once(site: _Site, node: cst.Name) -> bool:
    """Whether nobody sees what shape a part has: `[h.squeeze_(0) for h in x.split(1)]`."""
    bound = binding_around(site.tree, node)
    if bound is None:
        return False
    around, parts = bound
    loop = isinstance(around, cst.For)
    found = len([*named(site.statement if loop else around, node.value)])
    later = loop and read_later(site.tree, site.statement, node.value)
    return is_view(parts) and found == (1 if loop else 2) and not later


def _may_come_first(site: _Site, call: InplaceCall) -> bool:
    """Whether the write may as well happen on a line before the statement."""
    tree, statement = site.tree, site.statement
    heads_run_once = (cst.BaseSmallStatement, cst.If, cst.For, cst.With)
    if not isinstance(statement, heads_run_once) or tree.block_of(statement) is None:
        return False
    if not runs_once(tree, call.node, statement):
        return False
    inside = set(walk(call.node))
    readers = find(tree, statement, tree.code(call.target))
    earlier = (
        node
        for node in head(statement)
        if isinstance(node, cst.Call)
        and tree.start(node) < tree.start(call.node)
        and not tree.inside(call.node, node)
    )
    return inside.issuperset(readers) and not any(earlier)


def every_write(
    program: Program,
    edits: Edits | None,
    place: Place,
    name: str,
    around: Callable[[Tree], Iterable[cst.CSTNode]],
    *,
    parts: bool = False,
) -> Edits | None:
    """`edits`, and on top of them new tensors instead of every write to `name` inside the nodes
    that `around` finds; None where the write at `place` cannot be one.

    `parts` also takes a write at `place` to a part of the tensor (`x[mask] = 0`).
    """

    def make(edited: Program, now: Place) -> Edits | None:
        made = out_of_place(edited, now, name)
        return functional_write(edited, now, name) if made is None and parts else made

    def of_next(edited: Program, now: Place) -> Edits | None:
        tree = tree_at(edited, now)
        outer = list(around(tree))
        small = (s for s in tree.statements if isinstance(s, cst.BaseSmallStatement))
        inside = (tree.place(s) for s in small if any(tree.inside(s, node) for node in outer))
        return next((made for p in inside if (made := out_of_place(edited, p, name))), None)

    line = replace(place, span=None)
    found = then(program, edits, make, line)
    for _ in range(_MOST_WRITES):
        following = then(program, found, of_next, line)
        if following is None:
            break
        found = following
    return found
