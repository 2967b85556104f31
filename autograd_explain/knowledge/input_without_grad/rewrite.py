"""Ask for the gradient where the tensor is made, or leave the frozen parameters out."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import asked_for_gradient
from autograd_explain.rewrite.transforms.embedded_vectors import gradient_of_vectors

from .diagnose import Details, Way
from .leave_out import left_out
from .retain import requires_grad_after


def _flag(site: Site[Details]) -> Edits | None:
    asked = asked_for_gradient(site.program, site.place)
    return asked or requires_grad_after(site.program, site.place)


propose: Propose[Details] = by_table(
    Fix("leave_out", left_out, when=lambda d: d.way is Way.FILTER, changes=True),
    Fix("thaw", lambda s: s.at(s.details.given).replaced(s.details.again)),
    Fix("vectors", lambda s: gradient_of_vectors(s.program, s.details.ids), changes=True),
    Fix("flag", _flag, when=lambda d: d.way is Way.FLAG),
)
