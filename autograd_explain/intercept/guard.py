"""A guest's manners: what goes wrong inside us stays inside us.

A problem is kept as text (an exception would keep frames and tensors alive) and told in one
line, with the way to see it.  KeyboardInterrupt is the user's and passes.
"""

from __future__ import annotations

import sys
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_MAX_PROBLEMS = 20
# Not among the labels of `render`: that stage may be the one that fails.
_LINE = {
    "en": "autograd_explain: set aside an internal error ({stages}); {more}",
    "ja": "autograd_explain：内部エラーのため一部を省略しました（{stages}）。{more}",
    "zh": "autograd_explain：内部出错，已跳过（{stages}）；{more}",
}
_MORE = {
    "en": "%autograd_explain --debug shows it",
    "ja": "%autograd_explain --debug で内容を確認できます",
    "zh": "用 %autograd_explain --debug 查看详情",
}
_problems: deque[tuple[str, str]] = deque(maxlen=_MAX_PROBLEMS)
_untold: list[str] = []
_remarks: dict[str, bool] = {}  #: lines to tell, and whether they were told


@contextmanager
def guarded(stage: str) -> Iterator[None]:
    """Run the body; an exception in it is noted under the stage's name and goes no further."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit) as error:
        # The end of a walk is a GeneratorExit too, so that generators of its own end silently.
        if type(error) in (KeyboardInterrupt, GeneratorExit):
            raise
        note(stage)
    except BaseException:  # a SystemExit that some object of the user's raises is not the user's
        note(stage)


def note(stage: str, *, tell: bool = True) -> None:
    """Keep the exception being handled, as text; `tell` it in a line unless a remark does."""
    try:
        # Without the chain: what it came from may be the user's, with a text that acts.
        text = traceback.format_exc(chain=False)
    except Exception:  # a user's object with a failing __repr__ or __str__
        text = f"{sys.exc_info()[0]!r} (its text could not be made)"
    _problems.append((stage, text))
    if tell and stage not in _untold:
        _untold.append(stage)


def remark(line: str) -> None:
    """Something of the user's that cannot be used: told once, as it stands."""
    _remarks.setdefault(line, False)


def _tell_remarks() -> None:
    for line, told in _remarks.items():
        if not told:
            print(f"autograd_explain: {line}", file=sys.stderr)
            _remarks[line] = True


def tell(language: str = "en", *, outside: bool = False) -> None:
    """Say in one line what was set aside since the last time, if anything: with the way to see
    it, or `outside` a notebook with the last error itself."""
    with suppress(Exception):  # the user's sys.stderr may be anything
        _tell_remarks()
    if not _untold:
        return
    stages = ", ".join(_untold)
    _untold.clear()
    try:
        more = _last() if outside else _MORE.get(language, _MORE["en"])
        print(_LINE.get(language, _LINE["en"]).format(stages=stages, more=more), file=sys.stderr)
    except Exception:  # the user's sys.stderr may be anything
        return


def _last() -> str:
    return _problems[-1][1].strip().splitlines()[-1] if _problems else ""


def report() -> str:
    """Every problem kept, newest last."""
    return "\n".join(f"[{stage}]\n{text}" for stage, text in _problems)


def clear() -> None:
    _problems.clear()
    _untold.clear()
    _remarks.clear()
