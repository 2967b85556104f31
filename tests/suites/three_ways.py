"""Run cells three ways, each in a fork of its own, and say in what the runs differ.

`plain` is an IPython shell without the extension, `hook` one with it loaded, `check` one under
`%autograd_check on`.  A correct program must leave the same in all three: values to the bit, what
it printed and warned, random states, torch's switches; and nothing may be reported about it.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import pickle
import random
import re
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).parents[1]))

from notebook import kernel_shell

T = TypeVar("T")
_OURS = re.compile("\x02.*?\x03", re.DOTALL)  # what the extension showed, between marks
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_DEEPEST = 6  # containers within containers
_LONGEST = 10_000  # items of one container


@dataclass(frozen=True)
class Outcome:
    """What a run left, as data that compares; `reports` and what follows are of the extension."""

    errors: tuple[str, ...] = ()
    printed: str = ""
    warned: tuple[tuple[str, str, str, int], ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    reports: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    problems: str = ""
    seconds: float = 0.0
    wanted: Any = None

    def differences(self, other: Outcome) -> list[str]:
        """One line for each thing in which another run differs from this one."""
        found = []
        if self.errors != other.errors:
            found.append(f"errors: {_first_unlike(self.errors, other.errors)}")
        if self.printed != other.printed:
            lines = self.printed.splitlines(), other.printed.splitlines()
            found.append(f"printed: {_first_unlike(*lines)}")
        if self.warned != other.warned:
            found.append(f"warned: {_first_unlike(self.warned, other.warned)}")
        for what in ("values", "state"):
            mine, theirs = getattr(self, what), getattr(other, what)
            for name in sorted({*mine, *theirs}):
                one, two = mine.get(name), theirs.get(name)
                if one != two:
                    found.append(f"{what}: {name}: {_short(one)} / {_short(two)}")
        return found


def _first_unlike(one: Sequence[Any], two: Sequence[Any]) -> str:
    at = next((i for i, pair in enumerate(zip(one, two, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(one), len(two)) if at is None else at
    mine, theirs = one[at : at + 1], two[at : at + 1]
    return f"[{at}] {_short(*mine)} / {_short(*theirs)} ({len(one)} and {len(two)} in all)"


def _short(value: object = "nothing") -> str:
    return str(value)[:300]


def preload() -> None:
    """Import the whole extension: for many short runs, of which none should pay for that."""
    import pkgutil

    import autograd_explain

    optional = "autograd_explain.training."  # callbacks for libraries that need not be there
    for found in pkgutil.walk_packages(autograd_explain.__path__, "autograd_explain."):
        if found.name.startswith(optional):
            continue
        if found.name.rpartition(".")[2] not in ("case", "fixed", "__main__"):
            importlib.import_module(found.name)


def run(
    cells: Sequence[str],
    way: str,
    names: Mapping[str, Any] | None = None,
    limit: float = 120,
    settings: str = "",
    wanted: str = "",
    folder: Path | None = None,
) -> Outcome | None:
    """What these cells leave when run in this way; None where they took longer than `limit`.

    `names` are there before the first cell, `settings` is a line for `%config`, and the value
    of the name `wanted` comes back as it is.  They run in `folder`, which their imports search."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.close(reader)
            _silence()
            if folder is not None:
                os.chdir(folder)
                sys.path.insert(0, str(folder))
            found = _in_child(cells, way, names or {}, settings, wanted)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(found, pipe)
        finally:
            os._exit(0)
    os.close(writer)
    return _received(child, reader, limit)


