"""Run hostile programs without us, then with us, and tell what is not the same afterwards.

Every run is a fork of this process, which has everything loaded, in an IPython shell of its own
and in a folder that is empty before it.  A program's tracebacks are not looked at, the reports
are kept apart from its output: both must be as without us, and so must the world after it.

usage: run.py [--mode hook|check] [--only NAME or FAMILY] [--named NAME …]
              [--json OUT] [--quiet]

`--mode twice` is a test of this one: without us, but with every cell run twice.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import ctypes
import gc
import io
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from hostile.world import Bindings, children_of, differences, files, state  # noqa: E402

BUDGET = 3.0  #: seconds that trying the rewrites of a failure may take
CPU = 3.0  #: seconds of the session's own work that a report may take besides
WALL = 20.0  #: the same by the clock, on a machine that does other things too
MEGABYTES = 400  #: by which the session's memory may grow
CHILDREN_MEGABYTES = 2500  #: and that of a process which tries a rewrite
_SUBREAPER = 36
START = "import os, sys\nimport torch\nfrom torch import nn\nw = torch.ones(3, requires_grad=True)"


@dataclass(frozen=True)
class HostileProgram:
    """`cells` without the first, which is `START` for all."""

    family: str
    name: str
    cells: tuple[str, ...]


def programs() -> Iterator[HostileProgram]:
    """Those of every file in `programs`: `# == name` begins one, `# %%` each of its cells.

    One that ends in `[hook]` is not for check mode: see what SECURITY.md does not guarantee.
    """
    for path in sorted((HERE / "programs").glob("*.py")):
        for part in re.split(r"^# == ", path.read_text("utf-8"), flags=re.M)[1:]:
            name, _, text = part.partition("\n")
            cells = [c.strip("\n") for c in re.split(r"^# %%\n", text, flags=re.M)[1:]]
            yield HostileProgram(path.stem, name.strip(), tuple(cells))


@dataclass
class Seen:
    """What one run of a program left behind."""

    state: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    files: dict[str, Any] = field(default_factory=dict)
    heard: list[Any] = field(default_factory=list)
    left_running: int = 0
    reports: list[dict[str, str]] = field(default_factory=list)
    problems: str = ""
    seconds: float = 0.0
    wall: float = 0.0
    memory: tuple[int, int] = (0, 0)
    ended: str = ""


class Ears:
    """What a program can reach outside its folder: ports, a socket, a process that gets signals."""

    def __init__(self, folder: Path) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(str(folder / "ear"))
        self.unix.listen(64)
        self.signals = 0
        for ear in (self.tcp, self.udp, self.unix):
            ear.setblocking(False)
        signal.signal(signal.SIGUSR1, self._signalled)

    def _signalled(self, *args: Any) -> None:
        self.signals += 1

    def environment(self) -> dict[str, str]:
        return {
            "HOSTILE_TCP": str(self.tcp.getsockname()[1]),
            "HOSTILE_UDP": str(self.udp.getsockname()[1]),
            "HOSTILE_UNIX": self.unix.getsockname(),
            "HOSTILE_RUNNER": str(os.getpid()),
        }

    def heard(self) -> list[Any]:
        """What has arrived since it was asked last."""
        signals, self.signals = self.signals, 0
        return [self._accepted(self.tcp), self._received(), self._accepted(self.unix), signals]

    def _accepted(self, ear: socket.socket) -> int:
        count = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                ear.accept()[0].close()
                count += 1
        return count

    def _received(self) -> int:
        count = 0
        with contextlib.suppress(BlockingIOError):
            while self.udp.recv(4096) is not None:
                count += 1
        return count


def preload() -> Any:
    """Everything that a run needs; gives the bindings to compare with."""
    import pkgutil

    import executing
    import IPython.core.interactiveshell
    import IPython.core.magics
    import torch
    import torch._dynamo

    import autograd_explain

    torch.set_num_threads(1)
    for package in (autograd_explain, IPython.core.magics):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith((".case", ".fixed", ".__main__", ".worker")):
                with contextlib.suppress(Exception):
                    __import__(found.name)
    assert executing
    _warm_up()
    bindings = Bindings()
    gc.collect()
    gc.freeze()
    return bindings


def _warm_up() -> None:
    """One report of each kind in a fork would not warm this process: explain an error here."""
    import torch

    from autograd_explain.incident import Incident, frames_of
    from autograd_explain.model import Kind
    from autograd_explain.pipeline import explain_incident
    from autograd_explain.program import Program, Source
    from autograd_explain.settings import Options

    text = "y = w.exp()\ny += 1\ny.sum().backward()"
    space: dict[str, Any] = {"w": torch.ones(2, requires_grad=True), "__name__": "__main__"}
    try:
        exec(compile(text, "<warm>", "exec"), space)
    except RuntimeError as error:
        program = Program([Source(1, None, text, text, "<warm>")])
        frames = frames_of(error.__traceback__)[1:]
        incident = Incident(Kind.ERROR, str(error), program, space, frames, error, 1)
        found = explain_incident(incident, Options())
        assert found is not None
        drawn(found)


def drawn(shown: Any) -> dict[str, str]:
    """A report in every form, as a terminal in colour and a notebook get it."""
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    shown.print(screen)
    return {
        "terminal": screen.getvalue(), "text": shown.to_text(), "html": shown.to_html(),
        "markdown": shown.to_markdown(), "cause": shown.diagnosis.finding.cause,
    }  # fmt: skip


# -- one run, in a child -------------------------------------------------------------------------


def _live(program: HostileProgram, mode: str, folder: Path, bindings: Any, result: Path) -> None:
    """The child's whole life."""
    import random

    import torch

    os.setsid()
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(folder)
    out = os.open(result.with_suffix(".out"), os.O_RDWR | os.O_CREAT)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for fd in (1, 2):
        os.dup2(out, fd)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", closefd=False)  # noqa: SIM115
    os.environ.update(
        IPYTHONDIR=str(result.with_suffix(".ipython")), HOSTILE_KERNEL=str(os.getpid())
    )
    sys.argv = ["hostile"]
    random.seed(0)
    torch.manual_seed(0)
    reports, shell = _shell(mode)
    cpu, wall = time.process_time(), time.monotonic()
    for cell in (START, *program.cells):
        shell.run_cell(cell, store_history=True)
        if mode == "twice":
            shell.run_cell(cell, store_history=False)
    seen = {"seconds": time.process_time() - cpu, "wall": time.monotonic() - wall}
    sys.stdout.flush()
    sys.stderr.flush()
    found = state(shell.user_ns, bindings)
    guard = sys.modules["autograd_explain.intercept.guard"]
    usage = [
        resource.getrusage(who).ru_maxrss >> 10
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    seen |= {"state": found, "reports": reports, "problems": guard.report(), "memory": usage}
    result.write_text(json.dumps(seen))


def _shell(mode: str) -> tuple[list[dict[str, str]], Any]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    # Without a history file: IPython ends its thread before a fork, until it has more to save.
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell._showtraceback = lambda *args: None
    shell.InteractiveTB.set_mode("Minimal")
    reports: list[dict[str, str]] = []
    if mode in ("hook", "check"):
        from autograd_explain.intercept import screen

        screen.show = lambda shell, shown: reports.append(drawn(shown))
        screen.show_line = lambda key, *args, **values: reports.append({"text": f"{key} {values}"})
        shell.run_line_magic("load_ext", "autograd_explain")
        sys.modules["autograd_explain"]._session.settings.budget = BUDGET
    if mode == "check":
        with contextlib.redirect_stdout(io.StringIO()):
            shell.run_line_magic("autograd_check", "on")
    return reports, shell


# -- around the runs -----------------------------------------------------------------------------


class Stage:
    """Where programs run one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = folder / "world"
        self.ears = Ears(folder)
        self.bindings = preload()
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        os.environ.update(self.ears.environment())

    def run(self, program: HostileProgram, mode: str, limit: float = 90) -> Seen:
        shutil.rmtree(self.world, ignore_errors=True)
        self.world.mkdir()
        result = self.folder / "result.json"
        for name in self.folder.glob("result.*"):
            shutil.rmtree(name) if name.is_dir() else name.unlink()
        self.ears.heard()
        child = os.fork()
        if child == 0:
            _leave_after(lambda: _live(program, mode, self.world, self.bindings, result))
        ended = _wait(child, limit)
        left = _outlived()
        seen = Seen(
            ended=ended, left_running=len(left), heard=self.ears.heard(), files=files(self.world)
        )
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        out = result.with_suffix(".out")
        seen.output = out.read_text(errors="replace") if out.exists() else ""
        for key, value in (json.loads(result.read_text()) if result.exists() else {}).items():
            setattr(seen, key, value)
        return seen


def _outlived(seconds: float = 2.0) -> list[int]:
    """The processes of a program that live on; those that are dying are waited for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not children_of(os.getpid()):
            return []
        time.sleep(0.02)
    return children_of(os.getpid())


def _leave_after(body: Callable[[], None]) -> None:
    status = 1
    try:
        body()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _wait(child: int, limit: float) -> str:
    watch = os.pidfd_open(child)
    try:
        end = time.monotonic() + limit
        while not (over := select.select([watch], [], [], max(0, end - time.monotonic()))[0]):
            if time.monotonic() >= end:
                break
        if not over:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        return "" if over and status == 0 else ("hung" if not over else f"status {status}")
    finally:
        os.close(watch)


# -- the judgement -------------------------------------------------------------------------------


def faults(plain: Seen, ours: Seen) -> list[str]:
    """What is not as without us, not bounded, or not escaped."""
    found = []
    for key in ("ended", "state", "output", "files", "heard", "left_running"):
        found += [
            f"{key}{d}"
            for d in differences(getattr(plain, key), getattr(ours, key))
            if not _expected(d)
        ]
    if ours.problems:
        found.append(f"internal error: {ours.problems[-600:]}")
    if not ours.reports and not ours.ended:
        found.append("no report")
    cpu, wall = ours.seconds - plain.seconds, ours.wall - plain.wall
    if cpu > CPU or wall > WALL + BUDGET:
        found.append(f"took {cpu:.1f} s more of the processor, {wall:.1f} s by the clock")
    if (
        ours.memory[0] - plain.memory[0] > MEGABYTES
        or ours.memory[1] - plain.memory[0] > CHILDREN_MEGABYTES
    ):
        found.append(f"memory: {plain.memory} | {ours.memory} MB")
    for report in ours.reports:
        found += [
            f"{form}: {fault}"
            for form, text in report.items()
            for fault in escapes(form, text or "")
        ]
    return found


#: Loading the extension takes the first until it is unloaded; the recorder needs the second for
#: swapped parameters and gives numbers to its own hooks.
_TAKEN = (
    "warnings.showwarning = WarningHook",
    "torch.utils.weakref = _Weakref",
    "torch.utils.hooks.RemovableHandle.next_id = int",
)


def _expected(difference: str) -> bool:
    start = "/bindings: gone [], new "
    if not difference.startswith(start):
        return False
    return set(ast.literal_eval(difference[len(start) :])) <= {*_TAKEN}


_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)


