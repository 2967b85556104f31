"""`torch.amp.custom_fwd(device_type=…)` instead of the decorators of `torch.cuda.amp`."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program, Source
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches

_OLD = ("torch.cuda.amp.custom_fwd", "torch.cuda.amp.custom_bwd")


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    source = None if cause is None or cause.place is None else program.source_at(cause.place)
    edits = apply_patches(_renamed(source)) if source is not None else None
    if edits:
        yield Proposal("torch_amp", edits)


def _renamed(source: Source) -> Iterator[Patch]:
    """Every decorator of the cell or file: one warning comes for each."""
    decorators = [d for n in ast.walk(source.tree) for d in getattr(n, "decorator_list", ())]
    for decorator in decorators:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = ast.unparse(decorator if call is None else call.func)
        span = source.span(decorator)
        if name in _OLD and span is not None and (call is None or not call.args):
            given = [] if call is None else [ast.unparse(k) for k in call.keywords]
            arguments = ", ".join([*given, "device_type='cuda'"])
            yield Patch(source, span, f"torch.amp.{name.rsplit('.', 1)[1]}({arguments})")
