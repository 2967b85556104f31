"""Run injected programs: plainly in this process, and in a session of their own."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from injection.case import Injected
from injection.differences import contradicted
from notebook import Notebook, captured
from sessions import Values, run_in_session, run_plainly

NON_LEAF = "The .grad attribute of a Tensor that is not a leaf"


@dataclass
class Played:
    """What running cells from the top gave."""

    error: str = ""
    warned: bool = False
    losses: list[float] = field(default_factory=list)
    grads: list[Any] = field(default_factory=list)


def play(cells: tuple[str, ...] | list[str], grads: tuple[str, ...] = ()) -> Played:
    """Run cells plainly in a fresh namespace; `grads` are evaluated where nothing failed."""
    played, notebook = Played(), Notebook()
    original = torch.Tensor.backward

    def backward(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        played.losses.append(float(self.detach().sum()))
        return original(self, *args, **kwargs)

    torch.Tensor.backward = backward  # type: ignore[method-assign]
    with warnings.catch_warnings(record=True) as heard, captured():
        warnings.simplefilter("always")
        try:
            for text in cells:
                notebook.run(text)
        except Exception as error:
            played.error = f"{type(error).__name__}: {error}"
        finally:
            torch.Tensor.backward = original  # type: ignore[method-assign]
            torch.set_grad_enabled(True)
        if not played.error:
            played.grads = [_value(e, notebook.namespace) for e in grads]
    played.warned = any(NON_LEAF in str(w.message) for w in heard)
    return played


def _value(expression: str, space: dict[str, Any]) -> Any:
    try:
        found = eval(expression, space)
    except Exception:
        return None
    return found.detach().clone() if isinstance(found, torch.Tensor) else None


def same(first: list[Any], second: list[Any]) -> bool:
    """The same gradients, all there."""
    if len(first) != len(second):
        return False
    return all(
        a is not None
        and b is not None
        and a.shape == b.shape
        and torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-6)
        for a, b in zip(first, second, strict=True)
    )


def goes_wrong(case: Injected) -> bool:
    """Whether the right program works, and the wrong one computes the same until it goes wrong."""
    right = play(case.right, case.grads)
    if right.error or right.warned or any(g is None or not g.isfinite().all() for g in right.grads):
        return False
    if not any(bool(g.count_nonzero()) for g in right.grads):
        return False
    wrong = play(case.wrong, case.grads)
    # A backward that fails may start from a stale value: that is what a reused graph means.
    known = wrong.losses[:-1] if wrong.error and case.kind in ("graph", "step") else wrong.losses
    if any(abs(a - b) > 1e-5 * (1 + abs(a)) for a, b in zip(right.losses, known)):  # noqa: B905
        return False
    if case.silent:
        return not wrong.error and not same(right.grads, wrong.grads)
    return bool(wrong.error) or wrong.warned


@dataclass(frozen=True)
class Measured:
    """What the extension made of an injected program.

    `named`: its first guilty event is at the bug; `repaired`: its first rewrite, applied and run
    from the top, gives the right program's gradients; `false`: rewrites that it called verified
    and that do not, or (of a silent bug) whose gradients are not the derivative of the loss.
    """

    name: str
    kind: str
    cause: str = ""
    named: bool = False
    observed: bool = False
    repaired: bool = False
    outcome: str = ""
    false: tuple[str, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    seconds: float = 0.0
    note: str = ""
    report: Any = None


def measure(case: Injected, mode: str = "check") -> Measured:
    """Run the program in a session, then each rewrite."""
    start = time.monotonic()
    ran = run_in_session(case.wrong, watched=mode == "check")
    seconds = time.monotonic() - start
    if not ran.reports:
        return Measured(case.name, case.kind, seconds=seconds, note="not explained")
    report = ran.reports[0].told
    guilty = [e for e in report["events"] if e["what"] in ("changed", "cause") and e["place"]]
    guilty = guilty or [e for e in report["events"] if e["what"] in ("detached", "created")]
    places = tuple((e["place"]["cell"], e["place"]["line"]) for e in guilty if e["place"])
    target = run_plainly(case.right, case.grads)
    outcomes = [(_repairs(r, case, target), r["outcome"], r["title"]) for r in report["rewrites"]]
    first = outcomes[0] if outcomes else ("no rewrite", "", "")
    return Measured(
        case.name,
        case.kind,
        report["id"],
        bool(places) and places[0] in case.guilty,
        bool(guilty) and guilty[0]["certainty"] == "observed",
        first[0] == "",
        first[1],
        tuple(title for why, outcome, title in outcomes if outcome == "verified" and why),
        places,
        seconds,
        first[0] or (report["rewrites"][0]["outcome_reason"] if report["rewrites"] else ""),
        report,
    )


def _repairs(rewrite: dict[str, Any], case: Injected, target: Values) -> str:
    """ "" where the edits, applied and run from the top, give the gradients; else why not."""
    cells = list(case.wrong)
    for edit in rewrite["edits"]:
        if edit["cell"] is None:
            return "edits a file"
        cells[edit["cell"] - 1] = edit["new_source"]
    found = run_plainly(cells, case.grads)
    if found.error:
        return found.error.splitlines()[0][:150]
    if not found.agrees(target):
        return "other gradients"
    wrong = contradicted(cells, case.grads) if case.silent else ()
    return f"no derivative: {', '.join(wrong)}" if wrong else ""
