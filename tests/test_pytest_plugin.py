"""The pytest plugin: the report of a failing test, and what a checked test does wrong silently."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
import warm
from notebook import PATIENCE

import autograd_explain

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
PLUGIN = "autograd_explain.pytest_plugin"
OVER = "test_overwritten"
OVERWRITTEN = """
import pytest
import torch

@pytest.fixture
def layer():
    return torch.nn.Linear(3, 3)

def test_overwritten(layer):
    hidden = torch.sigmoid(layer(torch.ones(2, 3)))
    hidden += 1
    assert hidden.min() > 0
    hidden.sum().backward()
"""
SILENT = """
import torch

class TestCut:
    def setup_method(self):
        self.net = torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)

    def test_cut(self):
        loss = torch.tensor(self.net(torch.ones(1, 2)).sum().item(), requires_grad=True)
        loss.backward()
        self.optimizer.step()

    def test_right(self):
        self.net(torch.ones(1, 2)).sum().backward()
        self.optimizer.step()
"""
WARNED = """
import torch

def test_read():
    h = torch.ones(3, requires_grad=True) * 2
    h.sum().backward()
    assert h.grad is None
"""
FIXTURE = """
import pytest
import torch

@pytest.fixture
def given():
    torch.ones(2).sum().backward()

def test_with_fixture(given):
    pass
"""
FOREIGN = """
import torch

def test_shapes():
    torch.ones(2) + torch.ones(3)

def test_plain():
    assert 1 == 2
"""
NET = """
import pytest
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3)

    def forward(self, x):
        hidden = torch.sigmoid(self.first(x))
        hidden += 1
        return hidden.sum()

"""
GIVEN = f"""{NET}
@pytest.fixture
def net():
    return Net()

def test_given(net):
    net(torch.ones(2, 3)).backward()

@pytest.mark.parametrize("count", [2])
def test_parameter(count):
    Net()(torch.ones(count, 3)).backward()
"""
MADE = f"""{NET}
def test_made():
    net = Net()
    net(torch.ones(2, 3)).backward()

class TestInClass:
    def test_in_class(self):
        w = torch.ones(3, requires_grad=True)
        hidden = w.exp()
        hidden += 1
        self.scaled(hidden).backward()

    def scaled(self, hidden):
        return 2 * hidden.sum()
"""
GRAD_MODE = """
import pytest, torch

@pytest.fixture(autouse=True)
def on():
    torch.set_grad_enabled(True)
"""


@dataclass(frozen=True)
class Session:
    """What a run of pytest printed, and what its JUnit file says of each test, by name."""

    printed: str
    properties: dict[str, dict[str, str]]
    failed: frozenset[str]


def run_pytest(folder: Path, *options: str, cold: bool = False, **files: str) -> Session:
    """`cold`: by a Python that has to start, as users' does."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    xml = folder / "junit.xml"
    ours = ("-p", PLUGIN, f"--junitxml={xml}", f"--autograd-budget={PATIENCE}")
    plain = ("-o", "junit_family=xunit1", "-o", "addopts=", str(folder))
    command = ("-m", "pytest", *ours, *options, *plain)
    variables = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(Path(autograd_explain.__file__).parents[1]),
    }
    if cold:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, **warm.VARIABLES, **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        printed = done.stdout + done.stderr
    else:
        ended = warm.run(*command, folder=folder, variables=variables)
        printed = ended.out + ended.err
    cases = {c.get("name", ""): c for c in ElementTree.parse(xml).iter("testcase")}
    failed = {
        n for n, c in cases.items() if c.find("failure") is not None or c.find("error") is not None
    }
    told = {name: _properties(case) for name, case in cases.items()}
    return Session(printed, told, frozenset(failed))


def _properties(case: ElementTree.Element) -> dict[str, str]:
    found = [(p.get("name", ""), p.get("value", "")) for p in case.iter("property")]
    return {name.removeprefix("autograd_explain."): value for name, value in found}


