"""Explains PyTorch autograd errors in notebooks.

`%load_ext autograd_explain` explains every failing cell from then on; `%%autograd_check` records a
cell, so that what is told was seen.  Neither torch nor libcst is imported before it is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .intercept.session import Session
    from .ranks.account import Account
    from .render.explanation import Explanation
    from .render.verdict import Verdict
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
    "merge",
    "uninstall",
    "unload_ipython_extension",
    "verify",
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
    _session = Session(shell, _explain_incident, _is_recognised, _told, _warm_up)
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

    Works in an `except` block and without a notebook; in a notebook it sees the cells as well,
    whether the extension is loaded or not.
    """
    from .intercept.plain import explain_exception

    in_session = _in_passing if _session is None else _session.explain
    shell = _shell()
    return explain_exception(exc, _explain_incident, None if shell is None else in_session)


def _shell() -> InteractiveShell | None:
    """The notebook's or terminal's IPython that runs here."""
    if _session is not None:
        return _session.shell  # type: ignore[no-any-return]
    found: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return found  # type: ignore[no-any-return]


def _in_passing(error: BaseException) -> Explanation | None:
    """Explain by the cells of a notebook where the extension is not loaded."""
    from .intercept.session import Session

    found = Session(_shell(), _explain_incident, _is_recognised).explain(error)
    return None if found is None else found.with_reason("not_loaded")


def verify(
    candidate: str, *, cell: int | None = None, file: str | None = None, budget: float = 20.0
) -> Verdict:
    """Whether a program is right with `candidate` in the place of a cell or a file.

    In a notebook: of the cell that was explained last, or of In[`cell`], or of one of the user's
    own files; without one, of the script `file`.  The program runs again in another process, as
    often as needed and for `budget` seconds in all; nothing of the session changes.  "verified"
    means that every gradient agrees with the intended ones.

    Raises ValueError where there is no such cell or file, and where `budget` is no time.
    """
    if not 0 < budget < float("inf"):
        raise ValueError(f"budget must be a positive number of seconds, not {budget!r}")
    from .intercept.candidate import NoPlace, try_in_session, try_script
    from .render.verdict import verdict_of
    from .settings import default_language

    if _session is not None:
        language = _session.settings.language
        return verdict_of(try_in_session(_session, candidate, cell, file, budget), language)
    if file is None:
        raise NoPlace("without a notebook, say which script is meant with file=")
    return verdict_of(try_script(file, candidate, budget), default_language())


def install() -> None:
    """Explain what a script raises and nobody catches, in any thread, under its traceback.

    The hooks that were there (`sys.excepthook`, `threading.excepthook`) go first.  Twice is once.
    Under torchrun each rank also leaves its report beside torch elastic's error file.
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
    from .program import Program
    from .script.rank_record import RankRecord
    from .script.watch import show

    record = RankRecord(Program(), None)
    record.failed(error)
    found = explain(error)
    if found is not None:
        _last = found
        record.explained([found])
        show(found)


def lookup(text: str, language: str | None = None) -> Answer | None:
    """What the knowledge base says about a pasted message or a question in en, ja or zh.

    None where nothing fits.  Where no language is given, it is that of the question, of a message
    or a keyword the session's.
    """
    from .search import language_in
    from .search import lookup as find
    from .settings import AutogradExplain

    settings = AutogradExplain() if _session is None else _session.settings
    return find(text, language or language_in(text, settings.language), tuple(settings.causes))


def merge(reports: Iterable[Explanation | None]) -> Account:
    """The reports of several processes, by rank, as one: each cause at one place once.

    With ipyparallel, say: `merge(client[:].apply_sync(autograd_explain.last))`.
    """
    from .ranks.account import account

    return account(reports)


def _explain_incident(*args: Any, **options: Any) -> Explanation | None:
    from .pipeline import explain_incident

    return explain_incident(*args, **options)


def _warm_up() -> Iterator[None]:
    from .warm_up import steps

    return steps()


def _is_recognised(*args: Any) -> bool:
    from .pipeline import is_recognised

    return is_recognised(*args)


def __getattr__(name: str) -> Any:
    if name == "Explanation":
        from .render.explanation import Explanation

        return Explanation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
