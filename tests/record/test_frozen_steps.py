"""Optimizers that step what another one's turn has left frozen."""

from __future__ import annotations

import pytest
from silent_programs import HEAD
from watching import session, signals

NETS = (
    HEAD
    + """\
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
g = torch.optim.SGD(G.parameters(), lr=0.1)
d = torch.optim.SGD(D.parameters(), lr=0.1)
z, real = torch.randn(8, 2), torch.randn(8, 2)
"""
)
JUDGED = """\
d.zero_grad()
loss = D(G(z)).mean() - D(real).mean()
loss.backward()
d.step()
"""
PAINTED = """\
D.requires_grad_(False)
g.zero_grad()
(-D(G(z)).mean()).backward()
g.step()
"""
FROZE = "D.requires_grad_(False)\n"
BY_LOOP = "for p in D.parameters():\n    p.requires_grad = False\n"


def rounds(body: str, first: str = "", times: int = 4) -> tuple[str, ...]:
    inner = "".join(f"    {line}\n" for line in body.splitlines())
    return NETS, f"{first}for i in range({times}):\n{inner}"


@pytest.mark.parametrize(
    ("body", "late"),
    [
        (JUDGED + PAINTED, ""),
        (PAINTED + JUDGED, ""),
        (PAINTED + JUDGED + "D.requires_grad_(True)", "D.requires_grad_(True)"),
        (PAINTED + JUDGED.replace("loss.b", "D.requires_grad_()\nloss.b"), "D.requires_grad_()"),
        ((PAINTED + JUDGED).replace("zero_grad()", "zero_grad(set_to_none=False)"), ""),
        ((JUDGED + PAINTED).replace(FROZE, BY_LOOP), ""),
    ],
)
def test_what_is_frozen_for_another_turn_is_told(body: str, late: str) -> None:
    (found,) = signals(rounds(body))
    assert found.name == "frozen-while-stepped" and found.evidence["count"] == 2
    source = {role: moments[0].place.source for role, moments in found.moments.items()}
    assert source["frozen"] in (FROZE.strip(), "p.requires_grad = False")
    assert (source["turn"], source["step"]) == ("g.step()", "d.step()")
    assert source.get("thawed", "") == late


def test_what_was_frozen_for_a_look_is_told() -> None:
    (found,) = signals(rounds(JUDGED + PAINTED.replace(FROZE, ""), first=FROZE))
    assert found.name == "frozen-while-stepped" and "turn" not in found.moments


BOTH = """\
g.zero_grad()
d.zero_grad()
D(G(z)).mean().backward()
g.step()
d.step()
"""
SHARED = """\
D.requires_grad_(i < 2)
d.zero_grad()
D(G(z)).mean().backward()
d.step()
D(G(real)).mean().backward()
g.step()
g.zero_grad()
"""
WITH_FROZEN = """\
G.requires_grad_(False)
both = torch.optim.SGD([*G.parameters(), *D.parameters()])
for i in range(3):
    both.zero_grad()
    D(G(z)).mean().backward()
    both.step()
"""


@pytest.mark.parametrize(
    "cells",
    [
        rounds(JUDGED + PAINTED + "D.requires_grad_(True)"),
        rounds("D.requires_grad_(True)\n" + JUDGED + PAINTED),
        rounds("if i == 2:\n    D.requires_grad_(False)\n" + BOTH),
        rounds("D.requires_grad_(i < 2)\n" + BOTH),
        rounds(SHARED),
        rounds("D.requires_grad_(i >= 2)\n" + JUDGED + PAINTED, times=6),
        rounds(BOTH, first=FROZE),
        (NETS, FROZE + "for i in range(3):\n    d.step()"),
        (NETS, WITH_FROZEN),
    ],
)
def test_what_is_meant_is_quiet(cells: tuple[str, ...]) -> None:
    for sure in (True, False):
        assert signals(cells, sure=sure) == []