def test_an_installed_pytest_finds_it():
    written = (HERE.parent / "pyproject.toml").read_text("utf-8")
    assert tomllib.loads(written)["project"]["entry-points"]["pytest11"] == {
        "autograd_explain": PLUGIN
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Everything, as it is with the plugin installed and nothing asked for."""
    marked = SILENT.replace("class", "import pytest\n\n@pytest.mark.autograd_check\nclass")
    unmarked = SILENT.replace("_cut", "_unchecked").replace("_right", "_right_unchecked")
    return run_pytest(
        tmp_path_factory.mktemp("plain"),
        **{"test_overwritten": OVERWRITTEN, "test_silent": unmarked, "test_warned": WARNED},
        **{"test_foreign": FOREIGN, "test_marked": marked},
    )


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    unmarked = SILENT.replace("class", "import pytest\n\n@pytest.mark.autograd_check(False)\nclass")
    return run_pytest(
        tmp_path_factory.mktemp("checked"),
        "--autograd-check",
        "-rP",
        **{"test_overwritten": OVERWRITTEN, "test_silent": SILENT, "test_warned": WARNED},
        **{"test_foreign": FOREIGN, "test_fixture": FIXTURE, "test_net": MADE},
        test_unmarked=unmarked.replace("_cut", "_unmarked").replace("_right", "_also"),
    )


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Checked, with little time for the search, which goes through all that may repair them."""
    folder = tmp_path_factory.mktemp("given")
    return run_pytest(folder, "--autograd-check", "--autograd-budget=5", test_net=GIVEN)


def test_a_failing_test_gets_its_report(plain, checked):
    for session in (plain, checked):
        assert "- autograd_explain -" in session.printed
        assert "`hidden` was overwritten" in session.printed
        assert "overwrote it: version 0 → 1" in session.printed
        assert "-     hidden += 1" in session.printed
        found = session.properties["test_overwritten"]
        assert found["cause"] == "saved_value_overwritten"
        places = [Path(p).name.partition(":")[2] for p in found["lines"].split()]
        assert places == ["10", "11", "13"]


def test_a_checked_tests_rewrites_are_tried(plain, checked):
    assert "not tried: `pytest --autograd-check` would try it" in _report_of(plain, OVER)
    assert "verified: the gradients equal the reference" in _report_of(checked, OVER)
    assert checked.properties[OVER]["outcomes"].split()[0] == "verified"


def test_what_a_fixture_raises_is_explained(checked):
    assert checked.properties["test_with_fixture"]["cause"] == "graph_cut"


def test_only_a_checked_test_was_observed(plain, checked):
    assert "observed" not in _report_of(plain, "test_overwritten")
    assert "The lines were observed as they ran." in _report_of(checked, "test_overwritten")


def test_what_lives_already_is_not_made_anew(checked, given):
    """Where a fixture or a parameter is there, another class would leave old objects behind."""
    assert given.failed == {"test_given", "test_parameter[2]"}
    for session, test, outcome in (
        (given, "test_given", "not_tried"),
        (checked, "test_made", "verified"),
        (given, "test_parameter[2]", "not_tried"),
        (checked, "test_in_class", "verified"),
    ):
        assert session.properties[test]["outcomes"].split()[0] == outcome, test
        told = "may have been made with the code that changes" in _report_of(session, test)
        assert told is (session is given)


def test_a_setting_checks_every_test_and_nothing_is_tried_without_time_for_it(tmp_path):
    options = "-o", "autograd_check=true", "--autograd-budget", "0"
    session = run_pytest(tmp_path, *options, test_it=OVERWRITTEN, test_silent=SILENT)
    assert session.failed == {OVER, "test_cut"}
    assert "The lines were observed as they ran." in _report_of(session, OVER)
    assert session.properties[OVER]["outcomes"].split()[0] == "not_tried"


def _report_of(session: Session, test: str) -> str:
    heading = rf"_ (?:\w+\.)?{re.escape(test)} _"
    return re.split(heading, session.printed)[1].partition("tells the whole story")[0]


def test_a_checked_test_fails_where_autograd_goes_wrong_silently(plain, checked):
    assert checked.failed == {
        *("test_overwritten", "test_with_fixture", "test_cut", "test_shapes", "test_plain"),
        *("test_made", "test_in_class"),
    }
    assert "`self.net.weight` never gets a gradient" in checked.printed
    assert checked.properties["test_cut"]["cause"] == "silent_cut"
    assert checked.properties["test_right"] == {}
    assert plain.failed == {"test_overwritten", "test_cut", "test_shapes", "test_plain"}
    assert plain.properties["test_cut"]["cause"] == "silent_cut"


def test_a_warning_of_a_test_that_passes_is_told_where_it_is_checked(plain, checked):
    assert "`h` is not a leaf" in checked.printed
    assert checked.properties["test_read"]["cause"] == "cast_made_non_leaf"
    assert plain.properties["test_read"] == {}


def test_other_failures_are_left_alone(plain, checked):
    for session in (plain, checked):
        for test in ("test_shapes", "test_plain"):
            assert session.properties[test] == {}
    assert "internal error" not in plain.printed + checked.printed


def test_the_field_cases_as_tests_are_told_as_in_a_notebook(tmp_path):
    """Under xdist, checked: the same cause at the same lines; every tenth one."""
    folders = sorted(f.parent for f in (HERE / "field/cases").glob("*/case.py"))[::10]
    for folder in folders:
        (tmp_path / f"test_{_name(folder.name)}.py").write_text(_as_test(folder), "utf-8")
    told = _expected(HERE / "expected/check/cases.txt")
    expected = {name: told[name] for name in (_name(folder.name) for folder in folders)}
    session = run_pytest(
        tmp_path, "--autograd-check", "-p", "xdist", "-n1", cold=True, conftest=GRAD_MODE
    )
    found = {
        name.removeprefix("test_"): (told.get("cause", ""), _texts(told.get("lines", "")))
        for name, told in session.properties.items()
    }
    assert {name: cause for name, (cause, _) in found.items()} == {
        name: cause for name, (cause, _) in expected.items()
    }
    missing = {name: lines - found[name][1] for name, (_, lines) in expected.items()}
    assert not any(missing.values()), missing


def _name(case: str) -> str:
    return case.replace("-", "_")


def _as_test(folder: Path) -> str:
    program = re.sub(r"^# %%.*$", "", (folder / "case.py").read_text("utf-8"), flags=re.MULTILINE)
    return f"def test_{_name(folder.name)}():\n{textwrap.indent(program, '    ')}\n"


def _expected(file: Path) -> dict[str, tuple[str, set[str]]]:
    """The cause and the lines of each notebook's first report."""
    found = {}
    for block in re.split(r"^=== ", file.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        case, _, told = block.partition("\n")
        cause = re.search(r"^In\[\d+\] \w+ (\w+)", told, re.MULTILINE)
        lines = re.findall(r"^  \w+ +In\[\d+\]:\d+ (.*?) \([^()]*\)$", told, re.MULTILINE)
        found[_name(case.strip())] = ("" if cause is None else cause[1], {*map(str.strip, lines)})
    return found


def _texts(places: str) -> set[str]:
    found = set()
    for place in places.split():
        file, _, line = place.rpartition(":")
        found.add(Path(file).read_text("utf-8").splitlines()[int(line) - 1].strip())
    return found
