import gc
import importlib
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator

import pytest

# IPython warns where another environment is active than the one that runs it.
os.environ.pop("VIRTUAL_ENV", None)
# Seconds of each process in which jsonschema or nbformat is loaded: it compiles 38 grammars of
# addresses, for formats that no schema here asks for. jsonschema does without it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs",
        type=int,
        default=12,
        help="how many random correct training programs the recorder watches",
    )
    parser.addoption(
        "--renew-expected",
        action="store_true",
        help="write the expected files (tests/expected, tests/render/golden) anew",
    )
    parser.addoption(
        "--all-notebooks",
        action="store_true",
        help="run all the notebooks and programs of which a plain run takes a share",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "one_in(n): of its parameters a plain run takes one in n, always the same"
    )


#: They fork at every step, which costs the more the more the process has loaded and kept.
_FORKING = ("verification", "repair", "injection", "truth", "script")


_LONGEST = ("test_ipython_versions.py", "test_pytest_plugin.py", "test_set_aside.py")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are made and nothing is thrown away: what a garbage collection looks at
    is all there to stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """First the files that take longest, so that the workers end together; then what forks."""
    asked_for = config.getoption("keyword") or any("::" in name for name in config.args)
    whole = config.getoption("--all-notebooks") or config.getoption("--renew-expected")
    if not (asked_for or whole):
        left = set(_left_to_a_whole_run(items))
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]
    items.sort(key=_turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: workers wait for kernels, browsers and processes of theirs a
    fifth of the time."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else 2


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not config.getoption("--all-notebooks"):
        terminalreporter.line("Of tests marked one_in(n) a share ran; --all-notebooks takes all.")


def _left_to_a_whole_run(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Of each test that is marked `one_in(n)`, all parameters but one in n."""
    seen: Counter[str] = Counter()
    for item in items:
        if share := item.get_closest_marker("one_in"):
            of_test = item.nodeid.partition("[")[0]
            if seen[of_test] % share.args[0]:
                yield item
            seen[of_test] += 1


def _turn(item: pytest.Item) -> int:
    if item.path.name in _LONGEST:
        return 0
    return 1 if item.path.parent.name in _FORKING else 2


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _libraries_set_aside() -> None:
    """Half a million objects of libraries, which no collection need look at again: a test process
    collects often, and each fork would copy them."""
    from notebook import load_what_replays_need

    load_what_replays_need()
    for name in ("torch", "IPython", "libcst.metadata", "autograd_explain.pipeline"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_mode_left() -> Iterator[None]:
    """What a session leaves on torch's stack changes every later call of the process."""
    import torch

    yield
    assert torch._C._len_torch_function_stack() == 0
