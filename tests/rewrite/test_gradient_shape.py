"""A hook's result brought back to the shape of its gradient."""

from __future__ import annotations

import pytest
from rewriting import program_of, result, spot

from autograd_explain.knowledge.hook_result.gradient_shape import of_gradients_shape, without_result


def shaped(returned: str) -> str | None:
    program = program_of(f"x.register_hook(lambda g: {returned})\n")
    found = result(of_gradients_shape(program, spot(program, returned), "g"))
    return None if found is None else found.partition("lambda g: ")[2].removesuffix(")\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("g.mean(0)", "g.mean(0, keepdim=True).expand_as(g)"),
        ("g.sum(1) * 2", "(g.sum(1, keepdim=True) * 2).expand_as(g)"),
        ("g.max(0)[0]", "g.max(0, keepdim=True)[0].expand_as(g)"),
        ("g.flatten()", "g.flatten().reshape_as(g)"),
        ("g[0].sum(0)", None),
        ("g.flatten()[:3]", None),
        ("g.T.mean(0)", None),
        ("sum(g, 0)", None),
        ("g.mean(0).view(1, -1)", None),
    ],
)
def test_shape(before: str, after: str | None) -> None:
    assert shaped(before) == after


def test_hook_that_only_looks() -> None:
    code = "def look(g):\n    seen.append(g)\n    return g.norm().item()  # of now\n"
    program = program_of(code)
    edits = without_result(program, spot(program, "g.norm().item()"))
    assert result(edits) == code.replace(" g.norm().item()", "")
