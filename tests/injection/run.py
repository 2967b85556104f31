"""Run programs: plainly, and in a notebook's shell with the extension."""

from __future__ import annotations

import io
import linecache
import os
import pickle
import select
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import torch
from injection.case import Injected

NON_LEAF = "The .grad attribute of a Tensor that is not a leaf"
_SECONDS = 90.0


@dataclass
class Played:
    """What running cells from the top gave."""

    error: str = ""
    warned: bool = False
    losses: list[float] = field(default_factory=list)
    grads: list[Any] = field(default_factory=list)


def play(cells: tuple[str, ...] | list[str], grads: tuple[str, ...] = ()) -> Played:
    """Run cells plainly in a fresh namespace; `grads` are evaluated where nothing failed."""
    played = Played()
    space: dict[str, Any] = {"__name__": "__main__"}
    original = torch.Tensor.backward

    def backward(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        played.losses.append(float(self.detach().sum()))
        return original(self, *args, **kwargs)

    torch.Tensor.backward = backward  # type: ignore[method-assign]
    with warnings.catch_warnings(record=True) as heard, redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            for number, text in enumerate(cells, 1):
                name = f"<played {number}>"
                linecache.cache[name] = len(text), None, text.splitlines(True), name
                exec(compile(text, name, "exec"), space)
        except Exception as error:
            played.error = f"{type(error).__name__}: {error}"
        finally:
            torch.Tensor.backward = original  # type: ignore[method-assign]
            torch.set_grad_enabled(True)
        if not played.error:
            played.grads = [_value(e, space) for e in grads]
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
    and that do not.
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
    """In a process of its own: run the program in a shell, then the repaired one."""
    return in_child(lambda: _measured(case, mode)) or Measured(
        case.name, case.kind, note="no answer"
    )


def _measured(case: Injected, mode: str) -> Measured:
    start = time.monotonic()
    report, crash = explained(case.wrong, mode, silent=case.silent)
    seconds = time.monotonic() - start
    if report is None:
        return Measured(case.name, case.kind, seconds=seconds, note=crash or "not explained")
    guilty = [e for e in report["events"] if e["what"] in ("changed", "cause") and e["place"]]
    guilty = guilty or [e for e in report["events"] if e["what"] in ("detached", "created")]
    places = tuple((e["place"]["cell"], e["place"]["line"]) for e in guilty if e["place"])
    target = play(case.right, case.grads).grads
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


def _repairs(rewrite: dict[str, Any], case: Injected, target: list[Any]) -> str:
    """ "" where the edits, applied and run from the top, give the gradients; else why not."""
    cells = list(case.wrong)
    for edit in rewrite["edits"]:
        if edit["cell"] is None:
            return "edits a file"
        cells[edit["cell"] - 1] = edit["new_source"]
    played = play(cells, case.grads)
    if played.error:
        return played.error.splitlines()[0][:150]
    if played.warned:
        return "warns"
    return "" if same(target, played.grads) else "other gradients"


def explained(
    cells: tuple[str, ...], mode: str, silent: bool = False
) -> tuple[dict[str, Any] | None, str]:
    """The report on the first error or warning (or the silent finding) of a notebook."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    out, err = io.StringIO(), io.StringIO()
    found = None
    with redirect_stdout(out), redirect_stderr(err):
        shell.run_line_magic("load_ext", "autograd_explain")
        import autograd_explain

        if mode == "check":
            shell.run_line_magic("autograd_check", "on")
        for text in cells:
            result = shell.run_cell(text, store_history=True)
            found = autograd_explain.last() or found
            if found is not None or not result.success:
                break
        report = None if found is None else found.to_dict()
    return report, "" if report else err.getvalue()[-300:]


def in_child(body: Callable[[], Any], seconds: float = _SECONDS) -> Any:
    """The result of `body` in a fork, None where it does not come."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reader)
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.environ["IPYTHONDIR"] = folder
                data = pickle.dumps(body())
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(data)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    data, end = b"", time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            if select.select([reader], [], [], max(0.0, end - time.monotonic()))[0]:
                part = os.read(reader, 1 << 16)
                if not part:
                    break
                data += part
    finally:
        os.close(reader)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return pickle.loads(data) if data else None
