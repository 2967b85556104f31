"""Weights that a module keeps as plain tensors: `self.scale = torch.ones(3, requires_grad=True)`.

An input that a program keeps in its model to differentiate for it looks the same to torch.  The
text tells them apart: a weight is made of nothing but sizes and constants, and nobody asks for its
gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch import Tensor, nn

from ...isolation.type_checks import is_a
from ...program import Program, called_name, last_name
from ...program_index import index_of
from .finding import CandidateFault

OF_MODULE = frozenset(vars(nn.Module()))
_FILLED = frozenset("zeros ones full empty rand randn normal eye".split())


def plain_leaves(root: nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """The class, the attribute and the tensor of each that a module, or one inside of it, keeps
    as a leaf that requires grad without knowing it for a parameter."""
    for owner in root.modules():
        for name, value in list(vars(owner).items()):
            if name not in OF_MODULE and is_a(value, Tensor) and value.is_leaf:
                if value.requires_grad:
                    yield type(owner).__name__, name, value


def are_weights(suspect: CandidateFault, program: Program) -> bool:
    """Whether all plain tensors that a suspect is about were made as weights are."""
    kept: tuple[tuple[str, str], ...] = suspect.evidence.get("attributes", ())
    return all(_is_weight(program, *pair) for pair in kept)


def _is_weight(program: Program, owner: str, attribute: str) -> bool:
    made = [node.value for _, node in index_of(program).attribute(owner, attribute)]
    return bool(made) and all(map(_is_made_anew, made)) and not _is_asked_for(program, attribute)


def _is_made_anew(value: ast.expr) -> bool:
    """Whether a call makes a tensor of sizes and constants alone."""
    calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)]
    names = {called_name(call) for call in calls}
    constant = not any(isinstance(n, ast.Name) and n.id != "torch" for n in ast.walk(value))
    return bool(names & _FILLED) or ("tensor" in names and constant)


def _is_asked_for(program: Program, attribute: str) -> bool:
    """Whether the program differentiates for it, or reads its gradient."""
    for _, call in index_of(program).calls("grad", of="torch"):
        given = (n for a in (*call.args[1:], *call.keywords) for n in ast.walk(a))
        if any(last_name(n) == attribute for n in given):
            return True
    grads = index_of(program).nodes(ast.Attribute)
    return any(n.attr == "grad" and last_name(n.value) == attribute for _, n in grads)
