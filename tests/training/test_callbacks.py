"""Callbacks that record some steps of a training loop which a library runs.

The libraries are not among what the tests need: stand-ins tell their callbacks the same, in the
same order, and where the real ones are installed these are asked too.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from autograd_explain.training.steps import RecordedSteps

HOMES = {"lightning": "pytorch_lightning", "transformers": "transformers"}


class Net(torch.nn.Module):
    """Goes wrong at the given forward pass; without an error, where it is told so."""

    def __init__(self, wrong_at: int, silently: bool = False) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)
        self.wrong_at, self.silently, self.passes = wrong_at, silently, 0

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        h = self.first(x).tanh()
        if self.passes == self.wrong_at and self.silently:
            h.data.mul_(2)
        elif self.passes == self.wrong_at:
            h.mul_(2)
        return self.second(h).mean()


class _Quiet:
    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class _Handler:
    def __init__(self, callbacks: list[Any]) -> None:
        self.callbacks = callbacks

    def call_event(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(None, None, None, model=None)


class _HuggingFaceTrainer:
    def __init__(self, model: Net, callbacks: list[Any]) -> None:
        self.model = model
        self.callback_handler = _Handler(callbacks)
        self.callback_handler.call_event("on_init_end")

    def train(self) -> str:
        self.callback_handler.call_event("on_train_begin")
        for _ in range(4):
            self.callback_handler.call_event("on_step_begin")
            self.model.loss(torch.ones(2, 3)).backward()
            self.callback_handler.call_event("on_step_end")
        self.callback_handler.call_event("on_train_end")
        return "trained"


class _LightningTrainer:
    def __init__(self, callbacks: list[Any]) -> None:
        self._callbacks = callbacks

    def fit(self, model: Net) -> str:
        try:
            for batch in range(4):
                self._tell("on_train_batch_start", None, batch)
                model.loss(torch.ones(2, 3)).backward()
                self._tell("on_train_batch_end", None, None, batch)
            self._tell("on_train_end")
        except BaseException as error:
            self._tell("on_exception", error)
            raise
        return "trained"

    def _tell(self, event: str, *values: Any) -> None:
        for callback in self._callbacks:
            getattr(callback, event)(self, None, *values)


def fits(check: Any, net: Net) -> str:
    return _LightningTrainer([check]).fit(net)


def trains(check: Any, net: Net) -> str:
    return _HuggingFaceTrainer(net, [check]).train()


RUNS = {"lightning": fits, "transformers": trains}


@pytest.fixture(params=sorted(RUNS))
def library(request, monkeypatch) -> Iterator[SimpleNamespace]:
    """The callback's class and a training with it, by a stand-in."""
    stand_in = ModuleType(HOMES[request.param])
    stand_in.Callback = stand_in.TrainerCallback = _Quiet  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    name = f"autograd_explain.training.{request.param}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    yield SimpleNamespace(
        check=importlib.import_module(name).AutogradCheck, train=RUNS[request.param]
    )
    sys.modules.pop(name, None)


def test_what_a_step_raises_is_told_with_what_was_seen(library, capsys):
    check = library.check(steps=2)
    with pytest.raises(RuntimeError, match="inplace"):
        library.train(check, Net(wrong_at=2))
    (found,) = check.steps.found
    assert (
        found.id == "saved_value_overwritten" and "`h` was overwritten" in capsys.readouterr().err
    )
    assert {e.certainty.value for e in found.diagnosis.finding.events} == {"observed"}
    assert found.diagnosis.rewrites[0].reason.key == "not_checked_outside"
    assert torch._C._len_torch_function_stack() == 0


def test_a_silent_fault_is_told_when_the_steps_have_ended(library):
    check = library.check(steps=2)
    assert library.train(check, Net(wrong_at=1, silently=True)) == "trained"
    assert [found.id for found in check.steps.found] == ["silent_overwrite"]


@pytest.mark.parametrize(("steps", "first"), [(1, 0), (1, 2), (9, 3)])
def test_other_steps_are_not_recorded(library, steps, first):
    check = library.check(steps=steps, first=first)
    assert library.train(check, Net(wrong_at=2, silently=True)) == "trained"
    assert check.steps.found == [] and torch._C._len_torch_function_stack() == 0


def test_a_trainer_that_was_made_before_is_refused(library):
    check = library.check()
    if library.train is not trains:
        pytest.skip("Lightning tells its callbacks of errors, whenever they came")
    trainer = _HuggingFaceTrainer(Net(wrong_at=1), [])
    trainer.callback_handler.callbacks.append(check)
    with pytest.raises(RuntimeError, match="as it is made"):
        trainer.train()


@pytest.mark.parametrize("numbers", [(0,), (1, -1)])
def test_nothing_to_record_is_refused(numbers):
    with pytest.raises(ValueError, match="must be"):
        RecordedSteps(*numbers)


@pytest.mark.parametrize("name", sorted(HOMES))
def test_a_library_that_lacks_is_named(name, monkeypatch):
    for home in ("lightning", "lightning.pytorch", *HOMES.values()):
        monkeypatch.setitem(sys.modules, home, None)
    monkeypatch.delitem(sys.modules, f"autograd_explain.training.{name}", raising=False)
    with pytest.raises(ImportError, match=f"pip install {name}"):
        importlib.import_module(f"autograd_explain.training.{name}")


@pytest.mark.parametrize("wrong_at", [0, 2])
def test_the_real_lightning(wrong_at):
    pl = pytest.importorskip("pytorch_lightning", reason="Lightning is not installed")
    from autograd_explain.training.lightning import AutogradCheck

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net(wrong_at)

        def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
            return self.net.loss(batch[0])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    quiet = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    check = AutogradCheck(steps=3)
    trainer = pl.Trainer(max_steps=4, accelerator="cpu", callbacks=[check], **quiet)
    data = torch.utils.data.TensorDataset(torch.ones(8, 3))
    loader = torch.utils.data.DataLoader(data, batch_size=2)
    _ends(lambda: trainer.fit(Module(), loader), check, wrong_at)


@pytest.mark.parametrize("wrong_at", [0, 2])
def test_the_real_transformers(wrong_at, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from autograd_explain.training.transformers import AutogradCheck

    class Model(Net):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": self.loss(x)}

    check = AutogradCheck(steps=3)
    asked = {"max_steps": 4, "use_cpu": True, "save_strategy": "no", "report_to": []}
    trainer = transformers.Trainer(
        model=Model(wrong_at),
        args=transformers.TrainingArguments(output_dir=str(tmp_path), disable_tqdm=True, **asked),
        train_dataset=[{"x": torch.ones(3)}] * 8,
        callbacks=[check],
    )
    _ends(trainer.train, check, wrong_at)


def _ends(train: Callable[[], object], check: Any, wrong_at: int) -> None:
    if not wrong_at:
        train()
    else:
        with pytest.raises(RuntimeError, match="inplace"):
            train()
    found = [found.id for found in check.steps.found]
    assert found == ["saved_value_overwritten"] * bool(wrong_at)
    assert torch._C._len_torch_function_stack() == 0
