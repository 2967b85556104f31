"""What shares names with the report's places comes first; nothing is left out."""

from __future__ import annotations

from rewriting import at, program_of

from autograd_explain.model import Confidence, Event, Finding, What
from autograd_explain.repair.slice import nearness
from autograd_explain.rewrite.engine.tree import tree_of
from autograd_explain.rewrite.operators.site import Site


def test_order_by_names() -> None:
    program = program_of(
        """
        other = torch.ones(3)
        h = torch.ones(3)
        def scale(v):
            return v * 2
        g = scale(h)
        g.add_(1)
        """
    )
    sites = [
        Site(program, tree, statement)
        for source in program.cells
        for tree in [tree_of(program, source)]
        for statement in tree.statements
    ]
    place = at(program, "g.add_")
    finding = Finding("x", Confidence.LIKELY, {}, events=(Event(What.CHANGED, place),))
    near = nearness(sites, finding)
    found = {site.tree.code(site.statement).strip(): near[site.statement] for site in sites}
    assert found["g.add_(1)"] == 1
    assert found["g.add_(1)"] > found["g = scale(h)"] > found["h = torch.ones(3)"]
    assert found["h = torch.ones(3)"] > found["other = torch.ones(3)"] > 0


def test_the_blocks_around_a_place_are_near() -> None:
    program = program_of("for a in b:\n    with f():\n        loss.g()\nwith f():\n    c()")
    tree = tree_of(program, program.cell(2))
    sites = [Site(program, tree, statement) for statement in tree.statements]
    event = Event(What.CHANGED, at(program, "loss.g"))
    near = nearness(sites, Finding("x", Confidence.LIKELY, {}, events=(event,)))
    first, second = (near[s.statement] for s in sites if s.place.source == "with f():")
    assert 1 > first > second
    assert near[sites[0].statement] == first
