"""Casts and arithmetic put before the leaf is made."""

from __future__ import annotations

import pytest
from rewriting import program_of, result, rewritten, spot

from autograd_explain.model import Confidence, Event, Finding, Relation, What
from autograd_explain.rewrite.transforms.casts import flag_moved, requires_grad_last

T = "x = torch.tensor(v, requires_grad=True)"
CASTS = [
    (f"{T}.float()", "x = torch.tensor(v).float().requires_grad_()"),
    (f"{T}.to(device)", "x = torch.tensor(v).to(device).requires_grad_()"),
    (f"{T}.cuda(1)", "x = torch.tensor(v).cuda(1).requires_grad_()"),
    (f"{T}.float().to(device)", "x = torch.tensor(v).float().to(device).requires_grad_()"),
    (
        "x = torch.zeros(3, requires_grad=True).half()  # h",
        "x = torch.zeros(3).half().requires_grad_()  # h",
    ),
    ("w = nn.Parameter(torch.randn(3)).cuda()", "w = nn.Parameter(torch.randn(3).cuda())"),
    # what is computed of the leaf ends with the cast
    (
        "y = f(torch.ones(n, requires_grad=True).cuda())",
        "y = f(torch.ones(n).cuda().requires_grad_())",
    ),
    (
        "ws = [torch.ones(n, requires_grad=True).double()]",
        "ws = [torch.ones(n).double().requires_grad_()]",
    ),
    (
        "y = (torch.ones(n, requires_grad=True) * 2).double().sum()",
        "y = (torch.ones(n) * 2).double().requires_grad_().sum()",
    ),
    ("x = torch.tensor(v).float()", None),
    ("x = torch.tensor(v, requires_grad=flag).float()", None),
    ("x = torch.tensor(v, requires_grad=True).sum()", None),
]


LAST = [
    ("w = torch.randn(n, requires_grad=True) * 0.1", "w = (torch.randn(n) * 0.1).requires_grad_()"),
    (
        "w = 0.1 * torch.randn(n, requires_grad=True).view(3)",
        "w = (0.1 * torch.randn(n).view(3)).requires_grad_()",
    ),
    ("w = torch.rand(2, 3, requires_grad=True).t()", "w = torch.rand(2, 3).t().requires_grad_()"),
    ("w = nn.Parameter(torch.randn(n)) * s", "w = nn.Parameter(torch.randn(n) * s)"),
    ("w = -torch.ones(n, requires_grad=True)", "w = (-torch.ones(n)).requires_grad_()"),
    ("w = torch.ones(n, requires_grad=True)", None),
    ("w = f(torch.ones(n, requires_grad=True))", None),
    ("w = torch.ones(n, requires_grad=True) * torch.ones(n, requires_grad=True)", None),
]


@pytest.mark.parametrize(("before", "after"), (*CASTS, *LAST))
def test_requires_grad_last(before: str, after: str | None) -> None:
    assert rewritten(requires_grad_last, before, before) == after


MOVED = [
    (
        "w = torch.rand(3, requires_grad=True)\n",
        "w = torch.rand(3)\n",
        "v = w.cuda().requires_grad_()\n",
    ),
    ("w = nn.Parameter(torch.rand(3))\n", "w = torch.rand(3)\n", "v = nn.Parameter(w.cuda())\n"),
]


@pytest.mark.parametrize(("leaf", "plain", "flagged"), MOVED)
def test_the_flag_moves_to_another_statement(leaf: str, plain: str, flagged: str) -> None:
    """What a module is to know stays a parameter."""
    program = program_of(f"{leaf}v = w.cuda()\n")
    made = spot(program, leaf.removeprefix("w = ").strip())
    events = (
        Event(What.CAUSE, spot(program, "w.cuda()")),
        Event(What.CREATED, made, relation=Relation.LEAF),
    )
    finding = Finding("", Confidence.GENERAL, {}, events=events)
    assert result(flag_moved(program, finding)) == plain + flagged
