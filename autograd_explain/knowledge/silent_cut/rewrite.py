"""Keep the value in the graph."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Place, What
from autograd_explain.program import Program, called_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import (
    Edits,
    Fix,
    Proposal,
    Propose,
    Site,
    at_place,
    by_table,
    differing,
)
from autograd_explain.rewrite.transforms.as_property import attributes_as_properties
from autograd_explain.rewrite.transforms.call_edits import objects_called, wrapped_instead
from autograd_explain.rewrite.transforms.derivatives import with_create_graph
from autograd_explain.rewrite.transforms.functional_layer import parameter_as_argument
from autograd_explain.rewrite.transforms.grad_mode import out_of_block
from autograd_explain.rewrite.transforms.reconnect import reconnected
from autograd_explain.rewrite.transforms.remove_memoization import computed_anew
from autograd_explain.rewrite.transforms.uncut import apply_all
from autograd_explain.rewrite.transforms.with_graph import with_graph

from .by_library import kept_by_library
from .details import Details
from .functional_update import functional_update, functional_vector
from .recorded_derivative import recorded_in_library


def _told(site: Site[Details]) -> list[Place]:
    return site.finding.places(What.CAUSE)


def _reconnected(site: Site[Details]) -> Edits | None:
    return reconnected(site.program, _told(site), site.finding.place(What.FAILED))


def _recorded(site: Site[Details]) -> Edits | None:
    """Without the decorator, or out of the block, that kept the operations from being recorded."""
    off = site.details.off
    return None if off is None else out_of_block(site.program, off.place, off.inside)


def _stopped_difference(site: Site[Details]) -> Iterator[Proposal]:
    if (found := site.details.swapped) is not None:
        stopped = "{value} + ({passed} - {value}).detach()"
        edits = site.at(found.place).replaced(stopped, value=found.value, passed=found.passed)
        yield from differing("difference_alone" if found.whole else "other_way_round", edits)


def _without_parameter(site: Site[Details]) -> Edits | None:
    """`self.w = nn.Parameter(w)` -> `self.w = w` of an object that each round makes anew; else what
    the constructor computed becomes a property."""
    nodes = {place: site.program.expression_at(place) for place in _told(site)}
    if not all(called_name(node) == "Parameter" for node in nodes.values()):
        return None
    if site.details.anew:
        at = map(site.at, nodes)
        return apply_all(s.with_code("{v}", v=s.argument("data", 0).place) for s in at)
    index = index_of(site.program)
    targets = [n for p in nodes if isinstance(n := site.program.statement_at(p), ast.Assign)]
    kept = {getattr(target, "attr", None) for n in targets for target in n.targets}
    read = ((s, n) for s, n in index.nodes(ast.Attribute) if n.attr in kept)
    uses = [s.place(n.lineno, None, n) for s, n in read if isinstance(n.ctx, ast.Load)]
    return attributes_as_properties(site.program, [*nodes], uses) if uses else None


_of_table: Propose[Details] = by_table(
    Fix("compute_anew", lambda s: computed_anew(s.program, s.details.memory)),
    Fix("rsample", lambda s: s.at(s.details.drawn).replaced("{owner}.rsample{arguments}")),
    _stopped_difference,
    Fix("undecorated", lambda s: wrapped_instead(s.program, s.details.undecorated)),
    Fix("repair_called_itself", lambda s: objects_called(s.program, _told(s))),
    Fix(
        "functional_update",
        lambda s: functional_update(s.program, s.place, s.finding.place(What.FAILED)),
    ),
    Fix("with_graph", lambda s: with_graph(s.program, s.details.kept)),
    Fix("argument", at_place(parameter_as_argument)),
    Fix("with_graph", _without_parameter, when=lambda d: d.anew),
    Fix("compute_anew", _without_parameter, when=lambda d: not d.anew),
    Fix(
        "create_graph",
        lambda s: with_create_graph(s.program, _told(s)),
        when=lambda d: d.derivative and not d.inside,
    ),
    Fix("recorded_in_library", at_place(recorded_in_library), when=lambda d: d.inside),
    Fix("record", _recorded),
    Fix("reconnect", _reconnected, when=lambda d: d.repairable and not d.derivative),
    changes=True,
)


_of_input: Propose[Details] = by_table(
    Fix("functional_update", at_place(functional_vector), changes=True, intended_difference=True),
)


def propose(finding: Finding[Details], program: Program) -> Iterator[Proposal]:
    if finding.details.copied_input:
        yield from _of_input(finding, program)
        return
    yield from kept_by_library(program, finding.details)
    yield from _of_table(finding, program)
