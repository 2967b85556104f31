"""Rewrites are tried in another process and their gradients compared with a reference.

    checkpoint = Checkpoint.take(shell.user_ns)       # before a watched cell; None: cannot fork
    try:
        ...                                           # the cell runs and fails
        request = Request(program, cell=7, message=str(error), kind=Kind.ERROR,
                          reference=reference_for(Kind.ERROR, str(error)), checkpoint=checkpoint)
        rewrites = verify(proposals, request)         # model.Rewrite, best first
    finally:
        if checkpoint is not None:
            checkpoint.discard()

`verify` never raises and has no effect outside its own child processes.  Without a checkpoint it
replays the recorded cells from the first one.  Ctrl-C ends it at once; what is not known by then
is "not tried" with the reason `interrupted`.  `reference_gradients(request)` tells which gradients
of the original program differ from the reference: the evidence of a silent finding.

Nothing here imports torch in the calling process before a child needs it.
"""

from .cells import SCRIPT
from .checkpoint import Checkpoint
from .plan import GradientDifference, Reference
from .request import Request, reference_for
from .verifier import evidence_against, reference_gradients, verify

__all__ = [
    "SCRIPT",
    "Checkpoint",
    "GradientDifference",
    "Reference",
    "Request",
    "evidence_against",
    "reference_for",
    "reference_gradients",
    "verify",
]
