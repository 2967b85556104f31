"""The block that should end, the decorator that should go, the statement that should be outside."""

from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.edits import merge
from autograd_explain.rewrite.transforms.grad_mode import (
    block_instead_of_switch,
    decorated_generator,
    out_of_block,
    recorded_run,
    without_decorator,
)

from .diagnose import Details


def _enabled(site: Site[Details]) -> Edits | None:
    """What is differentiated recorded where it is; in inference mode nothing can be, and what was
    made in it cannot be recorded with either: the mode goes."""
    program, inside = site.program, site.details.inside
    if inside is None:
        return None
    asking = inside.asking
    wrapped = () if inside.enabled else recorded_run(program, inside.first, inside.last, asking)
    if wrapped is None or not inside.inference:
        return wrapped
    modes = site.at(*inside.modes).replaced("{owner}.no_grad")
    options = site.at(*inside.options).given("inference_mode", "False")
    parts = [e for e, asked in ((modes, inside.modes), (options, inside.options)) if asked]
    return merge(*parts, wrapped) if parts else None


propose: Propose[Details] = by_table(
    Fix("enabled", _enabled, when=lambda d: d.inside is not None and d.inside.apart),
    Fix("block", at_place(block_instead_of_switch), when=lambda d: d.by is OffBy.SWITCH),
    Fix("generator", at_place(decorated_generator), when=lambda d: d.by is OffBy.GENERATOR),
    Fix("decorator", at_place(without_decorator), when=lambda d: d.by is OffBy.DECORATOR),
    Fix(
        "outside",
        lambda s: out_of_block(s.program, s.place, s.details.unrecorded),
        when=lambda d: d.by is OffBy.BLOCK,
    ),
)
