"""A computed tensor put where an object keeps the numbers of it."""

from __future__ import annotations

from rewriting import applied, at, program_of

from autograd_explain.rewrite.transforms.with_graph import with_graph


def test_statements_of_two_cells() -> None:
    program = program_of("k.width = net(z)", "k.scale = net(y)")
    width = at(program, "k.width"), "k", "raw_width", "k.inverse(net(z))", True, False
    scale = at(program, "k.scale"), "k", "raw_scale", "net(y)", False, True
    first, second = applied(program, with_graph(program, (width, scale)))
    kept = "k.inverse(net(z)).expand_as(k.raw_width)"
    assert first == f"new_raw_width = {kept}\ndel k.raw_width\nk.raw_width = new_raw_width"
    assert second == "new_raw_scale = net(y).view_as(k.raw_scale)\nk.raw_scale = new_raw_scale"
    assert with_graph(program, (width, (*width[:3], "", True, False))) is None
    assert with_graph(program, ()) is None
