"""How often each operator repairs, by what torch complained of: the one table that ranks them.

`priors.json` is counted, not set: `tests/repair/fit_priors.py` tries the operators on the field
notebooks and writes the share of edits that gave what the corrected notebook gives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..verify import Reference

TABLE = Path(__file__).with_name("priors.json")
_BY_REFERENCE: Mapping[str, Mapping[str, float]] = json.loads(TABLE.read_text("utf-8"))
#: Where an operator is not named for a reference.
EVERYWHERE: Mapping[str, float] = _BY_REFERENCE["any"]

#: Operators whose edit is worth showing where it runs, though nothing confirms it: others may
#: as well have silenced what complained.
_SHOWN_UNVERIFIED: Mapping[Reference, frozenset[str]] = {
    Reference.NONE: frozenset(
        "keep_in_graph tensors_joined soft with_graph no_inference_mode reduce create_graph "
        "registered put_together part_of_derivative detach_other".split()
    ),
    Reference.SAVED_VALUES: frozenset("clone clone_first out_of_place compute_again".split()),
    Reference.RETAINED_GRAPH: frozenset(
        "detach detach_kept detach_carried detach_carried_states compute_in_loop "
        "compute_again".split()
    ),
    Reference.LENIENT: frozenset(
        "no_grad detach written_into out_of_place clone clone_first leaf_last".split()
    ),
    Reference.RETAINED_GRADIENTS: frozenset({"retain_grad", "leaf_last"}),
}


#: Does what the reference does, and so agrees with it whatever is meant: a second backward through
#: a graph that stays.
_AGREES_ANYHOW = {Reference.RETAINED_GRAPH: "create_graph"}


def prior(operator: str, reference: Reference) -> float:
    """How likely an operator's edit is the right one, all other things being equal; 0 where it
    could be neither verified nor shown, or where being verified would say nothing."""
    if reference is Reference.NONE and not shown_unverified(operator, reference):
        return 0.0
    if _AGREES_ANYHOW.get(reference) == operator:
        return 0.0
    return _BY_REFERENCE.get(reference.value, {}).get(operator, EVERYWHERE[operator])


def shown_unverified(operator: str, reference: Reference) -> bool:
    return operator in _SHOWN_UNVERIFIED[reference]
