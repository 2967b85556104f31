"""Make the optimizer after the parameters it is to step."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Proposal, differing, remove_statement, repeat_after, then
from autograd_explain.rewrite.transforms.call_edits import keyword_removed
from autograd_explain.rewrite.transforms.uncut import node_at

from .diagnose import Details
from .replaced_parameters import assigns


def propose(finding: Finding[Details], program: Program) -> Iterator[Proposal]:
    made, replaced = finding.place(What.CAUSE), finding.details.replaced
    if made is None or replaced is None:
        return
    if assigns(node_at(program, replaced) or ast.Pass()):
        yield from differing("no_assign", keyword_removed(program, replaced, "assign"))
    fix, edits = "repeat_optimizer", repeat_after(program, made, replaced)
    if edits and not _used_between(program, made, replaced, finding.details.optimizer):
        moved = then(program, edits, remove_statement, made)
        fix, edits = ("move_optimizer", moved) if moved else (fix, edits)
    yield from differing(fix, edits)


def _used_between(program: Program, made: Place, replaced: Place, name: str) -> bool:
    """Whether a line from the one place to the other reads the optimizer (a scheduler does)."""
    for source, node in index_of(program).nodes(ast.Name, each_run=True):
        if isinstance(node.ctx, ast.Load) and node.id == name:
            at = (source.cell or 0, node.lineno + source.offset)
            if (made.cell or 0, made.line) < at < (replaced.cell or 0, replaced.line):
                return True
    return False
