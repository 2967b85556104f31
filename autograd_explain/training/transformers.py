"""A callback of transformers': `Trainer(…, callbacks=[AutogradCheck(steps=3)])`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..isolation.frame_names import names_in
from .steps import RecordedSteps

if TYPE_CHECKING:
    TrainerCallback = object
else:
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise ImportError("AutogradCheck needs transformers: pip install transformers") from None


class AutogradCheck(TrainerCallback):
    """Records `steps` steps of training from step `first` on; tells what goes wrong in them.

    To be given to the Trainer when it is made.  As
    `autograd_explain.training.steps.RecordedSteps`, which says what is promised and raised; raises
    RuntimeError where training begins and it was added later.
    """

    def __init__(self, steps: int = 3, first: int = 0) -> None:
        self.steps = RecordedSteps(steps, first)
        self._sees_the_end = False

    def on_init_end(self, *_: Any, **__: Any) -> None:
        # The Trainer tells its callbacks of no error (transformers 5.23), nor who it is.
        trainer = _caller(self, sys._getframe(1))
        if trainer is not None:
            trainer.train = self._told_of_errors(trainer.train)
            self._sees_the_end = True

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        if not self._sees_the_end:
            raise RuntimeError("give AutogradCheck to the Trainer as it is made: callbacks=[…]")

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.steps.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.steps.end()

    def _told_of_errors(self, train: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(train)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                result = train(*args, **kwargs)
            except BaseException as error:
                self.steps.failed(error)
                raise
            self.steps.close()
            return result

        return run


def _caller(callback: object, frame: FrameType | None) -> Any:
    """The Trainer whose callback this is, on its way to tell that it is made."""
    while frame is not None:
        found = names_in(frame).get("self")
        handler = getattr(found, "callback_handler", None)
        if callback in getattr(handler, "callbacks", ()):
            return found
        frame = frame.f_back
    return None
