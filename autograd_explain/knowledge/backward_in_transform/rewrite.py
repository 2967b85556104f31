"""`torch.func.grad` of a function of what is asked for, where autograd has recorded nothing.

In a mapped function `u = net(t)`, `du = torch.autograd.grad(u, t)[0]` finds no graph; the same
derivative is `torch.func.grad(u_of)(t)`, where `u_of` computes `u` of a `t` that it is given and
sums it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from autograd_explain.arguments import bind
from autograd_explain.model import Edits, Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.analysis.effects import effects, fresh, parameter_names
from autograd_explain.rewrite.engine.cst_tools import (
    block,
    called_name,
    dotted,
    expression,
    given_by,
    single_targets,
    unpacked,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, Tree, tree_at
from autograd_explain.rewrite.transforms.derivatives import TAKES

_TAKEN = "torch.autograd.grad"
_TAKES = TAKES["grad"]


def _by_transform(program: Program, place: Place) -> Edits | None:
    """Each derivative that the function at the place takes with autograd, taken by `torch.func`;
    None where it does not show how one of them depends on its input."""
    tree = tree_at(program, place)
    failed = tree.node(place)
    grad = tree.imports.local("torch.func.grad")
    scope = None if failed is None else tree.scope_of(failed)
    if grad is None or not isinstance(scope, (cst.FunctionDef, cst.Lambda)):
        return None
    taken: dict[Statement, list[cst.Call]] = {}
    for call in (n for n in walk(scope) if isinstance(n, cst.Call)):
        at = tree.statement_of(call) if tree.imports.full(dotted(call.func)) == _TAKEN else None
        if at is not None and tree.scope_of(call) is scope:
            taken.setdefault(at, []).append(call)
    draft, anew = Draft(tree), _Anew(tree, grad, scope)
    for statement, calls in taken.items():
        changed = anew.statement(statement, calls)
        if changed is None:
            return None
        draft.instead(statement, changed)
    return draft.edits()


@dataclass
class _Anew:
    """Statements written anew, in order: a later derivative may be one of an earlier."""

    tree: Tree
    grad: str
    scope: cst.FunctionDef | cst.Lambda
    known: dict[Statement, Statement] = field(default_factory=dict)  #: as they are by now

    def statement(self, statement: Statement, calls: Sequence[cst.Call]) -> list[Statement] | None:
        """The functions that the statement differentiates, and itself."""
        found: list[Statement] = []
        new: cst.CSTNode = statement
        for call in calls:
            made = self._derivative(statement, call, found)
            if made is None:
                return None
            new = new.deep_replace(*made)
        self.known[statement] = new  # type: ignore[assignment]
        return [*found, self.known[statement]]

    def _derivative(
        self, statement: Statement, call: cst.Call, before: list[Statement]
    ) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
        """What is to go, and what comes instead; a function that it needs is put `before`."""
        given = bind(_TAKES, given_by(call))
        outputs, inputs = given.get("outputs"), given.get("inputs")
        if outputs is None or inputs is None or not _is_summed(given):
            return None
        names = [dotted(n) or "" for n in unpacked(inputs)]
        own = parameter_names(self.scope) | {dotted(t) or "" for t in _stored(self.scope)}
        if isinstance(outputs, (cst.Tuple, cst.List)) or not {*names} <= own - {""}:
            return None
        steps = self._steps(statement, outputs, {*names})
        if steps is None:
            return None
        of, total = ", ".join(names), expression("{u}.sum()", u=outputs)
        function = expression(f"lambda {of}: {{total}}", total=total)
        if steps:
            wish = f"{dotted(outputs) or 'value'}_of_{'_'.join(names)}".replace(".", "_")
            function = cst.Name(fresh(self.tree, statement, wish))
            lines = [*map(self.tree.code, steps), f"return {self.tree.code(total)}"]
            before.append(block("\n    ".join([f"def {function.value}({of}):", *lines]) + "\n"))
        around = self.tree.parents[call]
        if len(names) == 1 and isinstance(around, cst.Subscript) and around.value is call:
            if isinstance(around.slice[0].slice, cst.Index):
                return around, expression(f"{self.grad}({{f}})({of})", f=function)
        numbers = tuple(range(len(names)))
        return call, expression(f"{self.grad}({{f}}, argnums={numbers})({of})", f=function)

    def _steps(
        self, statement: Statement, outputs: cst.BaseExpression, names: set[str]
    ) -> list[Statement] | None:
        """The statements of the function that lead to the outputs; None where something else than
        plain assignments does, where nothing of it reads the names, or where one of the names gets
        two values."""
        in_lambda = not isinstance(self.scope, cst.FunctionDef)
        siblings, position = self.tree.siblings(statement)
        read, chosen = _first(effects(outputs).reads), list[Statement]()
        for step in reversed([] if in_lambda else siblings[:position]):
            if _first(effects(step).writes) & read - names:
                if not _names_values(step):
                    return None
                chosen.insert(0, self.known.get(step, step))
                read |= _first(effects(chosen[0]).reads)
        stored = [*map(dotted, _stored(self.scope)), *parameter_names(self.scope)]
        given = {dotted(t) for step in chosen for t in single_targets(step)}
        twice = any(stored.count(name) > 1 for name in names | given)
        return chosen if names & read and not twice else None


def _is_summed(given: Mapping[str, cst.BaseExpression]) -> bool:
    """Whether the derivative is that of the sum, as `torch.func.grad` takes it: of one number, or
    with ones for weights."""
    weights = given.get("grad_outputs")
    ones = weights is None or dotted(weights) == "None" or called_name(weights) == "ones_like"
    return ones and {*given} <= {*_TAKES}


def _names_values(step: Statement) -> bool:
    plain = isinstance(step, (cst.Assign, cst.AnnAssign))
    return plain and all(isinstance(t, cst.Name) for t in single_targets(step))


def _first(paths: set[str]) -> set[str]:
    """`self` of `self.net`."""
    return {path.partition(".")[0] for path in paths}


def _stored(scope: cst.CSTNode) -> list[cst.BaseExpression]:
    return [t for n in walk(scope) for t in single_targets(n)]


propose: Propose[None] = by_table(
    Fix("by_transform", at_place(_by_transform), intended_difference=True)
)
