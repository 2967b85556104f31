"""One replay: run the cells in this process, which exists for it alone, and say what came out."""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from ..model import Kind, Reason
from .alive import Alive
from .cells import Cell, Failure, Runner, failure_of, new_main
from .compare import Agreement, compare
from .dependence import Dependence, Reach, Shift
from .differences import Nudge, Slope, Slopes
from .gradient_log import GradientLog
from .hooks_once import hooks_once
from .independent_backward import IgnoredGradients
from .lenient import Lenient
from .nonfinite import NonFiniteGradients, is_wrong, is_zero
from .objects import spelled, walk
from .own_gradients import own_gradients
from .plan import IgnoredGradient, NonFinite, SeveredValue
from .redefine import Redefinition, redefine
from .reference import Saved, SavedCopies, retained_graphs
from .rounds import Moved, Round
from .running import RunningFunctions
from .sandbox import ForbiddenEffect, Sandbox
from .severed import SeveredValues
from .shell import ReplayShell, install
from .snapshot import Snapshot, take_snapshot
from .tracked import UntrackedWrites

NON_LEAF_WARNING = "The .grad attribute of a Tensor that is not a leaf"
_SEED = 20_240_613

#: Runs a program that is no cells, with new texts of its files; gives why it cannot, a key of
#: `render.reasons`, or "".
RunAgain = Callable[[Mapping[str, str]], str]


class Mode(str, Enum):
    """How the cells are run."""

    PLAIN = "plain"
    COPIES = "copies"  #: backwards get what was saved
    TRACKED = "tracked"  #: the same, and no write is hidden from autograd
    RETAINED = "retained"  #: graphs are kept
    RETAINED_COPIES = "retained_copies"
    LENIENT = "lenient"  #: what torch refuses is done
    RETAINED_GRADIENTS = "retained_gradients"  #: intermediate tensors keep their gradient
    SLOPES = "slopes"  #: each backward's slope is noted, leaves are moved
    DEPENDENCE = "dependence"  #: what each backward reaches is noted, leaves are moved
    IGNORED = "ignored"  #: custom Functions are asked twice; it ends behind one that ignores that
    OWN_DERIVATIVES = "own_derivatives"  #: these get the derivative of their forward
    OWN_GRADIENTS = "own_gradients"  #: what runs inside a backward gets gradients of its own
    HOOKS_ONCE = "hooks_once"  #: a hook takes the place of the one with the same code
    SEVERED = "severed"  #: what leaves the graph is noted, and moved
    NONFINITE = "nonfinite"  #: it ends at the first gradient that is not finite
    NONFINITE_VALUES = "nonfinite_values"  #: the same, and every result is looked at


#: What these do is done to the graphs and hooks that the session has made before, too.
_KNOWS_OLDER_TENSORS = frozenset(
    {
        Mode.COPIES,
        Mode.TRACKED,
        Mode.RETAINED_COPIES,
        Mode.LENIENT,
        Mode.RETAINED_GRADIENTS,
        Mode.OWN_GRADIENTS,
    }
)


