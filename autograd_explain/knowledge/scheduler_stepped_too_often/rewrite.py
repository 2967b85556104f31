"""One step a batch, as the schedule was planned."""

from autograd_explain.rewrite import (
    remove_statement,
)
from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "once",
        lambda s: remove_statement(s.program, s.place),
        when=lambda d: d.extra,
        changes=True,
    ),
)
