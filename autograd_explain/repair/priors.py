"""How often each operator repairs, by what torch complained of: the one table that ranks them."""

from __future__ import annotations

from collections.abc import Mapping

from ..verify import Reference

#: Where an operator is not named for a reference, and where no reference is known.
EVERYWHERE: Mapping[str, float] = {
    "clone": 0.5,
    "clone_first": 0.4,
    "clone_elements": 0.15,
    "out_of_place": 0.6,
    "written_into": 0.2,
    "no_grad": 0.35,
    "no_grad_function": 0.2,
    "no_grad_further": 0.1,
    "with_graph": 0.4,
    "no_inference_mode": 0.5,
    "move": 0.15,
    "delete": 0.08,
    "repeat": 0.08,
    "compute_in_loop": 0.4,
    "compute_again": 0.3,
    "detach": 0.15,
    "detach_carried": 0.3,
    "detach_carried_states": 0.15,
    "detach_kept": 0.15,
    "keep_in_graph": 0.5,
    "soft": 0.3,
    "tensors_joined": 0.4,
    "drop_call": 0.15,
    "number": 0.2,
    "leaf_last": 0.5,
    "new_leaf": 0.25,
    "no_flag": 0.3,
    "registered": 0.3,
    "retain_grad": 0.2,
    "turn_flag": 0.1,
    "reduce": 0.2,
    "create_graph": 0.2,
    "allow_unused": 0.1,
    "away_from_zero": 0.05,
    "detach_other": 0.1,
    "put_together": 0.4,
    "part_of_derivative": 0.5,
    "derivative_itself": 0.3,
}
_BY_REFERENCE: Mapping[Reference, Mapping[str, float]] = {
    Reference.SAVED_VALUES: {
        "soft": 0.02,
        "no_grad": 0.1,
        "new_leaf": 0.02,
        "move": 0.3,
        "keep_in_graph": 0.1,
    },
    Reference.RETAINED_GRAPH: {
        "detach_carried": 0.6,
        "detach_kept": 0.6,
        "compute_in_loop": 0.7,
        "detach": 0.3,
        "create_graph": 0.0,
    },
    Reference.LENIENT: {
        "no_grad": 0.7,
        "detach": 0.5,
        "leaf_last": 0.7,
        "new_leaf": 0.5,
        "written_into": 0.4,
    },
    Reference.RETAINED_GRADIENTS: {
        "retain_grad": 0.7,
        "leaf_last": 0.8,
        "new_leaf": 0.3,
        "no_grad": 0.02,
        "no_grad_function": 0.02,
        "detach": 0.02,
        "detach_kept": 0.02,
        "delete": 0.01,
    },
}


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


def prior(operator: str, reference: Reference) -> float:
    """How likely an operator's edit is the right one, all other things being equal; 0 where it
    could be neither verified nor shown."""
    if reference is Reference.NONE and not shown_unverified(operator, reference):
        return 0.0
    return _BY_REFERENCE.get(reference, {}).get(operator, EVERYWHERE[operator])


def shown_unverified(operator: str, reference: Reference) -> bool:
    return operator in _SHOWN_UNVERIFIED[reference]
