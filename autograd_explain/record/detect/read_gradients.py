"""Whether a leaf is updated by its gradient, as far as the text shows it."""

from __future__ import annotations

import ast
from dataclasses import replace

from ...model import Place
from ...program import Program, own_nodes
from ..observe.site_reader import SiteReader
from .finding import CandidateFault
from .number_into_loss import reads, spread


def by_gradients(
    suspect: CandidateFault, moments: SiteReader, program: Program
) -> CandidateFault | None:
    """What updates leaves by their gradient, as far as the text shows it; None where nothing does:
    weights that are moved otherwise, and gradients that nobody reads, are none of ours."""
    updates = suspect.marks.get("updated")
    if updates is None:
        return suspect
    written = ((m, moments.wrote(m.site, m.clock, None)) for m in updates)
    found = tuple(
        mark
        for mark, moment in written
        if moment is not None and any(_reads_gradient(program, place) for place in moment.path)
    )
    return replace(suspect, marks={**suspect.marks, "updated": found}) if found else None


def _reads_gradient(program: Program, place: Place) -> bool:
    """Whether the statement of a place reads a `.grad`, or a name that got one in its scope."""
    source, statement = program.source_at(place), program.statement_at(place)
    if source is None or statement is None:
        return False
    within = list(own_nodes(source.function_around(statement) or source.tree))
    grads = {ast.unparse(n) for n in within if isinstance(n, ast.Attribute) and n.attr == "grad"}
    return bool(reads(statement) & spread([n for n in within if isinstance(n, _GIVING)], grads))


_GIVING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.comprehension)
