"""A list of tensors made of what was given."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import apply_patches

from .diagnose import Details, Way


def _with_unpacked(site: Site[Details]) -> Edits | None:
    """`net` -> `*net.parameters()`, `params` -> `*params`"""
    parts = [site.at(place).with_code("*{x}.parameters()") for place in site.details.modules]
    parts += [site.at(place).with_code("*{x}") for place in site.details.iterables]
    return apply_patches(patch for part in parts for patch in part)


propose: Propose[Details] = by_table(
    Fix("wrap", lambda s: s.replaced("[{x}]"), when=lambda d: d.way is Way.WRAP),
    Fix("values", lambda s: s.replaced("list({x}.values())"), when=lambda d: d.way is Way.VALUES),
    Fix(
        "parameters",
        lambda s: s.replaced("{owner}.parameters{arguments}"),
        when=lambda d: d.way is Way.PARAMETERS,
    ),
    Fix("unpack", _with_unpacked, when=lambda d: d.way is Way.UNPACK),
)
