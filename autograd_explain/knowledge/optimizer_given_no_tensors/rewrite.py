"""A list of tensors made of what was given."""

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, code_of, node_at

from .diagnose import Details, Way


def _with_unpacked(site: Site[Details]) -> Edits | None:
    given = site.details
    parts = [(p, ".parameters()") for p in given.modules] + [(p, "") for p in given.iterables]
    return apply_patches(patch for p, text in parts for patch in _unpacked(site.program, p, text))


def _unpacked(program: Program, place: Place, behind: str) -> list[Patch]:
    """`net` -> `*net.parameters()`, `params` -> `*params`"""
    source, node = program.source_at(place), node_at(program, place)
    if place.span is None or source is None or node is None:
        return []
    return [Patch(source, place.span, f"*{code_of(program, place, node)}{behind}")]


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
