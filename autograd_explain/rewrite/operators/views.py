"""Views of one tensor: made one at a time, they may be written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from ..transforms.indexed_loop import elements_one_by_one
from .site import Change, Site


def by_index(site: Site) -> Iterator[Change]:
    """`for row in x: row *= 2` -> `for row in [x[i] for i in range(len(x))]: row *= 2`: the
    elements that iterating gives are made by one operation, and none of them may be written."""
    if isinstance(site.statement, (cst.AugAssign, cst.Expr, cst.Assign)):
        if any(isinstance(loop, cst.For) for loop in site.tree.loops(site.statement)):
            make = partial(elements_one_by_one, site.program, site.place)
            yield site.change("by_index", site.statement, make)
