"""A list of tensors made of what was given."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced, filled_at
from autograd_explain.rewrite.transforms.uncut import apply_patches

from .diagnose import Details, Way


def _with_unpacked(site: Site[Details]) -> Edits | None:
    """`net` -> `*net.parameters()`, `params` -> `*params`"""
    parts = [(place, "*{x}.parameters()") for place in site.details.modules]
    parts += [(place, "*{x}") for place in site.details.iterables]
    return apply_patches(p for part in parts for p in filled_at(site.program, *part))


propose: Propose[Details] = by_table(
    Fix("wrap", at_place(expression_replaced, "[{x}]"), when=lambda d: d.way is Way.WRAP),
    Fix(
        "values",
        at_place(expression_replaced, "list({x}.values())"),
        when=lambda d: d.way is Way.VALUES,
    ),
    Fix(
        "parameters",
        at_place(expression_replaced, "{owner}.parameters{arguments}"),
        when=lambda d: d.way is Way.PARAMETERS,
    ),
    Fix("unpack", _with_unpacked, when=lambda d: d.way is Way.UNPACK),
)
