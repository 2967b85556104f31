"""Rows whose text alone also fits errors that have nothing to do with autograd.

Each rule looks at the match and at what surrounds it: the program line that failed, where the
caller knows it, or the traceback that stands before a pasted message.  Without such context only
readings that leave no doubt are accepted; unknown beats wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .wording import Hit

_SCALAR_TYPE = re.compile(
    r"(Double|Float|Half|BFloat16|Byte|Char|Short|Int|Long|Bool|ComplexFloat|ComplexDouble)\Z"
)
#: Parameters of forward kernels: their dtype error has nothing to do with the loss.
_KERNEL_ARGUMENT = re.compile(
    r"(self|other|input|weight|bias|m(at)?[12]|batch[12]|vec|tensor[12s]?|ind(ex|ices)|src|source"
    r"|end|values?|exponent|lengths|boundaries|running_\w+)\Z"
)
#: Methods that only tensors have.
_TENSOR_METHOD = re.compile(r"([a-z]\w*_|detach|requires_grad|grad_fn|is_leaf|retain_grad)\Z")
_VALUE_TYPE = re.compile(
    r"([a-z_][\w.]*|NoneType|\w*(Output|Outputs|Loss|Tuple|Meter|Dict|List|Result|Function))\Z"
)
_GRAD = re.compile(r"\.grad\b")
_APPLY = re.compile(r"\.apply\(")
_CHECKPOINT = re.compile(r"\bcheckpoint")
_CLASS = re.compile(r"([A-Za-z_][\w.]*): ?\Z")
#: A frame of a traceback, Python's and IPython's way.
_FRAME = re.compile(r"^\s*(?:File|Cell|~|/|\w:).*?\bin (?:[\w.<>]+\.)?(\w+)", re.MULTILINE)
_TORCH_FILE = re.compile(r"[/\\]torch[/\\]")
#: What launchers and the warnings module print before a message.
_PRINTED = re.compile(r"(\[rank\d+\]:\s*)?(\S+:\d+:\s*)?\Z")


@dataclass(frozen=True)
class Surroundings:
    """What stands around a match: the error's class if written, the program's lines, and the
    function of the program's that was running."""

    exception: str
    at_start: bool
    lines: str
    running: str

    @classmethod
    def of(cls, hit: Hit, text: str, source: str, running: str = "") -> Surroundings:
        before = text[: hit.start]
        line_start = before.rfind("\n") + 1
        found = _CLASS.search(before, line_start)
        lead = before[line_start : found.start() if found else None]
        return cls(
            exception=found.group(1) if found else "",
            at_start=not _PRINTED.sub("", lead).strip(),
            lines=source + text[max(0, line_start - 1500) : line_start],
            running=running or _innermost(text[max(0, line_start - 1500) : line_start]),
        )

    def shows(self, pattern: re.Pattern[str]) -> bool:
        return pattern.search(self.lines) is not None

    def denies(self, pattern: re.Pattern[str]) -> bool:
        """The program's lines are known and do not hold it."""
        return bool(self.lines.strip()) and not self.shows(pattern)


def _innermost(traceback: str) -> str:
    """The function of the last frame that a pasted traceback shows; "" for one of torch's own."""
    frames = list(_FRAME.finditer(traceback))
    if not frames or _TORCH_FILE.search(frames[-1].group()):
        return ""
    return frames[-1].group(1)


Rule = Callable[[Hit, Surroundings], bool]


def _none_attribute(hit: Hit, near: Surroundings) -> bool:
    if near.shows(_GRAD):
        return True
    return near.at_start and bool(_TENSOR_METHOD.match(hit.captures.get("attribute", "")))


def _none_arithmetic(hit: Hit, near: Surroundings) -> bool:
    other = hit.captures.get("left") or hit.captures.get("right", "")
    return near.shows(_GRAD) or other in ("Tensor", "Parameter")


def _none_negated(hit: Hit, near: Surroundings) -> bool:
    return near.at_start and not near.denies(_GRAD)


def _backward_on(hit: Hit, near: Surroundings) -> bool:
    return near.shows(re.compile(r"loss")) or bool(_VALUE_TYPE.match(hit.captures.get("type", "")))


def _found_dtype(hit: Hit, near: Surroundings) -> bool:
    both = (hit.captures.get("dtype", ""), hit.captures.get("expected", "").rstrip("."))
    if "argument" in hit.captures:
        return not _KERNEL_ARGUMENT.match(hit.captures["argument"])
    return near.at_start and all(map(_SCALAR_TYPE.match, both))


def _apply_keyword(hit: Hit, near: Surroundings) -> bool:
    """Python 3.10 and later write the class before a module's forward(); a bare one is the
    Function's.  A traceback of an older Python must show the apply call."""
    return near.at_start and not near.denies(_APPLY)


def _checkpoint_keyword(hit: Hit, near: Surroundings) -> bool:
    names = re.fullmatch(r"[A-Za-z_]\w*(,[A-Za-z_]\w*)*", hit.captures.get("arguments", ""))
    return bool(names) and near.exception in ("", "ValueError") and not near.denies(_CHECKPOINT)


def _in_backward(hit: Hit, near: Surroundings) -> bool:
    """Kernels say this of a forward pass too, where it has nothing to do with autograd."""
    return near.running == "backward"


def _by_engine(hit: Hit, near: Surroundings) -> bool:
    """The engine calls the `backward` of a custom Function; another class's the program itself."""
    return near.at_start and not near.running


def _at_start(hit: Hit, near: Surroundings) -> bool:
    return near.at_start


RULES: dict[str, Rule] = {
    "grad-none-attribute": _none_attribute,
    "grad-none-arithmetic": _none_arithmetic,
    "grad-none-first": _none_arithmetic,
    "grad-none-unary": _none_negated,
    "backward-on-non-tensor": _backward_on,
    "found-dtype": _found_dtype,
    "function-kwarg-unexpected": _apply_keyword,
    "function-kwarg-duplicate": _apply_keyword,
    "function-kwarg-missing": _apply_keyword,
    "checkpoint-unexpected-kwargs": _checkpoint_keyword,
    "function-takes-too-few-gradients": _by_engine,
    "optimizer-invalid-learning-rate": _at_start,
    "lr-scheduler-not-optimizer": _at_start,
}
#: Rows of this prefix are messages of kernels about the dtypes that they were given.
IN_BACKWARD = "backward-dtype-"


def fits(id: str, hit: Hit, text: str, source: str, running: str = "") -> bool:
    """Whether the row may claim this match."""
    rule = _in_backward if id.startswith(IN_BACKWARD) else RULES.get(id)
    if rule is None:
        return True
    return hit.complete and rule(hit, Surroundings.of(hit, text, source, running))