def escapes(form: str, text: str) -> Iterator[str]:
    """Characters that act, and markup that is not ours."""
    bare = _COLOUR.sub("", text) if form == "terminal" else text
    acting = sorted({f"U+{ord(c):04X}" for c in _CONTROL.findall(bare)})
    if acting:
        yield f"acts instead of being read: {acting}"
    if form == "html":
        yield from Markup.faults(text)


class Markup(HTMLParser):
    """Tags and attributes that our templates do not have."""

    TAGS = frozenset(
        """section style svg path circle div code details summary span b i em strong p ul ol
        li pre table tr td th tbody thead br a u h3 h4 blockquote hr del ins small""".split()
    )
    ATTRIBUTES = frozenset(
        "class lang aria-hidden open style href title id rel target dir scope start".split()
    )
    DRAWN = frozenset({("path", "d"), *(("circle", name) for name in ("cx", "cy", "r"))})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    @classmethod
    def faults(cls, text: str) -> list[str]:
        parser = cls()
        parser.feed(text)
        return parser.found

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        if tag not in self.TAGS:
            self.found.append(f"<{tag}>")
        for name, value in attributes:
            scheme = (value or "").strip().lower().partition(":")[0]
            if (tag, name) in self.DRAWN:
                continue
            if name not in self.ATTRIBUTES or (
                name == "href" and scheme not in ("http", "https") and not value.startswith("#")
            ):
                self.found.append(f"<{tag} {name}={value}>")

    handle_startendtag = handle_starttag


