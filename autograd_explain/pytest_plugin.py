"""pytest: what went wrong in autograd, in a section under the test that failed.

A failure that autograd has nothing to do with costs the look at its message, a test that passes
nothing.  With `--autograd-check`, the ini option `autograd_check` or the marker of that name a test
is recorded from its fixtures on: what is told was seen, a test in which autograd goes wrong without
an error fails, and rewrites are tried: the test runs again with each, in a copy of the process that
was made before its call.  `-p no:autograd_explain` switches everything off.
"""

from __future__ import annotations

import inspect
import sys
from collections import ChainMap
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .render.explanation import Explanation
    from .script.watch import Watch

NAME = "autograd_check"
SECTION = "autograd_explain"
_UNCHECKED, _UNTRIED = "not_checked_test", "in_test"
_HELP = "record tests, and fail those in which autograd goes wrong without an error"
_BUDGET = "seconds that trying rewrites may take for a checked test (20; 0: none is tried)"
_watch: pytest.StashKey[Watch] = pytest.StashKey()
_names: pytest.StashKey[dict[str, Any]] = pytest.StashKey()  #: what a test has of its fixtures
_modes: pytest.StashKey[int] = pytest.StashKey()  #: how many function modes are entered


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("autograd_explain").addoption(
        "--autograd-check", action="store_true", help=_HELP
    )
    parser.getgroup("autograd_explain").addoption(
        "--autograd-budget", type=float, default=20.0, metavar="S", help=_BUDGET
    )
    parser.addini(NAME, _HELP, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{NAME}(on=True): {_HELP}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Record a test from before its fixtures until after them."""
    if not _is_checked(item):
        return (yield)
    with ExitStack() as stack:
        names: dict[str, Any] = {}
        watch = _watch_of(item, names)
        stack.callback(watch.close)
        stack.enter_context(watch.recording())
        item.stash[_watch], item.stash[_names] = watch, names
        item.stash[_modes] = _function_modes()
        stack.callback(item.stash.__delitem__, _watch)
        stack.callback(item.stash.__delitem__, _names)
        stack.callback(item.stash.__delitem__, _modes)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a checked test that ends well, though its gradients do not."""
    watch = item.stash.get(_watch, None)
    if watch is None:
        return (yield)
    item.stash[_names].update(getattr(item, "funcargs", {}), self=getattr(item, "instance", None))
    _have_tried(item, watch)
    with watch.warnings():
        result = yield
    watch.ended()
    silent = [f.headline for f in watch.found if f.diagnosis.kind.value == "silent"]
    if silent:
        pytest.fail("\n".join(silent), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what there is to say under the failure, and the most important of it into JUnit's XML."""
    report = yield
    error = call.excinfo.value if report.failed and call.excinfo is not None else None
    for found in _explained(item, error):
        report.sections.append((SECTION, found.to_text()))
        properties = list(_properties(found))
        report.user_properties.extend(properties)
        item.user_properties.extend(properties)  # junitxml reads those of the last phase
    return report


def _is_checked(item: pytest.Item) -> bool:
    marker = item.get_closest_marker(NAME)
    if marker is not None:
        return bool(marker.args[0] if marker.args else marker.kwargs.get("on", True))
    return bool(item.config.getoption("--autograd-check") or item.config.getini(NAME))


def _have_tried(item: pytest.Item, watch: Watch) -> None:
    """Have rewrites tried from here, where what comes is a call and nothing else."""
    if type(item) is not pytest.Function or inspect.iscoroutinefunction(item.obj):
        return
    # The copy leaves the recorder's mode, which must then be the innermost.
    entered = _function_modes() != item.stash[_modes]
    if item.config.getoption("--autograd-budget") > 0 and not entered:
        watch.try_from_here(item.module.__dict__, _Again(item))


def _function_modes() -> int:
    import torch

    return int(torch._C._len_torch_function_stack())


class _Again:
    """Calls a test once more, in a process that is there for this, with other texts of files."""

    def __init__(self, item: pytest.Function) -> None:
        from .script.live_edit import own_modules

        self._item = item
        self._modules = own_modules()

    def __call__(self, texts: Mapping[str, str]) -> str:
        from .script.live_edit import LiveEdit, MadeBefore

        item = self._item
        classes = item.cls.__qualname__.split(".") if item.cls is not None else []
        try:
            running = (*classes, item.originalname)
            LiveEdit(running, _has_values(item), self._modules).apply(texts)
        except (MadeBefore, OSError):
            return "made_before"
        known = item.funcargs
        self._function(classes)(**{name: known[name] for name in item._fixtureinfo.argnames})
        return ""

    def _function(self, classes: list[str]) -> Any:
        holder: Any = self._item.module
        for name in classes:
            holder = getattr(holder, name)
        if classes:
            self._item.instance.__class__ = holder
            holder = self._item.instance
        return getattr(holder, self._item.originalname)


def _has_values(item: pytest.Function) -> bool:
    """Whether there is anything before the call that the program's own code may have made:
    parameters, fixtures, and what the old `setup_method` and the like left."""
    used = item._fixtureinfo.name2fixturedefs.items()
    own = any(
        name.startswith(("_xunit", "_unittest")) or not made.func.__module__.startswith("_pytest.")
        for name, definitions in used
        for made in definitions
    )
    return own or hasattr(item, "callspec")


def _watch_of(item: pytest.Item, names: dict[str, Any]) -> Watch:
    """Records the test, told in the lines of its module and with `names` besides its own."""
    # The recorder has to be there before the first tensor is.
    import torch  # noqa: F401

    from . import _explain_incident, _is_recognised
    from .program import Program
    from .script.watch import Watch
    from .settings import AutogradExplain

    module: dict[str, Any] = getattr(getattr(item, "module", None), "__dict__", {})
    source = Program().source(str(item.path))
    program = Program(() if source is None else [source], ChainMap(names, module))
    budget = max(0.0, item.config.getoption("--autograd-budget"))
    settings = AutogradExplain(verify=False, record_next_run=False, budget=budget or 20.0)
    known = _explain_incident, _is_recognised
    return Watch(program, *known, settings, tell=lambda found: None, untried=_UNTRIED)


def _explained(item: pytest.Item, error: BaseException | None) -> Iterable[Explanation]:
    """What there is to say about a phase of a test that has ended, and how."""
    watch = item.stash.get(_watch, None)
    raised = error if isinstance(error, Exception) and "torch" in sys.modules else None
    if watch is None:
        return () if raised is None else _of(raised)
    if raised is not None:
        watch.failed(raised)
    found, watch.found = watch.found, []
    return found


def _of(error: Exception) -> Iterator[Explanation]:
    """The explanation of what a test raised that was not recorded."""
    from . import _explain_incident
    from .intercept import guard
    from .intercept.plain import explain_exception
    from .intercept.verification import Untried

    with guard.guarded("explain"):
        found = explain_exception(error, partial(_explain_incident, verifier=Untried(_UNCHECKED)))
        if found is not None:
            yield found
    guard.tell()


def _properties(found: Explanation) -> Iterator[tuple[str, object]]:
    """For JUnit's XML and other reports: what it is, and where."""
    yield f"{SECTION}.cause", found.id
    yield f"{SECTION}.headline", found.headline
    places = [e.place for e in found.diagnosis.finding.events if e.place is not None]
    yield f"{SECTION}.lines", " ".join(f"{p.file}:{p.line}" for p in places)
    outcomes = (rewrite.outcome.value for rewrite in found.diagnosis.rewrites)
    yield f"{SECTION}.outcomes", " ".join(outcomes)
