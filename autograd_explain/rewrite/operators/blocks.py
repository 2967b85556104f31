"""`with` blocks: left out, and begun anew in every round of the loop that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from ..engine.cst_tools import dotted
from ..engine.draft import Draft
from ..engine.proposal import Edits
from ..engine.tree import statements_in
from ..transforms.grad_mode import is_off
from .site import Change, Site


def block_in_loop(site: Site) -> Iterator[Change]:
    """`with kept(): for x in xs: …` -> `for x in xs: with kept(): …`: what the block keeps until
    its end lasts for one round."""
    block = _block(site)
    inside = statements_in(block.body) if block is not None else []
    if block is not None and len(inside) == 1 and isinstance(inside[0], (cst.For, cst.While)):
        make = partial(_into_loop, site, block, inside[0])
        yield site.change("block_in_loop", block.items[0].item, make)


def block_left_out(site: Site) -> Iterator[Change]:
    """`with kept(): …` -> what stands in it."""
    block = _block(site)
    if block is not None and all(item.asname is None for item in block.items):
        opened = block.items[0].item
        yield site.change("block_left_out", opened, lambda: Draft(site.tree).opened(block).edits())


def _block(site: Site) -> cst.With | None:
    """The block, where it is none that keeps gradients off: that is another operator's."""
    block = site.statement
    if not isinstance(block, cst.With) or block.asynchronous is not None:
        return None
    off = is_off(site.imports, block)
    calls = [site.imports.full(dotted(call.func)) for call in site.calls]
    return None if off or "torch.set_grad_enabled" in calls else block


def _into_loop(site: Site, block: cst.With, loop: cst.For | cst.While) -> Edits | None:
    inner = block.with_changes(body=loop.body, leading_lines=[])
    around = loop.with_changes(body=cst.IndentedBlock([inner]))
    return Draft(site.tree).instead(block, [around]).edits()
