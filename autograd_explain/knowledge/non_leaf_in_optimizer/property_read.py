"""Attributes that an object computes from its parameter whenever they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.non_leaf import only_leaf
from autograd_explain.inspect.facts.property_leaves import property_at
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a, items, table_of

from .optimizer_call import Refused, given_expressions


@dataclass(frozen=True, eq=False)
class PropertyRead:
    """`code` names the parameter `leaf` that the property at `spot` is computed from."""

    spot: ExprAt
    leaf: torch.Tensor
    code: str


def properties_read(scene: Scene, refused: Refused) -> tuple[PropertyRead, ...]:
    """Those in the optimizer's call whose parameter stands behind a tensor that was given with the
    refused one; that of the refused one first."""
    wanted = [leaf for t in refused.given if not t.is_leaf and (leaf := only_leaf(t)) is not None]
    call = scene.surfaced
    if call is None or not wanted:
        return ()
    spots = given_expressions(scene, call)
    found = [read for spot in spots for read in _read(scene, spot, wanted, refused.given)]
    first = only_leaf(refused.tensor)
    return tuple(sorted(found, key=lambda read: read.leaf is not first))


def _read(
    scene: Scene, spot: ExprAt, wanted: Sequence[torch.Tensor], given: Sequence[torch.Tensor]
) -> Iterator[PropertyRead]:
    held_by, owner, _ = property_at(scene, spot) or (spot, None, None)
    if held_by is spot or any(v is t for v in table_of(owner).values() for t in given):
        return  # what it keeps is not computed when it is read
    behind = [(n, v) for n, v in _leaves_of(owner) if any(v is leaf for leaf in wanted)]
    if len(behind) == 1:
        ((name, leaf),) = behind
        yield PropertyRead(spot, leaf, f"{held_by.text}.{name}")


def _leaves_of(owner: object) -> Iterator[tuple[str, torch.Tensor]]:
    own = table_of(owner)
    for table in (own, own.get("_parameters")):
        for name, value in items(table) if is_a(table, dict) else ():
            if is_a(value, torch.Tensor) and value.is_leaf:
                yield str(name), value
