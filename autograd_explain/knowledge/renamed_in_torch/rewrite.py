"""The present name."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "new_name",
        lambda s: s.replaced(f"{{{s.details.name}}}({{given}})", given=s.details.given),
    )
)
