"""How often each operator repairs, by what torch complained of: the one table that ranks them.

`priors.json` is counted, not set: `tests/repair/fit_priors.py` tries the operators on the field
notebooks and writes the share of edits that gave what the corrected notebook gives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..verification import Reference

TABLE = Path(__file__).with_name("priors.json")
_BY_REFERENCE: Mapping[str, Mapping[str, float]] = json.loads(TABLE.read_text("utf-8"))
#: Where an operator is not named for a reference; "" for one that was never tried.
EVERYWHERE: Mapping[str, float] = _BY_REFERENCE["any"]
UNMET = ""

#: Operators whose edit is worth showing where it runs, though nothing confirms it: others may
#: as well have silenced what complained.
_SHOWN_UNVERIFIED: Mapping[Reference, frozenset[str]] = {
    Reference.NONE: frozenset(
        "keep_in_graph tensors_joined soft straight_through with_graph reduce create_graph "
        "registered detached_copy as_argument made_again of_another finite_fill".split()
    ),
    Reference.SAVED_VALUES: frozenset("clone clone_first out_of_place compute_again".split()),
    Reference.RETAINED_GRAPH: frozenset(
        "detach detach_kept detach_carried detach_carried_states compute_in_loop compute_again "
        "no_grad turn_flag".split()
    ),
    Reference.LENIENT: frozenset(
        "no_grad detach out_of_place clone clone_first leaf_last keep_in_graph".split()
    ),
    Reference.RETAINED_GRADIENTS: frozenset("retain_grad leaf_last".split()),
}

#: Operators that end a graph where a round hands a value on, or begin it anew there: whether later
#: rounds were to reach back, or to see old values, is what nothing tells, so that other gradients
#: than the reference's may be the meant ones.
_MAY_DIFFER: Mapping[Reference, frozenset[str]] = {
    Reference.RETAINED_GRAPH: frozenset(
        "detach detach_kept detach_carried detach_carried_states no_grad turn_flag".split()
    ),
    Reference.SAVED_VALUES: frozenset("detach_carried detach_carried_states".split()),
}


#: Where an edit that only silences the complaint agrees with what is known: without a reference,
#: and where a gradient was read that was never kept (every other gradient is as it was).
_TELLS_NOTHING = frozenset({Reference.NONE, Reference.RETAINED_GRADIENTS})

#: Does what the reference does, and so agrees with it whatever is meant: a second backward through
#: a graph that stays; an optimizer that takes a result which keeps its gradient, and writes to it
#: although the next forward pass makes another.
_AGREES_ANYHOW = {Reference.RETAINED_GRAPH: "create_graph", Reference.LENIENT: "retain_grad"}


def prior(operator: str, reference: Reference) -> float:
    """How likely an operator's edit is the right one, all other things being equal; 0 where it
    could be neither verified nor shown, or where being verified would say nothing."""
    if reference in _TELLS_NOTHING and not shown_unverified(operator, reference):
        return 0.0
    if reference is Reference.KEPT_CHECKPOINTS:  # a second run differs by what is no tensor
        return 0.0
    if _AGREES_ANYHOW.get(reference) == operator:
        return 0.0
    known = _BY_REFERENCE.get(reference.value, {})
    return known.get(operator, EVERYWHERE.get(operator, EVERYWHERE[UNMET]))


def may_differ(operator: str, reference: Reference) -> bool:
    return operator in _MAY_DIFFER.get(reference, ())


def shown_unverified(operator: str, reference: Reference) -> bool:
    return operator in _SHOWN_UNVERIFIED.get(reference, ())
