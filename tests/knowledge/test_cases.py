"""Every cause's own case: this message, this diagnosis, this rewrite, and gradients that agree.

A folder's `case.py` goes wrong in the way that the cause explains, and `fixed.py` is what the
cause's first rewrite makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
import pytest
import torch
from knowledge.played import WITH_CASE, Played, checked, edited, play, played, program
from nbformat import v4
from notebook import fresh_torch, python_of, run_cells
from torch import nn
from torch.autograd.graph import allow_mutation_on_saved_tensors
from torch.nn import functional

import autograd_explain
from autograd_explain.knowledge.entry import Entry, entries
from autograd_explain.model import Confidence, Diagnosis, Kind, Outcome, Safety
from autograd_explain.render import LANGUAGES, Explanation
from autograd_explain.verification.own_gradients import own_gradients

#: The names of torch's operations, those of the graph's nodes apart.
OF_TORCH = {
    name
    for owner in (torch, torch.Tensor, torch.optim.Optimizer, torch.autograd, functional)
    for name in dir(owner)
} | set(dir(torch._C._nn))


@pytest.fixture(params=WITH_CASE, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    found: Entry = request.param
    return found


def diagnosis_of(entry: Entry) -> Diagnosis:
    """The diagnosis of the case; a failing test where there is none or it is another cause's."""
    found = played(entry.name)
    if found.diagnosis is None:
        pytest.fail(f"nothing was explained; the notebook printed:\n{found.output or '(nothing)'}")
    cause = found.diagnosis.finding.cause
    assert cause == entry.name, f"explained as {cause}: {found.diagnosis.message or found.pattern}"
    return found.diagnosis


# -- the case ---------------------------------------------------------------------------


def test_case_gives_the_message(entry: Entry) -> None:
    diagnosis_of(entry)
    assert played(entry.name).pattern in entry.patterns


def test_case_gives_the_diagnosis(entry: Entry) -> None:
    found = diagnosis_of(entry).finding
    assert set(found.facts) == set(entry.example), "the facts' names are not those of EXAMPLE"
    assert dict(found.facts) == dict(entry.example)
    assert found.confidence >= Confidence.LIKELY, "its own case is explained in general only"
    assert played(entry.name).trouble == ""


@pytest.mark.one_in(10)
def test_watched_case_gives_the_same_cause(entry: Entry) -> None:
    found = checked(entry.name)
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.cause == entry.name
    assert found.trouble == ""
    assert named_otherwise(found) == set()


def test_an_event_names_an_operation_of_torch(entry: Entry) -> None:
    assert named_otherwise(played(entry.name)) == set()


def named_otherwise(found: Played) -> set[str]:
    """What the events name that is no operation of torch."""
    assert found.diagnosis is not None
    named = {e.op for e in found.diagnosis.finding.events if e.op is not None}
    return {name for name in named if not is_operation(name)}


def test_what_is_no_operation_is_told_from_one() -> None:
    assert is_operation("add_") and is_operation("TanhBackward0") and is_operation("step")
    assert not is_operation("plain_list") and not is_operation("ReLU(inplace=True)")


def is_operation(name: str) -> bool:
    """A graph node's name, or that of a function, a method or an optimizer's step."""
    return bool(re.fullmatch(r"\w+Backward\d*", name)) or name in OF_TORCH


# -- the rewrite ------------------------------------------------------------------------


def test_first_rewrite_makes_the_repaired_program(entry: Entry) -> None:
    rewrites = diagnosis_of(entry).rewrites
    assert bool(rewrites) == (entry.folder / "fixed.py").exists(), "no rewrite, or no fixed.py"
    if rewrites:
        assert edited(program(entry, "case"), rewrites[0]) == program(entry, "fixed")


def test_every_rewrite_is_told(entry: Entry) -> None:
    """Each rewrite has a text, of the cause's own or an operator's, and is an edit that parses."""
    operators = Path(autograd_explain.__file__).parent / "rewrite" / "operators" / "en.md"
    text = entry.text_path("en").read_text("utf-8") + operators.read_text("utf-8")
    for rewrite in diagnosis_of(entry).rewrites:
        assert f"## fix {rewrite.fix}\n" in text
        for cell in edited(program(entry, "case"), rewrite):
            compile(python_of(cell), "<cell>", "exec")


def test_repaired_program_runs(entry: Entry) -> None:
    """To its end, and a watched session has nothing to say about it."""
    if not diagnosis_of(entry).rewrites:
        return
    cells = program(entry, "fixed")
    run(cells)
    again = play(cells, watched=True).diagnosis
    assert again is None, f"explained once more: {again.finding.cause}"


