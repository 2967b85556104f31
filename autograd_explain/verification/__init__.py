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
`origin_of_nonfinite(request)` tells where a NaN or an infinity in a gradient comes from,
`severed_values(request)` what losses depend on and gradients lack, and `ignored_gradients(request)`
which gradients do not depend on what comes in.

Nothing here imports torch in the calling process before a child needs it.
"""

from .cells import SCRIPT, told_apart
from .checkpoint import Checkpoint
from .libraries import loaded_since, modules_now
from .plan import (
    GradientDifference,
    IgnoredGradient,
    Loaded,
    NonFinite,
    Reference,
    SeveredValue,
    Stage,
    is_of_anomaly_mode,
    reference_for,
)
from .request import Request
from .verifier import (
    evidence_against,
    ignored_gradients,
    origin_of_nonfinite,
    reference_gradients,
    severed_values,
    try_edits,
    verify,
    verify_all,
)

__all__ = [
    "SCRIPT",
    "Checkpoint",
    "GradientDifference",
    "IgnoredGradient",
    "Loaded",
    "NonFinite",
    "Reference",
    "Request",
    "SeveredValue",
    "Stage",
    "evidence_against",
    "ignored_gradients",
    "is_of_anomaly_mode",
    "loaded_since",
    "modules_now",
    "origin_of_nonfinite",
    "reference_for",
    "reference_gradients",
    "severed_values",
    "told_apart",
    "try_edits",
    "verify",
    "verify_all",
]
