"""A program run plainly while somebody else looks on: every line that ran and every call of torch.

Nothing of the package is used here.  Lines come from Python's own tracing; calls, the memory they
read and wrote, its versions before and after, and the nodes they made from a torch function mode.
"""

from __future__ import annotations

import ast
import builtins
import io
import linecache
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

Line = tuple[int, int]
_DEEP = 40  #: nodes that one call may make, counted along a path
_SEEN = "_value_seen_by_the_observer"


@dataclass(frozen=True)
class Memory:
    """A tensor as a call met it: which storage, and its version before and after."""

    storage: int
    before: int | None
    after: int | None
    grad: bool = False


@dataclass(frozen=True)
class Call:
    """A call of torch: `lines` are the user's lines that led to it, innermost first."""

    clock: int
    lines: tuple[Line, ...]
    name: str
    read: tuple[Memory, ...]
    made: tuple[Memory, ...]
    nodes: frozenset[str]
    grad_mode: bool
    inference: bool
    raised: bool

    @property
    def written(self) -> tuple[Memory, ...]:
        """What it changed, by its own account: the version moved, or the call is known to write."""
        told = self.name == "__set__" or self.name.startswith("_fused")
        return tuple(m for m in self.read if told or m.before != m.after)


@dataclass
class Observed:
    """What was seen: `ran` has the clock of each time a line ran; `named` the storages that a name
    stood for at one of the lines looked at; `frames` are those of the user at the failure."""

    cells: Sequence[str]
    calls: list[Call] = field(default_factory=list)
    ran: dict[Line, list[int]] = field(default_factory=dict)
    named: dict[str, dict[int, torch.Tensor]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    failed: tuple[Line, ...] = ()
    error: str = ""
    space: dict[str, Any] = field(default_factory=dict)

    def at(self, line: Line) -> list[Call]:
        """The calls that this line led to."""
        return [c for c in self.calls if line in c.lines]

    def text(self, line: Line) -> str:
        """The text of a line, "" where there is none."""
        cell, number = line
        rows = self.cells[cell - 1].splitlines() if 0 < cell <= len(self.cells) else []
        return rows[number - 1] if 0 < number <= len(rows) else ""


def observe(cells: Sequence[str], names: Sequence[str], at: frozenset[Line]) -> Observed:
    """Run the cells up to the failure; look `names` up there and whenever a line of `at` runs.

    A name that would do something (`self.graph.propagation()`) is no name to look up: its value is
    taken where the program itself computes it.
    """
    watch = _Watch(Observed(cells), names, at)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("default")
        show = warnings.showwarning
        warnings.showwarning = lambda *a, **k: watch.look(sys._getframe(1))  # type: ignore[assignment]
        try:
            watch.run()
        finally:
            warnings.showwarning = show
    return watch.seen


class _Watch(TorchFunctionMode):
    def __init__(self, seen: Observed, names: Sequence[str], at: frozenset[Line]) -> None:
        super().__init__()
        self.seen, self.at = seen, at
        self.names = {n: code for n in names if (code := _plain_path(n)) is not None}
        self.taken = _Taken({t: n for n in names if n not in self.names and (t := _text(n))})
        self.files: dict[str, int] = {}
        self.clock = 0
        self.newest = -1
        self.kept: dict[int, Any] = {}  # an address says something only while its storage lives

    def run(self) -> None:
        space = self.seen.space
        space["__name__"] = "__main__"
        sys.settrace(self._called)
        try:
            with self, mock.patch.object(builtins, _SEEN, self._taken_value, create=True):
                for number, text in enumerate(self.seen.cells, 1):
                    name = f"<observed {number}>"
                    self.files[name] = number
                    linecache.cache[name] = len(text), None, text.splitlines(True), name
                    tree = ast.fix_missing_locations(self.taken.visit(ast.parse(text)))
                    exec(compile(tree, name, "exec"), space)
        except Exception as error:
            sys.settrace(None)
            self._failed(error)
        finally:
            sys.settrace(None)
        self._look_up(space, space)

    def _failed(self, error: Exception) -> None:
        self.seen.error = f"{type(error).__name__}: {error}"
        frames = [(f, n) for f, n in traceback.walk_tb(error.__traceback__) if self._is_user(f)]
        self.seen.failed = tuple((self.files[f.f_code.co_filename], n) for f, n in frames)[::-1]
        for frame, _ in frames:
            self._look_up(frame.f_locals, frame.f_globals)

    def _is_user(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename in self.files

    # -- lines ----------------------------------------------------------------------------

    def _called(self, frame: FrameType, event: str, arg: object) -> Any:
        return self._line if self._is_user(frame) else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            line = (self.files[frame.f_code.co_filename], frame.f_lineno)
            self.seen.ran.setdefault(line, []).append(self._tick())
            if line in self.at:
                self._look_up(frame.f_locals, frame.f_globals)
        elif event == "return":
            self.look(frame)
        return self._line

    def _tick(self) -> int:
        self.clock += 1
        return self.clock

    def look(self, frame: FrameType | None) -> None:
        """Look the names up in the user's frames, from this one outwards."""
        while frame is not None:
            if self._is_user(frame):
                self._look_up(frame.f_locals, frame.f_globals)
            frame = frame.f_back

    def _look_up(self, local: Mapping[str, Any], outer: dict[str, Any]) -> None:
        trace, _ = sys.gettrace(), sys.settrace(None)
        try:
            with torch._C.DisableTorchFunction():
                for name, code in self.names.items():
                    self._note(name, code, local, outer)
        finally:
            sys.settrace(trace)

    def _note(self, name: str, code: Any, local: Mapping[str, Any], outer: dict[str, Any]) -> None:
        try:
            value = eval(code, outer, dict(local))
        except Exception:
            return
        self._stands_for(name, value)

    def _taken_value(self, name: str, value: Any) -> Any:
        self._stands_for(name, value)
        return value

    def _stands_for(self, name: str, value: Any) -> None:
        self.seen.known.add(name)
        if isinstance(value, torch.Tensor):
            self.seen.named.setdefault(name, {})[_storage(value)] = value

    # -- calls of torch -------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = self._keep(_tensors((args, tuple(kwargs.values()))))
        before = [_version(t) for t in given]
        lines = tuple(self._lines(sys._getframe(1)))
        if self.at.intersection(lines):
            self.look(sys._getframe(1))
        mode, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        result: Any = None
        raised = True
        try:
            result = func(*args, **kwargs)
            raised = False
        finally:
            read = tuple(
                Memory(_storage(t), b, _version(t), t.requires_grad)
                for t, b in zip(given, before, strict=True)
            )
            out = self._keep(_tensors((result,)))
            made = tuple(Memory(_storage(t), None, _version(t), t.requires_grad) for t in out)
            # Looking at a view's `grad_fn` while nothing is recorded would change its history.
            nodes = frozenset(self._new_nodes(out) if mode else ())
            name = getattr(func, "__name__", str(func))
            self.seen.calls.append(
                Call(self._tick(), lines, name, read, made, nodes, mode, inference, raised)
            )
        return result

    def _keep(self, tensors: Iterator[torch.Tensor]) -> list[torch.Tensor]:
        found = list(tensors)
        with torch._C.DisableTorchFunction(), suppress(RuntimeError, NotImplementedError):
            for tensor in found:
                storage = tensor.untyped_storage()
                self.kept.setdefault(storage._cdata, storage)
        return found

    def _lines(self, frame: FrameType | None) -> Iterator[Line]:
        while frame is not None:
            if self._is_user(frame):
                yield self.files[frame.f_code.co_filename], frame.f_lineno
            frame = frame.f_back

    def _new_nodes(self, out: list[torch.Tensor]) -> Iterator[str]:
        """Names of the nodes above the newest known before; a view's history is left alone."""
        todo = [t.grad_fn for t in out if t.requires_grad and not t.is_leaf]
        newest = self.newest
        for _ in range(_DEEP):
            if not todo:
                return
            node: Any = todo.pop()
            number = node._sequence_nr()
            if newest < number < 2**63:
                self.newest = max(self.newest, number)
                yield node.name()
                todo += [child for child, _ in node.next_functions if child is not None]


def _tensors(values: object, depth: int = 3) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (tuple, list)) and depth:
        for value in values:
            yield from _tensors(value, depth - 1)


def _storage(tensor: torch.Tensor) -> int:
    try:
        with torch._C.DisableTorchFunction():
            return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return 0


def _version(tensor: torch.Tensor) -> int | None:
    try:
        with torch._C.DisableTorchFunction():
            return tensor._version
    except RuntimeError:
        return None


class _Taken(ast.NodeTransformer):
    """Hands each value that one of these expressions has to the observer."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> Any:
        name = self.names.get(ast.unparse(node)) if isinstance(node, ast.Call) else None
        found = self.generic_visit(node)
        if name is None:
            return found
        call = ast.Call(ast.Name(_SEEN, ast.Load()), [ast.Constant(name), found], [])
        return ast.copy_location(call, node)


def _text(name: str) -> str:
    """An expression as Python itself writes it, "" for none."""
    try:
        return ast.unparse(ast.parse(name, mode="eval"))
    except SyntaxError:
        return ""


def _plain_path(name: str) -> Any:
    """The code of a name, attribute or item; None for anything that would do something."""
    try:
        tree = ast.parse(name, mode="eval")
    except SyntaxError:
        return None
    plain = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub)
    if not all(isinstance(n, (*plain, ast.Expression)) for n in ast.walk(tree)):
        return None
    return compile(tree, "<name>", "eval")