def judge(
    mode: str,
    only: str = "",
    say: bool = False,
    part: int = 1,
    named: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """One row per program; every `part`-th of them, or those that have these names."""
    rows = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        stage = Stage(Path(folder).resolve())
        chosen = [p for p in programs() if mode != "check" or not p.name.endswith("[hook]")]
        for program in chosen[::part]:
            if only and only not in program.name and only != program.family:
                continue
            if named and program.name not in named:
                continue
            plain, ours = stage.run(program, "plain"), stage.run(program, mode)
            row = {
                "family": program.family, "name": program.name, "faults": faults(plain, ours),
                "causes": [r.get("cause") or r["text"][:40] for r in ours.reports],
                "seconds": round(ours.wall, 2), "plain": round(plain.wall, 2),
            }  # fmt: skip
            if not plain.state:
                row["faults"].append(f"plain: {plain.ended} {plain.output[-600:]}")
            rows.append(row)
            if say:
                print(
                    "BAD" if row["faults"] else "ok ",
                    f"{program.family}/{program.name}",
                    *(row[key] for key in ("plain", "seconds", "causes")),
                    flush=True,
                )
                for fault in row["faults"]:
                    print("     ", fault[:700], flush=True)
                if not ours.state:
                    print(ours.output[-1500:])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="hook", choices=("hook", "check", "twice"))
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--part", type=int, default=1, help="every n-th program only")
    parser.add_argument("--named", action="append", help="a program's whole name; may be repeated")
    given = parser.parse_args()
    start = time.monotonic()
    rows = judge(given.mode, given.only, not given.quiet, given.part, given.named or ())
    bad = [r for r in rows if r["faults"]]
    print(
        f"{given.mode}: {len(rows)} programs, {len(bad)} with faults,",
        f"{time.monotonic() - start:.0f} s",
    )
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
