"""The present name."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.uncut import code_of, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    node = node_at(program, None if cause is None else cause.place)
    if cause is None or cause.place is None or not isinstance(node, ast.Call):
        return
    given = [code_of(program, cause.place, a) for a in node.args]
    given += [code_of(program, cause.place, k) for k in node.keywords]
    if cause.op == "scaler":
        given.insert(0, '"cuda"')
    full = "torch.amp.GradScaler" if cause.op == "scaler" else "torch.nn.utils.clip_grad_norm_"
    name = imports_at(program, cause.place).local(full)
    if name is not None:
        edits = expression_replaced(program, cause.place, f"{name}({', '.join(given)})")
        if edits:
            yield Proposal("new_name", edits)
