"""`use_reentrant=False`, in every checkpoint that would go on unrecorded."""

from autograd_explain.model import What
from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import non_reentrant

propose: Propose[object] = by_table(
    Fix("non_reentrant", lambda s: non_reentrant(s.program, s.finding.places(What.CAUSE)))
)
