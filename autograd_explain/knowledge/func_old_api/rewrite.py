"""The present name of a function of `functorch`."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "new_name",
        lambda s: s.at(s.details.call).replaced(f"{{{s.details.replacement}}}{{arguments}}"),
    )
)
