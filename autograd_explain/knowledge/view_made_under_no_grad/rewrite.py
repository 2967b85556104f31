"""View and write on the same side: both recorded, or, for an update of a parameter, neither."""

from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.model import What
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.grad_mode import (
    out_of_block,
    under_no_grad,
    without_decorator,
)
from autograd_explain.rewrite.transforms.indexed_loop import index_at_write

from .diagnose import Details


def _index_at_write(site: Site[Details]) -> Edits | None:
    given, write = site.details, site.finding.place(What.CHANGED)
    return index_at_write(site.program, given.made, write, given.tensor, given.base)


propose: Propose[Details] = by_table(
    Fix(
        "write_unrecorded",
        lambda s: under_no_grad(s.program, s.finding.place(What.CHANGED)),
        when=lambda d: d.parameter,
    ),
    Fix(
        "index_at_write",
        _index_at_write,
        when=lambda d: d.key and d.off is not None and not d.parameter,
    ),
    Fix(
        "decorator",
        lambda s: without_decorator(s.program, s.details.off),
        when=lambda d: d.by is OffBy.DECORATOR and not d.parameter,
    ),
    Fix(
        "view_recorded",
        lambda s: out_of_block(s.program, s.details.off, [s.details.made]),
        when=lambda d: d.by is OffBy.BLOCK and not d.parameter,
    ),
    at=What.FAILED,  # where the view was only read, no write is known
)
