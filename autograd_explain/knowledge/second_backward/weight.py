"""A shared value that only weighs a log-probability in one of the two losses.

The score function's estimate of a gradient, E[w · ∇ log p], has a constant weight w (`Policy
Gradient Methods for Reinforcement Learning with Function Approximation`, Sutton et al. 2000;
https://docs.pytorch.org/docs/stable/distributions.html#score-function): what trains the weight has
a loss of its own.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from autograd_explain.nodes import GraphTraversal

_SECONDS = 0.2
_LOGARITHM = re.compile(r"Log|NllLoss|BinaryCrossEntropy")
_LEAF = "AccumulateGrad"


def weighs_log_probability(loss: object, shared: Any) -> bool:
    """Whether a loss multiplies the node `shared`, or what is made of it alone, with something
    that does not depend on it and was made with a logarithm of what has leaves of its own."""
    if not isinstance(loss, torch.Tensor) or loss.grad_fn is None:
        return False
    for reached in GraphTraversal([loss.grad_fn], seconds=_SECONDS):
        if reached.node.name() == "MulBackward0" and _weighs(reached.node, shared):
            return True
    return False


def _weighs(product: Any, shared: Any) -> bool:
    (left, _), (right, _) = product.next_functions
    pairs = ((left, right), (right, left)) if left is not None and right is not None else ()
    return any(_made_of_alone(w, shared) and _is_log_probability(p, shared) for w, p in pairs)


def _made_of_alone(node: Any, shared: Any) -> bool:
    pending, seen, meets = [node], {node}, False
    while pending:
        at = pending.pop()
        if at is shared:
            meets = True
            continue
        if at.name().endswith(_LEAF):
            return False
        new = {child for child, _ in at.next_functions if child is not None} - seen
        seen |= new
        pending += new
    return meets


def _is_log_probability(node: Any, shared: Any) -> bool:
    nodes = [reached.node for reached in GraphTraversal([node], seconds=_SECONDS)]
    names = [n.name() for n in nodes]
    leaves = any(name.endswith(_LEAF) for name in names)
    return leaves and shared not in nodes and any(map(_LOGARITHM.match, names))
