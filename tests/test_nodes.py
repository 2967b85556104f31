"""Walks of the graph: newest first, each node once, and never deeper than the stack bears."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from autograd_explain.nodes import GraphTraversal

CHAIN = """
import torch
y = torch.ones(1, requires_grad=True)
for _ in range(100_000):
    y = y + 1
"""
LOOKS = {
    "record": """
from autograd_explain.record.observe.event_log import EventLog
from autograd_explain.record.detect.hidden_overwrites import Overwrites
from autograd_explain.record.detect.finding import Mark
watcher = Overwrites(EventLog(), set())
watcher.log.user_code_in_backward = True
watcher.before_backward((y,), Mark(0, 1))
""",
    "reference": """
from autograd_explain.verification.reference import SavedCopies
copies = SavedCopies()
copies.protect_existing([y])
assert copies.doubts == {"older_graph"}, copies.doubts
""",
    "ledger": """
from autograd_explain.verification.gradient_log import GradientLog
ledger = GradientLog(())
with ledger.noting():
    y.backward(retain_graph=True)
""",
}


@pytest.mark.parametrize("who", sorted(LOOKS))
def test_a_deep_chain_survives_being_looked_at(who: str) -> None:
    """In a process of its own, since the failure is a crash."""
    program = CHAIN + LOOKS[who] + 'del y\nprint("alive")\n'
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120)
    assert done.stdout.split() == [b"alive"], done


def test_nodes_come_newest_first_with_their_longest_distance() -> None:
    w = torch.ones(1, requires_grad=True)
    first = w * 2
    second = first * 3
    found = list(GraphTraversal([(first + second).grad_fn]))
    names = [n.node.name() for n in found]
    assert names[:2] == ["AddBackward0", "MulBackward0"]
    assert {n.node: n.depth for n in found}[first.grad_fn] == 2
    assert len(found) == len(names) == 4


def test_bounds_are_told() -> None:
    y = torch.ones(1, requires_grad=True)
    for _ in range(50):
        y = y + 1
    short = GraphTraversal([y.grad_fn], limit=10)
    assert 0 < len(list(short)) <= 11 and not short.complete
    whole = GraphTraversal([y.grad_fn, None])
    assert len(list(whole)) == 51 and whole.complete