WRAPPED = """\
class Handed(torch.optim.SGD):
    def __init__(self, inner):
        self.__dict__ = {**inner.__dict__}
handed = Handed(g)
"""


def test_what_clears_may_wrap_what_steps() -> None:
    """As the optimizers that Lightning hands out: they share what they hold, and nothing else."""
    nets, loop = rounds(JUDGED + PAINTED.replace("g.zero", "handed.zero"))
    assert [s.name for s in signals((nets + WRAPPED, loop))] == ["frozen-while-stepped"]
    kept = PAINTED.replace(FROZE, "").replace("g.zero_grad(", "handed.zero_grad(set_to_none=False")
    nets, loop = rounds(JUDGED + kept)
    assert signals((nets + WRAPPED, loop)) == []


def test_a_factory_without_positions_does_not_end_the_recording() -> None:
    assert signals(("import torch\nx = torch.zeros(size=(2,), requires_grad=True)",)) == []


SWITCHED = (
    HEAD
    + """\
A, B, z = nn.Linear(2, 1), nn.Linear(2, 1), torch.randn(8, 2)
both = torch.optim.SGD([*A.parameters(), *B.parameters()], lr=0.1)
def use(one, other):
    one.requires_grad_(True)
    other.requires_grad_(False)
    return one(z)
"""
)
ENSEMBLE = """\
loss = (use(A, B) * use(B, A)).mean()
both.zero_grad()
loss.backward()
both.step()
"""


def switched(body: str, first: str = "", times: int = 3) -> tuple[str, ...]:
    return SWITCHED, rounds(body, first, times)[1]


def test_what_is_frozen_in_the_midst_of_a_loss_is_told() -> None:
    (found,) = signals(switched(ENSEMBLE))
    assert found.name == "frozen-while-stepped" and found.evidence["count"] == 2
    source = {role: moments[0].place.source for role, moments in found.moments.items()}
    assert source["frozen"] == "other.requires_grad_(False)"
    assert (source["used"], source["backward"]) == ("return one(z)", "loss.backward()")


@pytest.mark.parametrize(
    "cells",
    [
        switched(ENSEMBLE.replace("loss.b", "A.requires_grad_()\nloss.b")),
        switched(ENSEMBLE.replace("loss.b", "use(A, B)\nloss.b")),
        switched(ENSEMBLE.replace("both.step", "use(A, B).mean().backward()\nboth.step")),
        switched(ENSEMBLE, "both = torch.optim.SGD(B.parameters())\n"),
        switched(ENSEMBLE, "both.add_param_group({'params': nn.Linear(1, 1).requires_grad_(False)"
                 ".parameters()})\n"),
        switched(ENSEMBLE, times=1),
        switched(ENSEMBLE.replace("use(A, B)", "use(A, B).detach()")),
    ],
)  # fmt: skip
def test_a_gradient_that_is_dropped_on_purpose_is_quiet(cells: tuple[str, ...]) -> None:
    for sure in (True, False):
        assert signals(cells, sure=sure) == []


COPIED = """\
import copy
T = copy.copy(D)
for p in T.parameters():
    p.requires_grad_(False)
both = torch.optim.SGD([*G.parameters(), *D.parameters()])
for i in range(3):
    both.zero_grad()
    (D(G(z)) - T(real)).mean().backward()
    both.step()
"""


def test_what_was_frozen_with_a_shallow_copy_is_told() -> None:
    found, recording = session((NETS, COPIED), {})
    (copied,) = recording.frozen_copies()
    assert found == [] and copied.evidence["shallow"] and copied.evidence["count"] == 2
    assert copied.moments["frozen"][0].place.source == "p.requires_grad_(False)"
    for new in ("copy.deepcopy(", "("):
        found, recording = session((NETS, COPIED.replace("copy.copy(", new)), {})
        assert (found, recording.frozen_copies()) == ([], ())
