"""Branches for each element of a batch: both are computed, and `torch.where` chooses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, torch_at
from autograd_explain.rewrite.analysis.effects import used_names
from autograd_explain.rewrite.engine.cst_tools import expression, make, parenthesised
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, statement_at, statements_in

_WHOLE: dict[type[cst.CSTNode], str] = {cst.And: "{a} & {b}", cst.Or: "{a} | {b}"}


@dataclass(frozen=True)
class _End:
    """What a branch comes to: a value for a name, or ("") for the caller, after some `steps`."""

    steps: Sequence[Statement]
    name: str
    value: cst.BaseExpression

    def reads(self) -> set[str]:
        return set[str]().union(*map(used_names, (*self.steps, self.value)))

    def gives(self) -> set[str]:
        return {s.targets[0].target.value for s in self.steps}  # type: ignore


def chosen_for_each(program: Program, place: Place) -> Edits | None:
    """`a if test else b`, or an `if` whose branches return a value or give one name its value."""
    torch, (tree, own) = torch_at(program, place), statement_at(program, place)
    if torch is None or own is None:
        return None
    draft = Draft(tree)
    if not isinstance(own, cst.If):
        nodes = [outer for node in tree.at(place) for outer in tree.path(node)]
        choice = next((n for n in nodes if isinstance(n, cst.IfExp)), None)
        return None if choice is None else draft.replace(choice, _chosen(torch, choice)).edits()
    inside, at = tree.siblings(own)
    end = _end_of(torch, own, inside[at + 1 :])
    if end is None:
        return None
    last = make(f"{end.name} = {{v}}" if end.name else "return {v}", v=end.value)
    draft.instead(own, [*map(draft.piece, end.steps), last])
    for rest in () if end.name else inside[at + 1 :]:
        draft.remove(rest)
    return draft.edits()


def _chosen(torch: str, choice: cst.IfExp) -> cst.BaseExpression:
    values = [
        _chosen(torch, v) if isinstance(v, cst.IfExp) else v for v in (choice.body, choice.orelse)
    ]
    test = _for_each(choice.test)
    return expression(f"{torch}.where({{t}}, {{a}}, {{b}})", t=test, a=values[0], b=values[1])


def _for_each(test: cst.BaseExpression) -> cst.BaseExpression:
    """`a > 0 and not b` -> `(a > 0) & ~b`, `0 < a < 1` -> `(0 < a) & (a < 1)`."""
    if isinstance(test, cst.BooleanOperation):
        parts = {"a": _part(test.left), "b": _part(test.right)}
        return expression(_WHOLE[type(test.operator)], **parts)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return expression("~{x}", x=_part(test.expression))
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 2:
        first, second = test.comparisons
        left = test.with_changes(comparisons=[first])
        right = cst.Comparison(first.comparator, [second])
        return expression("{a} & {b}", a=parenthesised(left), b=parenthesised(right))
    return test


def _part(test: cst.BaseExpression) -> cst.BaseExpression:
    new = _for_each(test)
    return new if isinstance(new, (cst.Name, cst.Attribute, cst.Call)) else parenthesised(new)


def _end_of(torch: str, branch: cst.If, behind: Sequence[Statement]) -> _End | None:
    """What an `if` comes to, with what stands behind it where a branch returns."""
    first, other = _end(torch, statements_in(branch.body), behind), branch.orelse
    if first is None:
        return None
    second: _End | None
    if isinstance(other, cst.If):
        second = _end_of(torch, other, behind)
    elif other is not None:
        second = _end(torch, statements_in(other.body), behind)
    elif first.name:
        second = _End((), first.name, cst.Name(first.name))
    else:
        second = _end(torch, behind, ())
    if second is None or second.name != first.name:
        return None
    tested = used_names(branch.test)
    if first.gives() & (second.reads() | tested | second.gives()):
        return None  # what one branch computes for itself, the other would see
    if second.gives() & (first.reads() | tested):
        return None
    value: Any = expression(
        f"{torch}.where({{t}}, {{a}}, {{b}})",
        t=_for_each(branch.test),
        a=first.value,
        b=second.value,
    )
    return _End([*first.steps, *second.steps], first.name, value)


def _end(torch: str, block: Sequence[Statement], behind: Sequence[Statement]) -> _End | None:
    at = next((n for n, s in enumerate(block) if isinstance(s, (cst.Return, cst.If))), None)
    steps, last = (block[:-1], block[-1]) if at is None and block else (block[:at], block[at or 0])
    for step in steps:
        if not isinstance(step, cst.Assign) or not isinstance(step.targets[0].target, cst.Name):
            return None
    if isinstance(last, cst.If):
        end = _end_of(torch, last, [*block[len(steps) + 1 :], *behind])
        return end and _End([*steps, *end.steps], end.name, end.value)
    if isinstance(last, cst.Return) and last.value is not None:
        return _End(steps, "", last.value)
    if isinstance(last, cst.Assign) and isinstance(last.targets[0].target, cst.Name):
        return _End(steps, last.targets[0].target.value, last.value)
    if isinstance(last, cst.AugAssign) and isinstance(last.target, cst.Name):
        sign = _SIGNS.get(type(last.operator))
        value = sign and expression(f"{{x}} {sign} ({{v}})", x=last.target, v=last.value)
        return _End(steps, last.target.value, value) if value else None
    return None


_SIGNS = {cst.AddAssign: "+", cst.SubtractAssign: "-", cst.MultiplyAssign: "*"}