def _silence() -> None:
    """Standard input and output of the process, and of libraries below Python, lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)


def _received(child: int, reader: int, limit: float) -> Outcome | None:
    """What the child sent; its whole group is ended when it takes too long, or left others."""
    parts: list[bytes] = []
    end = time.monotonic() + limit
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            part = pipe.read(1 << 20)
            if not part:
                break
            parts.append(part)
        else:
            parts.clear()
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not parts:
        return None
    found = pickle.loads(b"".join(parts))
    assert isinstance(found, Outcome)
    return found


def _in_child(
    cells: Sequence[str], way: str, names: Mapping[str, Any], settings: str, wanted: str
) -> Outcome:
    made = ExitStack().enter_context(kernel_shell())  # left as it is: the process ends
    warned: list[tuple[str, str, str, int]] = []
    printed, told = io.StringIO(), io.StringIO()

    def note(message: Any, category: Any, filename: str, line: int, *_: Any) -> None:
        warned.append((category.__name__, _plain(str(message)), filename, line))

    warnings.showwarning = note
    _seed()
    made.run_cell("pass")  # the first cell of all is slower
    made.user_ns.update(names)
    shown = _load(made, way, settings)
    started = time.process_time()
    with redirect_stdout(printed), redirect_stderr(told):
        errors = _run_cells(made, cells)
    seconds = time.process_time() - started
    limits, problems = _of_the_recorder(way)
    return Outcome(
        errors,
        _plain(_OURS.sub("", printed.getvalue() + told.getvalue())),
        tuple(warned),
        {n: digest(v) for n, v in made.user_ns.items() if not _of_the_shell(n, names)},
        dict(state()),
        tuple(shown),
        limits,
        problems,
        seconds,
        made.user_ns.get(wanted),
    )


def _seed() -> None:
    """The same random numbers in every run: Python seeds anew after a fork."""
    import numpy
    import torch

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


def _load(made: Any, way: str, settings: str) -> list[str]:
    """Load the extension; gives the list of what it will have shown."""
    shown: list[str] = []
    if way == "plain":
        return shown
    with redirect_stdout(io.StringIO()):
        made.run_line_magic("load_ext", "autograd_explain")
        if settings:
            made.run_line_magic("config", settings)
        if way == "check":
            made.run_line_magic("autograd_check", "on")
    from autograd_explain.intercept import screen

    depth = [0]
    for name in ("show", "show_finding", "show_sentences", "show_line"):
        setattr(screen, name, _marked(getattr(screen, name), shown, depth))
    return shown


def _marked(show: Callable[..., None], shown: list[str], depth: list[int]) -> Callable[..., None]:
    """`show`, its output between marks; reports and what is worth a look are noted in `shown`."""

    def marking(*given: Any, **values: Any) -> None:
        if show.__name__ == "show":
            shown.append(f"{given[1].diagnosis.kind.value} {given[1].id}: {given[1].headline}")
        elif show.__name__ == "show_finding":
            shown.append(f"{given[0]}: {given[2]}")
        depth[0] += 1
        sys.stdout.write("\x02" if depth[0] == 1 else "")
        try:
            show(*given, **values)
        finally:
            sys.stdout.write("\x03" if depth[0] == 1 else "")
            depth[0] -= 1

    return marking


def _run_cells(made: Any, cells: Sequence[str]) -> tuple[str, ...]:
    """How each cell ended; a session ends at its first error."""
    errors: list[str] = []
    for cell in cells:
        done = made.run_cell(cell, store_history=True)
        error = done.error_in_exec or done.error_before_exec
        errors.append("" if error is None else _plain(f"{type(error).__name__}: {error}"))
        if error is not None:
            break
    return tuple(errors)


def _of_the_recorder(way: str) -> tuple[tuple[str, ...], str]:
    if way == "plain":
        return (), ""
    import autograd_explain
    from autograd_explain.intercept import guard

    recording = getattr(autograd_explain, "_session", None)
    recording = getattr(recording, "recording", None)
    return (() if recording is None else recording.limits), guard.report()


def _plain(text: str) -> str:
    """Without what differs from one process to the next."""
    return _ADDRESS.sub("0x", text)


def _of_the_shell(name: str, given: Mapping[str, Any]) -> bool:
    shells = ("In", "Out", "exit", "quit", "get_ipython", "open")
    return name.startswith("_") or name in shells or name in given


def state() -> Iterator[tuple[str, str]]:
    """What a process has one of, and a guest must not move."""
    import numpy
    import torch

    yield "random", str(hash(random.getstate()))
    yield "torch random", _bits(torch.random.get_rng_state())
    yield "numpy random", _hashed(pickle.dumps(numpy.random.get_state()))
    yield "function modes", str(torch._C._len_torch_function_stack())
    yield "dispatch modes", str(torch._C._len_torch_dispatch_stack())
    yield "grad mode", f"{torch.is_grad_enabled()} {torch.is_inference_mode_enabled()}"
    yield "default dtype", str(torch.get_default_dtype())
    yield "anomaly mode", str(torch.is_anomaly_enabled())
    yield "threads", str(torch.get_num_threads())
    yield "filters", _hashed(repr(warnings.filters).encode())
    yield "environment", _hashed(repr(sorted(os.environ.items())).encode())
    yield "folder", os.getcwd()
    yield "path", str(sys.path)
    yield "hooks", f"{sys.gettrace()} {sys.getprofile()} {sys.excepthook is sys.__excepthook__}"


def digest(value: Any, depth: int = 0) -> str:
    """A value as text that is equal only for equal values, as far as it is known how to look."""
    import torch

    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, torch.nn.Module):
        parts = [(n, _tensor(t)) for n, t in value.state_dict(keep_vars=True).items()
                 if isinstance(t, torch.Tensor)]  # fmt: skip
        return f"{type(value).__name__} {value.training} {parts}"
    if isinstance(value, torch.optim.Optimizer):
        return digest(value.state_dict(), depth)
    if isinstance(value, (str, int, float, complex, bytes, bool, type(None))):
        return f"{type(value).__name__} {_plain(repr(value))}"
    if depth < _DEEPEST and isinstance(value, Mapping) and len(value) < _LONGEST:
        return "{" + ", ".join(f"{k!s}: {digest(v, depth + 1)}" for k, v in value.items()) + "}"
    if depth < _DEEPEST and isinstance(value, (list, tuple)) and len(value) < _LONGEST:
        return "[" + ", ".join(digest(v, depth + 1) for v in value) + "]"
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype != object:
        return f"array {value.dtype} {value.shape} {_hashed(value.tobytes())}"
    return type(value).__name__


def _tensor(tensor: Any) -> str:
    told = f"{tensor.dtype} {tuple(tensor.shape)} {tensor.requires_grad} v{tensor._version}"
    grad = tensor.grad if tensor.is_leaf else None
    return f"{told} {_bits(tensor)}" + ("" if grad is None else f" grad {_bits(grad)}")


def _bits(tensor: Any) -> str:
    import torch

    try:
        flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        return _hashed(flat.numpy().tobytes())
    except (RuntimeError, TypeError, NotImplementedError):  # sparse, quantized, a subclass
        return str(tensor.layout)


def _hashed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def said(outcome: Outcome) -> list[str]:
    """What the extension said of a program, or could not do, one line each."""
    found = [f"report: {text}" for text in outcome.reports]
    found += [f"limit: {text}" for text in outcome.limits]
    if outcome.problems:
        found.append(f"internal error: {outcome.problems.strip().splitlines()[-1]}")
    return found


def parted(items: list[T], part: str) -> list[T]:
    """The part `2/3` of a list: every third item from the second on."""
    at, number = (int(n) for n in part.split("/"))
    return items[at - 1 :: number]
