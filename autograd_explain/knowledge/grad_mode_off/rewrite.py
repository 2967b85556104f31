"""The block that should end, the decorator that should go, the statement that should be outside."""

from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.rewrite import (
    block_instead_of_switch,
)
from autograd_explain.rewrite.engine.fixes import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.leave_no_grad import (
    block_instead_of_enter,
    decorated_generator,
    mode_of_caller,
    out_of_block,
    without_decorator,
)

from .diagnose import Details


def _outside(site: Site[Details]) -> Edits:
    return out_of_block(site.program, site.place, list(site.details.unrecorded))


propose: Propose[Details] = by_table(
    Fix(
        "block",
        lambda s: block_instead_of_switch(s.program, s.place),
        when=lambda d: d.by is OffBy.SWITCH,
    ),
    Fix(
        "block",
        lambda s: block_instead_of_enter(s.program, s.place),
        when=lambda d: d.by is OffBy.ENTERED,
    ),
    Fix(
        "generator",
        lambda s: decorated_generator(s.program, s.place),
        when=lambda d: d.by is OffBy.GENERATOR,
    ),
    Fix(
        "decorator",
        lambda s: without_decorator(s.program, s.place),
        when=lambda d: d.by is OffBy.DECORATOR,
    ),
    Fix(
        "mode_of_caller",
        lambda s: mode_of_caller(s.program, s.place),
        when=lambda d: d.by is OffBy.BLOCK,
    ),
    Fix("outside", _outside, when=lambda d: d.by is OffBy.BLOCK),
)
