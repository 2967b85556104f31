"""Autograd's warnings: seen through `warnings.showwarning`, while the user's frame is live.

Everything is passed on first and unchanged.  What the warning was about is looked up in the
frame that caused it: `executing` gives the expression, plain data look-up gives the object.
"""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..incident import LiveFrame
from ..program import Program, Source

Handler = Callable[[str, FrameType], None]
#: torch's own code, and the recorder's between it and the user.
_PASSED_THROUGH = ("torch", "autograd_explain")
#: About an expression in the very line that warns; in torch's own code it is torch's affair.
_ABOUT_THE_LINE = "To copy construct from a tensor"
#: About a tensor, which may be the user's where a library's code reads it.
_ABOUT_A_TENSOR = "The .grad attribute of a Tensor"
#: What is lost is the user's, whoever calls torch in between.
_WHOEVER_CALLS = (
    _ABOUT_A_TENSOR,
    "None of the inputs have requires_grad",
    "Converting a tensor with requires_grad=True to a scalar",
)

#: Whatever called these is not the user's program.
_OUTERMOST = ("IPython.core.interactiveshell", "autograd_explain.script.target")

#: The classes that torch warns with.
_CLASSES = (UserWarning, FutureWarning, DeprecationWarning)


class WarningHook:
    """Takes the place of `warnings.showwarning` and calls the one that was there before.

    `handle(text, frame)` gets each warning of torch's classes after it was shown.
    """

    def __init__(self, handle: Handler) -> None:
        self.active = True
        self._handle = handle
        self._busy = threading.local()
        self._previous = warnings.showwarning
        warnings.showwarning = self

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        if getattr(self._busy, "value", False):
            return
        self._previous(message, category, filename, lineno, file, line)
        if self.active and file is None and issubclass(category, _CLASSES):
            frame = _frame_at(filename, lineno, sys._getframe(1))
            if frame is not None:
                self._handle(str(message), frame)

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Drop this thread's warnings while the body runs: they come from our own looking."""
        self._busy.value = True
        try:
            yield
        finally:
            self._busy.value = False

    def remove(self) -> None:
        """Put the previous hook back; where another hook stands in front, only pass through."""
        self.active = False
        if warnings.showwarning is self:
            warnings.showwarning = self._previous


def _frame_at(filename: str, line: int, frame: FrameType | None) -> FrameType | None:
    """The innermost frame that stands at the line which the warning names."""
    while frame is not None:
        if frame.f_lineno == line and frame.f_code.co_filename == filename:
            return frame
        frame = frame.f_back
    return None


def stack_of(frame: FrameType) -> tuple[LiveFrame, ...]:
    """The live stack down to `frame`, outermost first, from the user's cell or script on."""
    found = []
    here: FrameType | None = frame
    while here is not None and not _runs_programs(here):
        found.append(LiveFrame(here, here.f_lineno, here.f_lasti))
        here = here.f_back
    return tuple(reversed(found))


def caused_by(text: str, frames: tuple[LiveFrame, ...], program: Program) -> LiveFrame | None:
    """The user's frame that a warning is about: the last one, or the one that called torch.

    None where other library code stands in between: then it is that library's warning, unless it
    tells of gradients that will be missing.
    """
    for live in reversed(frames):
        if program.source_of(live.code) is not None:
            return live
        package = str(live.frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _PASSED_THROUGH and not text.startswith(_WHOEVER_CALLS):
            return None
    return None


def is_about_users(
    text: str,
    evidence: Mapping[str, Any],
    frames: tuple[LiveFrame, ...],
    program: Program,
    namespace: Mapping[str, Any],
) -> bool:
    """Whether a warning that a library's line caused is about what is the user's: of a tensor one
    that they have a name for, not what the library has made for itself."""
    if not text.startswith(_ABOUT_A_TENSOR):
        return not text.startswith(_ABOUT_THE_LINE)
    from ..inspect.live.names import Names

    own = [f for f in frames if program.source_of(f.code) is not None]
    named = Names(namespace, own).tensors if "object" in evidence else ()
    return any(n.tensor is evidence["object"] for n in named)


def _runs_programs(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") in _OUTERMOST


def evidence_of(frame: FrameType, source: Source | None) -> Mapping[str, Any]:
    """What the warning was about: `expression`, `operand` and, where plain data, the `object`.

    For `outs[0].grad` the expression is the whole and the operand `outs[0]`; for
    `torch.tensor(y)` the operand is the first argument.  Without a `source` the frame is a
    library's, of which the object alone says something to the user.
    """
    node = _node(frame, source)
    operand = _operand(node)
    if node is None or operand is None:
        return {}
    value = plain_value(operand, frame)
    held = {} if value is None else {"object": value}
    if source is None:
        return held
    texts = {"expression": ast.unparse(node), "operand": ast.unparse(operand)}
    return {**texts, "span": source.span(node), **held}


def _node(frame: FrameType, source: Source | None) -> ast.AST | None:
    from ..inspect.dataflow.failing_expression import expression_at

    known = source is not None and source.filename == frame.f_code.co_filename
    if source is not None and known:
        found = expression_at(source, LiveFrame(frame, frame.f_lineno, frame.f_lasti))
        if found is not None:
            return found
    from executing import Source as ExecutingSource

    node: ast.AST | None = ExecutingSource.executing(frame).node
    if node is not None or source is None:
        return node
    # No source under the frame's file name (%%time): decide by the line, if one node fits.
    fitting = [
        n
        for n in ast.walk(source.tree)
        if getattr(n, "lineno", None) == frame.f_lineno
        and (isinstance(n, ast.Call) or (isinstance(n, ast.Attribute) and n.attr == "grad"))
    ]
    return fitting[0] if len(fitting) == 1 else None


def _operand(node: ast.AST | None) -> ast.expr | None:
    if isinstance(node, ast.Attribute):
        return node.value
    if isinstance(node, ast.Call):
        given = [*node.args, *(k.value for k in node.keywords if k.arg == "data")]
        return given[0] if given else None
    return None


def plain_value(node: ast.expr, frame: FrameType) -> Any:
    """The value of an expression that only looks things up, else None; no property or call runs."""
    from ..inspect.dataflow import safe_lookup
    from ..inspect.dataflow.safe_lookup import in_frame

    found = in_frame(node, frame)
    return None if found is safe_lookup.MISSING else found
