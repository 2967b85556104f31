"""Injected programs: the same for a seed, and each one goes wrong when it is run."""

from __future__ import annotations

import random
from collections.abc import Iterator

from injection.case import Injected
from injection.inplace import inplace
from injection.leaves import cast, leaf
from injection.run import goes_wrong
from injection.training import graph, step

#: How often each kind of bug is drawn.
KINDS = {"inplace": 10, "step": 4, "graph": 3, "cast": 3, "leaf": 3}
_MAKERS = {"inplace": inplace, "step": step, "graph": graph, "cast": cast, "leaf": leaf}


def programs(seed: int = 0, kinds: tuple[str, ...] = tuple(KINDS)) -> Iterator[Injected]:
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
