"""A callback of Lightning's: `Trainer(callbacks=[AutogradCheck(steps=3)])`."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .steps import RecordedSteps

_HOMES = ("lightning.pytorch", "pytorch_lightning")  #: the same library twice


def _callback() -> Any:
    """The base class: of the one that the program has loaded, where there are both."""
    for home in sorted(_HOMES, key=lambda name: name not in sys.modules):
        with suppress(ImportError):
            return import_module(home).Callback
    raise ImportError("AutogradCheck needs Lightning: pip install lightning")


if TYPE_CHECKING:
    Callback = object
else:
    Callback = _callback()


class AutogradCheck(Callback):
    """Records `steps` batches of training from batch `first` on; tells what goes wrong in them.

    As `autograd_explain.training.steps.RecordedSteps`, which says what is promised and raised.
    """

    def __init__(self, steps: int = 3, first: int = 0) -> None:
        super().__init__()
        self.steps = RecordedSteps(steps, first)

    def on_train_batch_start(self, *_: Any, **__: Any) -> None:
        self.steps.begin()

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        self.steps.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.steps.failed(exception)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self.steps.close()
