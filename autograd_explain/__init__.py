"""Explains PyTorch autograd errors in notebooks.

`%load_ext autograd_explain` explains every failing cell from then on; `%%autograd_check` records a
cell, so that what is told was seen.  Neither torch nor libcst is imported before it is needed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .intercept.session import Session
    from .render.explanation import Explanation
    from .script.hooks import Hooks
    from .search import Answer

__version__ = "0.1.0"
__all__ = [
    "Explanation",
    "explain",
    "install",
    "last",
    "load_ipython_extension",
    "lookup",
    "uninstall",
    "unload_ipython_extension",
]

_session: Session | None = None
_hooks: Hooks | None = None
# %reload_ext runs this module again: the last report outlives that.
_last: Explanation | None = globals().get("_last")
_told: int | None = globals().get("_told")  # the last error shown while a session was loaded


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext autograd_explain`: silent, and nothing happens twice.

    An autograd error that was shown before is explained at the end of the cell that loads.
    """
    global _session
    from .intercept.magics import register
    from .intercept.session import Session

    if _session is not None and _session.shell is shell:
        return
    if _session is not None:
        unload_ipython_extension(_session.shell)
    _session = Session(shell, _explain_incident, _is_recognised, _told)
    _session.install()
    register(shell, _session)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext autograd_explain`: everything as it was before."""
    global _session, _last, _told
    if _session is None or _session.shell is not shell:
        return
    from .intercept.magics import unregister

    _last, _told = _session.last, id(getattr(sys, "last_value", None))
    _session.remove()
    unregister(shell)
    _session = None


def last() -> Explanation | None:
    """The latest explanation of this session, or None.  It holds no tensor and no frame."""
    return _last if _session is None else _session.last or _last


def explain(exc: BaseException | None = None) -> Explanation | None:
    """Explain an exception, the last one shown if none is given; None where it is not autograd's.

    Works in an `except` block and without a notebook; in a notebook it sees the cells as well.
    """
    from .intercept.plain import explain_exception

    return explain_exception(exc, _explain_incident, _session.explain if _session else None)


def install() -> None:
    """Explain what a script raises and nobody catches, in any thread, under its traceback.

    The hooks that were there (`sys.excepthook`, `threading.excepthook`) go first.  Twice is once.
    """
    global _hooks
    from .script.hooks import Hooks

    if _hooks is None:
        _hooks = Hooks(_explain_below)
        _hooks.install()


def uninstall() -> None:
    """The end of `install`: everything as it was before."""
    global _hooks
    if _hooks is not None:
        _hooks.remove()
    _hooks = None


def _explain_below(error: BaseException) -> None:
    global _last
    from .script.watch import show

    found = explain(error)
    if found is not None:
        _last = found
        show(found)


def lookup(text: str, language: str | None = None) -> Answer | None:
    """What the knowledge base says about a pasted message or a question in en, ja or zh.

    None where nothing fits.  Where no language is given, it is that of a question in Japanese or
    Chinese, else the session's.
    """
    from .search import language_in
    from .search import lookup as find
    from .settings import AutogradExplain

    settings = AutogradExplain() if _session is None else _session.settings
    return find(text, language or language_in(text, settings.language), tuple(settings.causes))


def _explain_incident(*args: Any, **options: Any) -> Explanation | None:
    from .pipeline import explain_incident

    return explain_incident(*args, **options)


def _is_recognised(*args: Any) -> bool:
    from .pipeline import is_recognised

    return is_recognised(*args)


def __getattr__(name: str) -> Any:
    if name == "Explanation":
        from .render.explanation import Explanation

        return Explanation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
