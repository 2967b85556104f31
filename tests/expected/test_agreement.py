"""What is inferred without the recorder is what the recorder observes in the same notebook.

Compared are the kept texts of both modes: an event that hook mode infers stands at the lines where
check mode observed it.  The other tests hold that these texts are what the extension says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from expected.frozen import blocks, file_of, notebooks

_FAULT = re.compile(r"^(?=In\[\d+\] \w+ \w+$)", re.MULTILINE)
_EVENT = re.compile(r"^  (\w+) +(\S+:\d+) .*, (inferred|observed)\)$", re.MULTILINE)

#: Lines of one event, by what happened there.
Lines = dict[str, list[str]]


def faults(block: str) -> dict[str, str]:
    """The parts of a block by their heading: cell, kind and cause."""
    return {part.splitlines()[0]: part for part in _FAULT.split(block) if part.startswith("In[")}


def lines(fault: str, certainty: str) -> Lines:
    found: Lines = {}
    for what, where, how in _EVENT.findall(fault):
        if how == certainty:
            found.setdefault(what, []).append(where)
    return found


def compared() -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Notebook and event, where it is inferred, and where it was observed."""
    for family in sorted({n.family for n in notebooks()}):
        watched = blocks(file_of(family, "check"))
        for name, block in blocks(file_of(family, "hook")).items():
            seen = faults(watched[name])
            for heading, fault in faults(block).items():
                observed = lines(seen.get(heading, ""), "observed")
                for what, where in lines(fault, "inferred").items():
                    if what in observed:
                        yield f"{family}/{name}", what, where, observed[what]


def test_inferred_lines_are_the_observed_ones() -> None:
    found = [*compared()]
    assert [row for row in found if row[2] != row[3]] == []
    counted = Counter(what for _, what, _, _ in found)
    assert counted["saved"] > 150 and counted["changed"] > 150 and counted["freed"] > 50, counted