@dataclass(frozen=True)
class Job:
    """What to run.  `prefix` are cells that are only run where the state is not there yet.

    `against` are references to compare with; `files` are new texts of the user's files, read when
    they are imported; `redefined` those whose functions live already; `failed` the cells that may
    fail because they had failed in the session.  `limit` are the bytes that a snapshot may take,
    `megabytes` by how much the process may grow.  `stops`, `rounds`, `device`
    and `hiding` are as in Plan.
    """

    cells: tuple[Cell, ...]
    mode: Mode = Mode.PLAIN
    prefix: tuple[Cell, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    redefined: tuple[Redefinition, ...] = ()
    failed: frozenset[int] = frozenset()
    kind: Kind = Kind.ERROR
    message: str = ""
    against: tuple[Snapshot, ...] = ()
    keep: bool = False
    limit: int = 1 << 30
    megabytes: int = 2048
    awaited: tuple[str, ...] = ()
    awaits_steps: bool = False
    nudge: Nudge | None = None
    shift: Shift | None = None
    moved: Moved | None = None
    stops: frozenset[tuple[str, int]] = frozenset()
    rounds: int = 0
    device: bool = False
    hiding: bool = True


@dataclass(frozen=True)
class Result:
    """What a replay showed.

    `refused` says that it wanted an effect outside, `stopped` that it was killed ("budget",
    "memory", "crashed").  `warned` tells whether the request's warning came, `non_leaf` whether
    the one about a non-leaf's `.grad` did.  `untracked` and `unclear` are as in `UntrackedWrites`;
    numbers that a lenient run handed to numpy are unclear too.
    `backwards` is how many came to their end.
    `reached` and `unreached` are the awaited tensors that got a gradient and that got none,
    `nonfinite` those that got one with an infinity or a NaN, `zero` those that got zeros;
    `by_steps` says that only a gradient counts that an optimizer has stepped with.  `origin` is
    where those come from that are not finite.
    `hid`: a file was asked for that the session had made since.
    """

    failure: Failure | None = None
    refused: Reason | None = None
    stopped: str = ""
    warned: bool = False
    non_leaf: bool = False
    doubts: frozenset[str] = frozenset()
    untracked: bool = False
    unclear: bool = False
    snapshot: Snapshot | None = None
    agreements: tuple[Agreement, ...] = ()
    reached: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    by_steps: bool = False
    slopes: tuple[Slope, ...] = ()
    reaches: tuple[Reach, ...] = ()
    backwards: int = 0
    nonfinite: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    origin: NonFinite | None = None
    rounds: tuple[Round, ...] = ()
    cancelled: tuple[SeveredValue, ...] = ()
    ignored: tuple[IgnoredGradient, ...] = ()
    hid: bool = False

    @property
    def completed(self) -> bool:
        return self.failure is None and self.refused is None and not self.stopped


class ReplaySession:
    """The state in which replays begin: a namespace, in a process of its own."""

    def __init__(
        self,
        namespace: dict[str, Any],
        sandbox: Sandbox,
        copied: bool,
        again: RunAgain | None = None,
    ) -> None:
        self._alive = Alive()
        self._copied = copied
        self._again = again
        self.namespace = namespace
        self.sandbox = sandbox
        self.runner = Runner(namespace)

    @classmethod
    def copied(
        cls, namespace: dict[str, Any], sandbox: Sandbox, again: RunAgain | None = None
    ) -> ReplaySession:
        """The live session, in a fork of it; `again` runs in the place of its cells."""
        return cls(namespace, sandbox, copied=True, again=again)

    @classmethod
    def fresh(cls, sandbox: Sandbox) -> ReplaySession:
        """A session in which nothing has run yet."""
        _reset_torch()
        _forget_user_modules()
        return cls(new_main(), sandbox, copied=False)

    def run(
        self, cells: Collection[Cell], files: Mapping[str, str], may_fail: Collection[int]
    ) -> Failure | None:
        """Run cells; the first failure that the session had not seen ends it."""
        if self._again is not None:
            return self._run_again(self._again, cells, files)
        install(ReplayShell(self.runner, self.sandbox, files))
        names = {c.filename: c.number for c in cells}
        for cell in cells:
            try:
                self.runner.run(cell)
            except ForbiddenEffect:
                raise
            except BaseException as error:
                if cell.number not in may_fail:
                    return failure_of(error, cell, names)
        return None

    def _run_again(
        self, again: RunAgain, cells: Collection[Cell], files: Mapping[str, str]
    ) -> Failure | None:
        try:
            why = again(files)
        except ForbiddenEffect:
            raise
        except BaseException as error:
            return failure_of(error, None, {cell.filename: cell.number for cell in cells})
        if why:
            raise self.sandbox.refuse(why)
        return None

    def prepare(self, job: Job) -> None:
        """Look here, where the job's process is forked from, for what it asks of all that lives."""
        self._alive.look_for_functions([change.filename for change in job.redefined])
        if self._copied and job.mode in _KNOWS_OLDER_TENSORS:
            self._alive.look_for_tensors()

    def replay(self, job: Job) -> Result:
        """Run a job to its end.  The process is used up afterwards."""
        self.sandbox.enter_replay(job.megabytes, job.hiding)
        self.prepare(job)
        redefine(job.redefined, self._alive)
        heard = _Warnings(job.kind is Kind.WARNING, job.message)
        files = frozenset({c.filename for c in (*job.prefix, *job.cells)} | {*job.files})
        copies = SavedCopies(updates=job.mode in (Mode.COPIES, Mode.TRACKED))
        ledger = GradientLog(files, copies)
        writes = UntrackedWrites(track=job.mode is Mode.TRACKED)
        lenient = Lenient(self.namespace, retain=job.mode is Mode.RETAINED_GRADIENTS)
        slopes = Slopes(job.nudge)
        running = RunningFunctions(files)
        dependence = Dependence(self.namespace, running, job.shift, job.awaited)
        every = job.mode is Mode.NONFINITE_VALUES
        numbers = NonFiniteGradients(self.namespace, running, values=every)
        values = SeveredValues(self.namespace, running, job.moved, job.stops, job.rounds)
        mends = job.mode is Mode.OWN_DERIVATIVES
        ignored = IgnoredGradients(self.namespace, running, mends)
        try:
            with (
                heard.listening(),
                _edited_files(job.files),
                ledger.noting(),
                self._mode(job, copies, writes, lenient),
                _watched(job.mode, slopes, dependence, numbers, values, ignored),
            ):
                failure = self.run((*job.prefix, *job.cells), job.files, job.failed)
        except ForbiddenEffect:
            failure = None
        result = Result(
            failure=failure,
            refused=self.sandbox.reason,
            warned=heard.asked_for,
            non_leaf=heard.non_leaf,
            doubts=frozenset(copies.doubts | lenient.doubts | ignored.doubts),
            stopped="memory" if failure is not None and failure.of_memory else "",
            untracked=writes.seen,
            unclear=writes.unclear or lenient.numbers_left,
            slopes=tuple(slopes.found),
            reaches=tuple(dependence.found),
            backwards=ledger.backwards,
            origin=numbers.found,
            rounds=values.rounds,
            cancelled=tuple(values.cancelled),
            ignored=tuple(ignored.found),
            hid=self.sandbox.hid,
        )
        overwritten = [*copies.overwritten, *lenient.overwritten]
        return self._with_state(result, job, ledger, overwritten) if result.completed else result

    def _with_state(
        self, result: Result, job: Job, ledger: GradientLog, overwritten: list[Saved]
    ) -> Result:
        space = self.namespace
        found = None
        if job.keep:
            found = take_snapshot(space, ledger, overwritten, job.limit)
        agreements = tuple(compare(s, space, ledger) for s in job.against)
        awaited = _awaited(job, space, ledger)
        nonfinite = {n for n, g in awaited.items() if g is not None and is_wrong(g)}
        return replace(
            result,
            snapshot=found,
            agreements=agreements,
            reached=tuple(n for n, g in awaited.items() if g is not None and n not in nonfinite),
            unreached=tuple(name for name, gradient in awaited.items() if gradient is None),
            nonfinite=tuple(n for n in awaited if n in nonfinite),
            zero=tuple(n for n, g in awaited.items() if g is not None and is_zero(g)),
            by_steps=job.awaits_steps,
        )

    @contextmanager
    def _mode(
        self,
        job: Job,
        copies: SavedCopies,
        writes: UntrackedWrites,
        lenient: Lenient,
    ) -> Iterator[None]:
        with ExitStack() as stack:
            if job.mode is Mode.OWN_GRADIENTS:
                stack.enter_context(own_gradients(self._alive.tensors()))
            if job.mode is Mode.HOOKS_ONCE:
                stack.enter_context(hooks_once())
            if job.mode in (Mode.LENIENT, Mode.RETAINED_GRADIENTS):
                # A write that torch refuses may also meet a saved value.
                copies.protect_existing(_with_graph(self._alive.tensors()))
                stack.enter_context(copies.watch())
                stack.enter_context(lenient.watch())
            if job.mode in (Mode.RETAINED, Mode.RETAINED_COPIES):
                stack.enter_context(retained_graphs())
            if job.mode in (Mode.COPIES, Mode.TRACKED, Mode.RETAINED_COPIES):
                copies.protect_existing(_with_graph(self._alive.tensors()))
                stack.enter_context(copies.watch())
                stack.enter_context(writes)
            yield


def _awaited(job: Job, space: Mapping[str, Any], ledger: GradientLog) -> dict[str, Any]:
    """The gradient that a backward of the run gave the awaited tensors, None where it did not
    reach them; others are left out, and so are those of which it cannot be told.  Of those that
    only a function has a name for, what was reached is told."""
    import torch

    names = job.awaited
    if not names:
        return {}
    found = {spelled(path): value for path, value in walk(space)}
    tensors = {name: found[name] for name in names if isinstance(found.get(name), torch.Tensor)}
    if job.awaits_steps:
        inside = ledger.named_steps(every=True)
        got = {name: inside.get(name) for name in names if name in ledger.named(every=True)}
        return got | {name: ledger.stepped(tensor) for name, tensor in tensors.items()}
    inside = ledger.named(every=True)
    got = {name: inside[name] for name in names if name in inside}
    got |= {name: _gradient_of(tensor, ledger) for name, tensor in tensors.items()}
    return {name: g for name, g in got.items() if g is not None or ledger.complete}


def _gradient_of(tensor: Any, ledger: GradientLog) -> Any:
    given = ledger.of(tensor)
    return given if given is not None or not tensor.is_leaf else tensor.grad


class _Warnings:
    """Listens for the warnings that matter, whatever filters the program has."""

    def __init__(self, asked: bool, message: str) -> None:
        self.asked_for = False
        self.non_leaf = False
        self._start = message.strip()[:60] if asked else ""

    @contextmanager
    def listening(self) -> Iterator[None]:
        warnings.showwarning = self._show
        starts = [NON_LEAF_WARNING, self._start] if self._start else [NON_LEAF_WARNING]
        for start in starts:
            warnings.filterwarnings("always", re.escape(start))
        yield

    def _show(self, message: Any, *args: Any, **kwargs: Any) -> None:
        text = str(message)
        self.non_leaf = self.non_leaf or text.startswith(NON_LEAF_WARNING)
        self.asked_for = self.asked_for or (bool(self._start) and text.startswith(self._start))


@contextmanager
def _edited_files(files: Mapping[str, str]) -> Iterator[None]:
    """Imports of an edited file get its new text."""
    if files:
        import importlib.machinery as machinery

        loader = machinery.SourceFileLoader
        original, stats_of = loader.get_data, loader.path_stats

        def get_data(self: Any, path: str) -> bytes:
            return files[path].encode() if path in files else original(self, path)

        def path_stats(self: Any, path: str) -> Any:
            if path in files:
                raise OSError("the compiled file is not of the edited source")
            return stats_of(self, path)

        loader.get_data = get_data  # type: ignore[method-assign]
        loader.path_stats = path_stats  # type: ignore[method-assign]
        sys.path_importer_cache.clear()
    yield


@contextmanager
def _watched(
    mode: Mode,
    slopes: Slopes,
    dependence: Dependence,
    numbers: NonFiniteGradients,
    values: SeveredValues,
    ignored: IgnoredGradients,
) -> Iterator[None]:
    """What looks at a run in this mode."""
    watchers: dict[Mode, Any] = {
        Mode.SEVERED: values,
        Mode.NONFINITE: numbers,
        Mode.NONFINITE_VALUES: numbers,
        Mode.SLOPES: slopes,
        Mode.DEPENDENCE: dependence,
        Mode.IGNORED: ignored,
        Mode.OWN_DERIVATIVES: ignored,
    }
    watcher = watchers.get(mode)
    with watcher.watch() if watcher is not None else nullcontext():
        yield


def _with_graph(tensors: list[Any]) -> list[Any]:
    """Those that have a history."""
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        return [t for t in tensors if _has_graph(t)]


def _has_graph(tensor: Any) -> bool:
    try:
        return bool(tensor.requires_grad and tensor.grad_fn is not None)
    except RuntimeError:  # a view made under no_grad whose base was written since
        return False


def _forget_user_modules() -> None:
    """The user's own modules are imported anew, as in a fresh process."""
    from ..program import is_library

    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and file.endswith(".py") and not is_library(file):
            del sys.modules[name]


def _reset_torch() -> None:
    """What an earlier cell may have left switched: a fresh process has torch's defaults."""
    import torch

    while torch._C._len_torch_function_stack():
        torch._C._pop_torch_function_stack()
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    if torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(False)
    torch.autograd.set_detect_anomaly(False)
    torch.manual_seed(_SEED)
    random.seed(_SEED)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(_SEED)
    for name, table in vars(torch.nn.modules.module).items():
        if name.startswith("_global_") and name.endswith("_hooks") and hasattr(table, "clear"):
            table.clear()