@pytest.mark.one_in(10)
def test_watched_rewrite_holds(entry: Entry) -> None:
    """What is proposed first in a watched cell was run, and nothing spoke against it."""
    found = checked(entry.name).diagnosis
    assert found is not None
    for rewrite in found.rewrites[:1]:
        told = f"{rewrite.fix}: {rewrite.reason.key} {dict(rewrite.reason.values)}"
        if rewrite.reason.key == "needs_network" and _uses_processes(entry):
            continue  # a process group needs sockets, which no replay may open
        if rewrite.safety is Safety.SAME_GRADIENTS:
            assert rewrite.outcome in (Outcome.VERIFIED, Outcome.RUNS), told
        elif rewrite.safety is Safety.CHANGES_MEANING:
            assert rewrite.outcome is not Outcome.FAILS, told


def _uses_processes(entry: Entry) -> bool:
    return any("init_process_group(" in cell for cell in program(entry, "case"))


def test_gradients_agree_with_the_intended_ones(entry: Entry) -> None:
    """Where torch can be made to run the case as it was meant, the rewrite gives its gradients."""
    found = diagnosis_of(entry)
    if found.kind is Kind.WARNING or not found.rewrites:
        return
    if found.rewrites[0].safety is not Safety.SAME_GRADIENTS:
        return
    intended = as_intended(program(entry, "case"))
    if intended is None:
        return
    repaired = gradients(run(program(entry, "fixed")))
    # What is not finite says nothing of what was meant.
    intended = {name: grad for name, grad in intended.items() if grad.isfinite().all()}
    shared = intended.keys() & repaired.keys()
    assert shared or not intended, "the repaired program has none of the intended gradients"
    for name in sorted(shared):
        torch.testing.assert_close(repaired[name], intended[name], msg=f"{name}.grad differs")


# -- what is shown ----------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_fifty_reports_are_small(language: str) -> None:
    """In a notebook's file, each with its styles, its text and its data."""
    found = [played(entry.name).diagnosis for entry in WITH_CASE[::2][:50]]
    reports = [Explanation(diagnosis, language) for diagnosis in found if diagnosis is not None]
    assert len(reports) == 50
    outputs = [v4.new_output("display_data", report._repr_mimebundle_()) for report in reports]
    assert size_of_notebook(outputs) - size_of_notebook([]) < 400_000


def size_of_notebook(outputs: Sequence[Any]) -> int:
    cell = v4.new_code_cell("loss.backward()", id="a", outputs=list(outputs))
    return len(nbformat.writes(v4.new_notebook(cells=[cell])).encode())


# -- the folders ------------------------------------------------------------------------


def test_every_cause_has_a_case() -> None:
    """A cause that rewrites shows it; a topic claims nothing and has no case."""
    for entry in entries().values():
        has = {path.stem for path in entry.folder.glob("*.py")}
        if has & {"case", "fixed", "rewrite"}:
            assert "diagnose" in has, f"{entry.name}: a case that nothing diagnoses"
        if has & {"fixed", "rewrite"}:
            assert has >= {"case", "fixed", "rewrite"}, f"{entry.name}: a rewrite that is not shown"


# -- running programs -------------------------------------------------------------------


def run(cells: Sequence[str]) -> dict[str, Any]:
    """A notebook from the top, without the extension; its namespace."""
    with fresh_torch():
        return run_cells(cells)


def as_intended(cells: Sequence[str]) -> dict[str, torch.Tensor] | None:
    """The gradients that the failing notebook means: overwritten values are kept for backward,
    graphs are not freed, and hooks write gradients of their own.  None where that does not make
    it run."""
    with allow_mutation_on_saved_tensors(), graphs_kept(), own_gradients(()):
        try:
            return gradients(run(cells))
        except Exception:
            return None


def graphs_kept() -> Any:
    """Every `loss.backward()` keeps its graph."""
    backward = torch.Tensor.backward

    def keeping(self: torch.Tensor, gradient: Any = None, *_: Any, **options: Any) -> None:
        backward(self, gradient, **{**options, "retain_graph": True})

    return mock.patch.object(torch.Tensor, "backward", keeping)


def gradients(namespace: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """`.grad` of the leaves that the notebook's own names lead to."""
    return {
        name: leaf.grad.clone()
        for name, leaf in leaves(namespace)
        if leaf.is_leaf and leaf.grad is not None
    }


def leaves(namespace: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in namespace.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, nn.Module):
            yield from ((f"{name}.{inner}", p) for inner, p in value.named_parameters())


def test_intended_gradients_are_right() -> None:
    """The reference itself: an overwritten value, and one graph used twice."""
    cells = (
        "import torch\nx = torch.tensor([2.0], requires_grad=True)",
        "y = x * 1\nz = y * y\ny.zero_()\nz.backward()\nz.backward()",
    )
    found = as_intended(cells)
    assert found is not None and found["x"].tolist() == [8.0]
    assert as_intended(("import torch", "torch.ones(1).backward()")) is None
