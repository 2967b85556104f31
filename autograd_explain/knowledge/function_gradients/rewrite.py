"""`None` in the places of the inputs that need no gradient."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    node = None if cause is None else node_at(program, cause.place)
    if cause is None or cause.place is None or node is None:
        return
    values = [code_of(program, cause.place, n) for n in _elements(node)]
    unneeded = {int(number) for number in finding.facts.get("unneeded", "").split()}
    new = _new_values(finding, values, unneeded)
    if new is not None:
        edits = apply_patches(replacement(program, cause.place, ", ".join(new)))
        fix = "none_for_rest" if finding.variant == "number" else "none_at_position"
        if edits:
            yield Proposal(fix, edits)


def _elements(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _new_values(finding: Finding, values: list[str], unneeded: set[int]) -> list[str] | None:
    """The returned values with `None` where nothing is owed; None where that is not certain."""
    if finding.variant == "number":
        missing = range(len(values), int(finding.facts["expected"] or 0))
        # A tensor that requires grad is owed a gradient: which one is for the author to say.
        if str(len(values)) != finding.facts["count"] or not missing:
            return None
        return [*values, *("None" for _ in missing)] if set(missing) <= unneeded else None
    if finding.variant == "plain":
        position = int(finding.facts["index"] or 0) - 1
        if not 0 <= position < len(values) or position not in unneeded:
            return None
        return [v if i != position else "None" for i, v in enumerate(values)]
    numbers = [i for i, v in enumerate(values) if v.replace(".", "", 1).isdigit()]
    if finding.variant == "type" and numbers and set(numbers) <= unneeded:
        return ["None" if i in numbers else v for i, v in enumerate(values)]
    return None
