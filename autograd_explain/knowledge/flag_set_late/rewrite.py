"""The flag first, then what is computed."""

from autograd_explain.rewrite import Fix, Propose, by_table, move_before

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("flag_first", lambda s: move_before(s.program, s.place, s.details.use, checked=False))
)
