"""Injected programs: the same for a seed, and each one goes wrong when it is run."""

from __future__ import annotations

import random
from collections.abc import Iterator

from injection.case import Injected
from injection.inplace import data, inplace
from injection.leaves import cast, leaf
from injection.run import goes_wrong
from injection.training import graph, step

#: How often each kind of bug is drawn.
KINDS = {"inplace": 10, "step": 4, "graph": 3, "cast": 3, "leaf": 3, "data": 3}
#: Those that raise or warn by themselves; the others are found by the recorder alone.
LOUD = ("inplace", "step", "graph", "cast", "leaf")
_MAKERS = {
    "inplace": inplace,
    "step": step,
    "graph": graph,
    "cast": cast,
    "leaf": leaf,
    "data": data,
}


def programs(seed: int = 0, kinds: tuple[str, ...] = LOUD) -> Iterator[Injected]:
    """Programs without end; those that work in spite of the bug are passed over."""
    number = 0
    seen: set[tuple[str, ...]] = set()
    while True:
        number += 1
        rng = random.Random(f"{seed}/{number}")
        kind = rng.choices(kinds, [KINDS[k] for k in kinds])[0]
        case = _MAKERS[kind](rng, number)
        if case.wrong not in seen and goes_wrong(case):
            seen.add(case.wrong)
            yield case
