"""The hooks and magics on the IPython releases that people have: Colab pins 7.34, many are on 8.

Each release is installed with `pip install --target` into a folder that pytest keeps, put in front
of `sys.path`, and the tests of `tests/intercept` run on it in a process of their own.  If a
release cannot be installed, that is a failure: these tests are not skipped.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

#: What these need and today's releases do not; all else that they need is installed for those.
_SINCE_GONE = ("backcall", "decorator", "nest-asyncio", "pickleshare")
RELEASES = {
    "7.34": ["ipython==7.34.0", "ipykernel==6.17.1", "setuptools<82", *_SINCE_GONE],
    "8": ["ipython==8.12.3", "ipykernel==6.29.5", *_SINCE_GONE],
}
ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "intercept"
#: What does not depend on IPython's release: scripts, which folders hold causes, what the recorder
#: finds, what importing costs, the oldest torch, errors of another process, cells of no history,
#: which of several reports are told, what a text alone tells, whose functions we call.
ANYWHERE = (
    "test_apart.py",
    "test_candidate.py",
    "test_crossed.py",
    "test_defining_cells.py",
    "test_idle.py",
    "test_loading.py",
    "test_looking.py",
    "test_oldest_torch.py",
    "test_one_report.py",
    "test_outside_history.py",
    "test_own_causes.py",
    "test_repeats.py",
    "test_silent.py",
    "test_tried_later.py",
    "test_without_graph.py",
)
#: What differs most; for the releases between Colab's and the newest, which runs all.
BETWEEN = ("test_folding.py", "test_hooks.py")
#: Of these files, what Colab's release and the newest do: somebody else's handler is told by what
#: all releases have alike, and most of the time is IPython's own, for whole tracebacks.
AT_BOTH_ENDS = (
    "test_folding.py::test_another_handler_is_left_alone",
    "test_folding.py::test_rich_is_left_alone",
)
#: As ANYWHERE, of a file in which the rest does.
ANYHOW = (
    "test_text_that_ran.py::test_code_of_torch_compile_has_no_lines_of_its_own",
    "test_text_that_ran.py::test_an_edit_while_the_text_that_ran_is_still_known_is_not_undone",
    "test_text_that_ran.py::test_no_line_and_no_edit_of_a_module_that_was_edited",
)


@pytest.fixture(scope="session", params=RELEASES)
def overlay(request):
    """A folder with that IPython and what it needs, installed once."""
    folder = Path(request.config.cache.mkdir(f"ipython-{request.param}"))
    complete = folder / "complete"
    wanted = " ".join(RELEASES[request.param])
    if not complete.exists() or complete.read_text() != wanted:
        shutil.rmtree(folder)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pip += ["--no-deps", "--no-compile", "--target", str(folder)]
        done = subprocess.run(
            [*pip, *RELEASES[request.param]],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            pytest.fail(f"IPython {request.param} could not be installed:\n{done.stderr[-2000:]}")
        complete.write_text(wanted)
    return request.param, folder


def on(folder, *command):
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, timeout=560
    )


def test_it_is_that_release(overlay):
    release, folder = overlay
    done = on(folder, "-c", "import IPython; print(IPython.__version__, IPython.__file__)")
    version, path = done.stdout.split()
    assert version.startswith(release) and path.startswith(str(folder)), done.stderr


@pytest.mark.timeout(600)
def test_hooks_and_magics(overlay):
    release, folder = overlay
    left_out = [f"--ignore={TESTS / name}" for name in ANYWHERE]
    left_out += [f"--deselect={(TESTS / name).relative_to(ROOT)}" for name in ANYHOW]
    wanted = [TESTS / name for name in BETWEEN] if release == "8" else [TESTS]
    if release == "8":
        left_out += [f"--deselect={(TESTS / name).relative_to(ROOT)}" for name in AT_BOTH_ENDS]
    assert all((TESTS / name).exists() for name in (*ANYWHERE, *BETWEEN))
    plain = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
    done = on(folder, *plain, *left_out, *map(str, wanted))
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " skipped" not in done.stdout
