"""Go backward from the tensor in the object, or from the sum of them; call the method."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("part", lambda s: s.at(s.details.root).replaced("{code}", code=s.details.part)),
    Fix(
        "add",
        lambda s: s.at(s.details.root).replaced("sum({code})", code=s.details.object),
        when=lambda d: d.all_losses and not d.part,
    ),
    Fix("call", lambda s: s.at(s.details.maker).replaced("{x}()")),
    changes=True,
)
