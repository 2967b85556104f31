"""What becomes of a leaf's gradient, as far as the text shows it."""

from __future__ import annotations

import ast
from dataclasses import replace

from ...model import Place
from ...program import Program, called_name, own_nodes
from ..observe.site_reader import SiteReader
from .finding import CandidateFault
from .number_into_loss import reads, spread


def by_gradients(
    suspect: CandidateFault, moments: SiteReader, program: Program
) -> CandidateFault | None:
    """What updates leaves by their gradient or keeps it, as far as the text shows it; None where
    nothing does: weights that are moved otherwise, and gradients that nobody reads or that are
    only printed or measured (`norm = clip_grad_norm_(…)`), are none of ours."""
    roles = {"updated": _reads_gradient, "read": _keeps_gradient, "late": _drops_result}
    for role, tells in roles.items():
        if role in suspect.marks:
            told = ((m, moments.wrote(m.site, m.clock, None)) for m in suspect.marks[role])
            found = tuple(
                mark
                for mark, moment in told
                if moment is not None and any(tells(program, place) for place in moment.path)
            )
            return replace(suspect, marks={**suspect.marks, role: found}) if found else None
    return suspect


def _reads_gradient(program: Program, place: Place) -> bool:
    """Whether the statement of a place reads a `.grad`, or a name that got one in its scope."""
    source, statement = program.source_at(place), program.statement_at(place)
    if source is None or statement is None:
        return False
    within = list(own_nodes(source.function_around(statement) or source.tree))
    grads = {ast.unparse(n) for n in within if isinstance(n, ast.Attribute) and n.attr == "grad"}
    return bool(reads(statement) & spread([n for n in within if isinstance(n, _GIVING)], grads))


def _keeps_gradient(program: Program, place: Place) -> bool:
    """Whether the statement of a place gives what it reads of a `.grad` to a name or a list."""
    statement = program.statement_at(place)
    return isinstance(statement, _KEEPING) or _fills(statement)


def _drops_result(program: Program, place: Place) -> bool:
    """Whether the statement of a place is there for what it changes alone."""
    statement = program.statement_at(place)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    named = any(not isinstance(t, (ast.Attribute, ast.Subscript)) for t in targets)
    return not (named or isinstance(statement, ast.Return) or _fills(statement))


def _fills(statement: ast.stmt | None) -> bool:
    """`norms.append(…)`"""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and called_name(call) in _FILLING


_FILLING = ("append", "copy_", "update", "add")
_KEEPING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
_GIVING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.comprehension)
