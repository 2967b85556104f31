import subprocess
import sys

import pytest
import torch

from autograd_explain.inspect.live.graph import Graph


def failed_backward(loss: torch.Tensor) -> str:
    with pytest.raises(RuntimeError) as caught:
        loss.backward()
    return str(caught.value)


def test_the_overwritten_slot_is_found_exactly() -> None:
    w = torch.ones(3, requires_grad=True)
    first, second = w * 2, w * 3
    loss = (first.exp() * second.exp()).sum() + (first * second).sum()
    second.add_(1)
    message = failed_backward(loss)
    found = next(Graph([loss]).overwritten())
    assert found.tensor.data_ptr() == second.data_ptr()
    versions = f"is at version {found.current_version}; expected version {found.saved_version}"
    assert versions in message
    assert found.node.name == "MulBackward0"


def test_a_saved_weight_is_the_parameter_itself() -> None:
    layer = torch.nn.Linear(2, 2)
    loss = layer(layer(torch.ones(1, 2))).sum()
    with torch.no_grad():
        layer.weight.mul_(2)
    failed_backward(loss)
    found = next(Graph([loss]).overwritten())
    assert found.tensor.data_ptr() == layer.weight.data_ptr()


def test_custom_functions_are_looked_into() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    w = torch.ones(2, requires_grad=True)
    h = w * 2
    loss = Square.apply(h).sum()
    h.add_(1)
    failed_backward(loss)
    found = next(Graph([loss]).overwritten())
    assert found.node.name == "SquareBackward"
    assert found.tensor.data_ptr() == h.data_ptr()


def test_a_failed_second_backward_frees_what_it_passed() -> None:
    w = torch.ones(2, requires_grad=True)
    shared = w.exp()
    untouched = (w * w).sum()
    shared.sum().backward()
    loss = (shared * w).sum()
    failed_backward(loss)
    assert {n.name for n in Graph([loss]).nodes if n.freed_slots} == {
        "ExpBackward0",
        "MulBackward0",
    }
    assert Graph([loss]).is_freed and not Graph([untouched]).is_freed


def test_unpack_hooks_are_never_run() -> None:
    calls = []

    def unpack(packed: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return packed

    w = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        loss = w.exp().sum()
    graph = Graph([loss])
    assert not list(graph.overwritten())
    assert not [n for n in graph.nodes if n.freed_slots]
    assert calls == []


def test_looking_changes_nothing() -> None:
    w = torch.ones(2, requires_grad=True)
    loss = (w * 2).exp().sum()
    list(Graph([loss]).overwritten())
    assert not Graph([loss]).is_freed
    loss.backward()
    assert torch.allclose(w.grad, 2 * torch.tensor(2.0).exp().expand(2))


LOOK_AND_FORGET = """
import torch
from autograd_explain.inspect.live.graph import Graph
y = torch.ones(1, requires_grad=True)
for _ in range(100_000):
    y = y + 1
graph = Graph([y])
print(graph.complete, len(graph.nodes) > 5_000)
del graph, y
print("alive")
"""


def test_a_deep_graph_is_looked_at_as_far_as_the_stack_bears() -> None:
    """Its nodes die afterwards: in a process of its own, since the failure is a crash."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK_AND_FORGET], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["False", "True", "alive"], done


def test_a_wide_graph_is_seen_whole() -> None:
    w = torch.ones(1, requires_grad=True)
    loss = torch.stack([w * i for i in range(20_000)]).sum()
    graph = Graph([loss])
    assert graph.complete and len(graph.nodes) == 20_003
