"""Chooses the gates: few fragments, rare in other texts, of which every known message has one.

    python -m autograd_explain.match.gates      writes gates.json again

Run it after a change of messages.json; a test compares.  A greedy weighted set cover: a gate
costs one, and more the commoner its words are in training logs and foreign errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from .table import HERE, wordings
from .wording import Wording

SHORTEST, LONGEST = 7, 32
#: What training logs write on every line: a gate of nothing else would let each of them through.
IN_LOGS = frozenset(
    """
    checkpoint epoch forward gradient gradients input iteration learning length loss model
    optimizer output parameter parameters rate size sizes step torch.nn torch.utils.checkpoint
    """.split()
)
#: What any error message may say: worth avoiding where it costs little.
IN_ERRORS = frozenset(
    """
    a an and are argument arguments as at attribute be but by called can cannot changed class
    defined deprecated device different does during element error expected failed for from
    function future got has have implemented in inputs instead invalid is it length match module
    must not object of on one or outputs passed please position returned should shape some
    specified support supported tensor tensors that the this to type unexpected value values
    version warning was will with you your
    """.split()
)


def choose(known: Sequence[Wording]) -> list[str]:
    """Gates that together are in the heads of all `known` wordings, the widest first."""
    covers = _covers(known)
    price = {gate: _price(gate) for gate in covers}
    left, chosen = set(range(len(known))), []
    while left:
        best = max(covers, key=lambda gate: (len(covers[gate] & left) / price[gate], len(gate)))
        chosen.append(best)
        left -= covers[best]
    return chosen


def _covers(known: Sequence[Wording]) -> dict[str, set[int]]:
    heads = ["\n".join(wording.literals) for wording in known]
    fragments = sorted({f for wording in known for f in _fragments(wording.literals)})
    return {f: {i for i, head in enumerate(heads) if f in head} for f in fragments}


def _fragments(literals: Sequence[str]) -> Iterator[str]:
    least = min(SHORTEST, max(map(len, literals)))
    for literal in literals:
        words = literal.split(" ")
        for i in range(len(words)):
            for j in range(i + 1, len(words) + 1):
                fragment = " ".join(words[i:j])
                if len(fragment) > LONGEST and j > i + 1:
                    break
                if len(fragment) >= least:
                    yield fragment


def _price(fragment: str) -> float:
    words = {word.strip(".,:;()'`").lower() for word in fragment.split()}
    if all(word in IN_LOGS or len(word) < 3 for word in words):
        return 15.0
    return 2.0 if words <= IN_ERRORS | IN_LOGS else 1.0


if __name__ == "__main__":
    (HERE / "gates.json").write_text(json.dumps(choose(wordings()), indent=1) + "\n", "utf-8")
