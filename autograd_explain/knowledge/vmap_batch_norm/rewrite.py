"""The module's batch norms made to work without running statistics."""

from autograd_explain.model import What
from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

_PATCHED = "{torch}.func.replace_all_batch_norm_modules_({model})"

propose: Propose[Details] = by_table(
    Fix(
        "without_statistics",
        lambda s: s.at(s.details.made).behind(_PATCHED, model=s.details.model),
        changes=True,
    ),
    at=What.CREATED,
)
