import gc
import importlib
import os
from collections.abc import Iterator

import pytest

# IPython warns where another environment is active than the one that runs it.
os.environ.pop("VIRTUAL_ENV", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs",
        type=int,
        default=40,
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
        help="under check run all notebooks of tests/expected instead of a sixth",
    )


#: They fork at every step, which costs the more the more the process has loaded and kept.
_FORKING = ("verification", "repair", "injection", "truth", "script")


_LONGEST = ("test_ipython_versions.py", "test_pytest_plugin.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First the files that take longest, so that the workers end together; then what forks."""
    items.sort(key=_turn)


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
