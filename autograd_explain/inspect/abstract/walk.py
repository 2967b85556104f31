"""The walk: the cells' twins executed in order on stand-ins, up to the failing line.

Nothing of the user's runs or changes.  The walk has a namespace, modules and tensors of its own,
keeps torch's global state (grad mode, generators, defaults) as it found it, and is bounded in
steps and in time.  Where it ends, the stand-ins' own autograd graph, aliases and version
counters tell what the program's tell, with the statement known for each.
"""

from __future__ import annotations

import ast
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ...incident import Incident
from ...program import Program, Source
from ..graph import Graph
from ..history import SavedTensor
from .adopt import Adopter
from .instrument import TWIN, compile_twin
from .policy import Policy, is_twin_class, is_twin_function, safe_builtins
from .site import Site
from .trace import Trace, tensors_in
from .values import UNKNOWN, ReadFloat, ReadInt, Unknown


class Reached(BaseException):
    """The walk met the failure itself: it ends here."""


class OutOfBudget(BaseException):
    """The walk has used up its steps or its time."""


class TooBig(BaseException):
    """Stand-ins with numbers are too costly for this program."""


@dataclass(frozen=True, eq=False)
class Arrival:
    """The walk at the failing line: what it works on, and the locals of the twin's frames.

    `graph` and `overwritten` (its saved slots that were written since) are those of the backward
    that failed, taken before torch frees any of it.
    """

    order: int
    chain: tuple[Site, ...]
    op: str
    inputs: tuple[Any, ...]
    frames: list[tuple[str, dict[str, Any]]]
    graph: Graph | None
    overwritten: tuple[SavedTensor, ...]


@dataclass(frozen=True, eq=False)
class _Backward:
    """The graph of a backward that may be the failing one, before it runs."""

    site: Site
    graph: Graph
    overwritten: tuple[SavedTensor, ...]

    @classmethod
    def before(cls, site: Site, roots: tuple[torch.Tensor, ...]) -> _Backward | None:
        if not roots:
            return None
        graph = Graph(roots, limit=20_000, seconds=0.1)
        return cls(site, graph, tuple(graph.overwritten()))


@dataclass(frozen=True)
class Limits:
    """What a walk may cost, in weighted operations; `seconds` is the last resort."""

    steps: int = 60_000
    loop: int = 4_000
    iterations: int = 3
    seconds: float = 0.6
    elements: int = 300_000


class Walk:
    """One walk over a program; `run` it once, then read `trace`, `arrivals` and `globals`."""

    def __init__(
        self, program: Program, incident: Incident, limits: Limits | None = None,
        steer: bool = False,
    ) -> None:  # fmt: skip
        from .hooks import Hooks
        from .imports import Imports
        from .standins import specials

        self.program = program
        self.incident = incident
        self.limits = limits or Limits()
        self.trace = Trace()
        self.sites: list[Site] = []
        self.stack: list[Site] = []
        self.loops: list[tuple[Site, int]] = []
        self.policy = Policy()
        self.adopter = Adopter(self.policy, self.twin_of, self.stand_in)
        self.arrivals: list[Arrival] = []
        self.reached = False
        self.globals: dict[str, Any] = {"__name__": "__main__", "__doc__": None}
        self.imports = Imports(self)
        self._specials = specials(self)
        self._steer = steer
        self._spent = 0
        self._stop = 0.0
        self._trying = 0
        self._whiles: dict[int, tuple[int, int]] = {}
        self._bytes = 0
        self._live = [(f.filename, f.line, f.function, f.frame) for f in incident.user_frames]
        self._forced = _forced_arms(program, incident) if steer else {}
        self._final_cell = False
        self._backward: _Backward | None = None
        self.builtins = _Builtins(self, {**safe_builtins(), **Hooks(self).table()})
        self.globals["__builtins__"] = self.builtins

    # -- running ------------------------------------------------------------------------------

    def run(self) -> None:
        """Walks the cells up to the failing one; never raises, except for TooBig."""
        self._stop = time.monotonic() + self.limits.seconds
        try:
            for source in self._sources():
                self._final_cell = source.cell == self.incident.cell
                self._module(source, self.globals)
        except (Reached, OutOfBudget):
            return
        except RecursionError:
            return

    def _sources(self) -> list[Source]:
        """The cells up to the failing one; of equal ones the two last runs."""
        cells = list(self.program.cells)
        number = self.incident.cell
        if number is not None:
            last = max((i for i, c in enumerate(cells) if c.cell == number), default=len(cells) - 1)
            cells = cells[: last + 1]
        found: list[Source] = []
        seen: dict[str, int] = {}
        for source in reversed(cells):
            seen[source.python] = seen.get(source.python, 0) + 1
            if seen[source.python] <= 2:
                found.append(source)
        return found[::-1]

    def _module(self, source: Source, names: dict[str, Any]) -> None:
        try:
            code = compile_twin(source, self.sites)
        except (SyntaxError, ValueError, RecursionError, KeyError):
            return
        self.stack.clear()
        self.loops.clear()
        self._trying = 0
        try:
            exec(code, names)
        except _CellEnded:
            return

    def file(self, source: Source, names: dict[str, Any]) -> None:
        """Executes the twin of one of the user's files inside the walk."""
        stack, self.stack = self.stack, []
        try:
            code = compile_twin(source, self.sites)
            names.setdefault("__builtins__", self.builtins)
            exec(code, names)
        except (SyntaxError, ValueError, KeyError, _CellEnded):
            return
        finally:
            self.stack = stack

    # -- budget --------------------------------------------------------------------------------

    def spend(self, weight: int) -> None:
        self._spent += weight
        if self._spent > self.limits.steps or (
            self._spent % 64 < weight and time.monotonic() > self._stop
        ):
            raise OutOfBudget

    def measure(self, result: Any) -> None:
        if isinstance(result, torch.Tensor):
            self._bytes += result.numel()
            if result.numel() > self.limits.elements or self._bytes > 40 * self.limits.elements:
                raise TooBig

    def too_big(self, name: str, left: Any, right: Any) -> bool:
        """Whether plain Python arithmetic would take or make too much."""
        if isinstance(left, int) and isinstance(right, int):
            if name == "pow":
                return abs(right) > 64 or left.bit_length() * max(right, 0) > 4096
            return name == "lshift" and right > 4096
        if name == "mul":
            for items, count in ((left, right), (right, left)):
                if isinstance(items, (list, tuple, str, bytes)) and isinstance(count, int):
                    return len(items) * count > 100_000
        return False

    # -- the failing line ------------------------------------------------------------------------

    def arrive(
        self, site: Site, values: tuple[Any, ...], op: str = "", owner: Any = None
    ) -> None:
        """Notes the walk's state where `site` may be what failed."""
        if not self._final_cell or not self._live:
            return
        if op in ("backward", "grad") and self._on_the_way(site):
            self._backward = _Backward.before(site, _roots(owner, values))
        if not self._is_failing(site):
            return
        backward = self._backward
        if backward is not None and backward.site is not site and backward.site not in self.stack:
            backward = None  # an earlier one, which went well
        arrival = Arrival(
            len(self.trace.steps), (*self.stack, site), op, self.tracked(values), self._frames(),
            None if backward is None else backward.graph,
            () if backward is None else backward.overwritten,
        )  # fmt: skip
        if self.arrivals and self.arrivals[-1].chain[-1].shown is site.shown:
            self.arrivals.pop()
        self.arrivals = [*self.arrivals[-8:], arrival]

    def _is_failing(self, site: Site) -> bool:
        filename, line, _, _ = self._live[-1]
        if site.source.filename != filename or not site.covers(line):
            return False
        outer = self.stack[0] if self.stack else site
        return outer.source.filename != self._live[0][0] or outer.covers(self._live[0][1])

    def _on_the_way(self, site: Site) -> bool:
        """Whether one of the frames of the failure stands at this site."""
        return any(
            site.source.filename == filename and site.covers(line)
            for filename, line, _, _ in self._live
        )

    def _frames(self) -> list[tuple[str, dict[str, Any]]]:
        """The twin's frames, innermost first, with copies of their locals."""
        found = []
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith(TWIN) and code.co_name != "<module>":
                found.append((code.co_name, dict(frame.f_locals)))
            frame = frame.f_back
        return found

    def failed(self, site: Site, error: Exception) -> Any:
        """An operation raised: the failure itself, the user's `try`, or the walk's ignorance."""
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            raise error
        if self._reproduces(site, error):
            self.reached = True
            raise Reached from None
        if self._trying:
            raise error
        if isinstance(error, RuntimeError) and _is_autograd(str(error)):
            raise error
        return UNKNOWN

    def _reproduces(self, site: Site, error: Exception) -> bool:
        if not self._final_cell or self.incident.exception is None:
            return False
        if type(error) is not type(self.incident.exception):
            return False
        return self._is_failing(site) and _head(str(error)) == _head(self.incident.message)

    def fault(self, site: Site, error: Exception) -> None:
        """A statement of a cell raised.  An autograd error was the user's and ended the cell."""
        self.stack.clear()
        self.loops.clear()
        self._trying = 0
        if isinstance(error, RuntimeError) and _is_autograd(str(error)):
            raise _CellEnded

    # -- unknown values and live ones -----------------------------------------------------------

    def unknown_call(
        self, site: Site, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of something the walk does not know."""
        self.spend(1)
        self.arrive(site, (*args, *kwargs.values()), name or _called(site))
        if name in ("tqdm", "trange", "track", "notebook_tqdm") and args:
            return args[0]
        return UNKNOWN

    def missing(self, owner: Any, key: Any) -> Any:
        """A key that is not there: of a list that a shortened loop filled, its last item."""
        if isinstance(owner, (list, tuple)) and owner and isinstance(key, int):
            return owner[-1]
        return UNKNOWN

    def live_value(self, site: Site, name: str) -> Any:
        """A stand-in for what the program had under a name, UNKNOWN where it is not live."""
        if site.function is None:
            namespace: Any = self.incident.namespace
        else:
            frames = [f for *_, function, f in self._live if function == site.function]
            if not frames:
                return UNKNOWN
            namespace = frames[-1].f_locals
        if name not in namespace:
            return UNKNOWN
        return self.adopter.adopt(namespace[name])

    def live_values(self, site: Site, shape: Any) -> Any:
        """Stand-ins for what a target (a name or nested names) is bound to."""
        if isinstance(shape, tuple):
            return tuple(self.live_values(site, s) for s in shape)
        return self.live_value(site, shape) if shape else UNKNOWN

    def twin_of(self, live: Any) -> Any:
        """The twin of one of the user's functions or classes, by name; else UNKNOWN."""
        name = getattr(live, "__qualname__", "")
        module = getattr(live, "__module__", "__main__")
        scope = self.globals if module == "__main__" else self.imports.names(module)
        found: Any = scope.get(name.partition(".")[0], UNKNOWN)
        for part in name.split(".")[1:]:
            found = getattr(found, part, UNKNOWN)
        if is_twin_function(found) or (isinstance(found, type) and is_twin_class(found)):
            return found
        return UNKNOWN

    def stand_in(self, live: torch.Tensor) -> Any:
        """A tensor of the same shape, dtype and role with storage of its own."""
        if type(live).__module__.partition(".")[0] != "torch" or live.layout is not torch.strided:
            return UNKNOWN
        if live.numel() > self.limits.elements:
            raise TooBig
        with torch.no_grad():
            found = torch.zeros(live.shape, dtype=live.dtype)
            if live.is_floating_point() or live.is_complex():
                found.uniform_(0.1, 0.9)
        if isinstance(live, torch.nn.Parameter):
            return torch.nn.Parameter(found, live.requires_grad)
        if live.requires_grad:
            found.requires_grad_()
        return found

    # -- conditions and loops -----------------------------------------------------------------

    def steered(self, site: Site, value: bool) -> bool:
        return self._forced.get(_position(site), value) if self._forced else value

    def truth(self, site: Site, value: Any) -> bool:
        if type(value) is Unknown:
            return self.steered(site, site.prefer)
        try:
            return self.steered(site, bool(value))
        except Exception as error:
            self.failed(site, error)
            return site.prefer

    def iterate(self, site: Site, iterable: Any, shape: Any) -> Iterator[Any]:
        """The items of a loop; long loops are cut short, the last item included."""
        if type(iterable) is Unknown:
            count = self.limits.iterations - 1
            iterable = [self.live_values(site, shape) for _ in range(count)]
        try:
            items = iter(iterable)
        except Exception as error:
            self.failed(site, error)
            return
        start, number = self._spent, 0
        depth = len(self.loops)
        self.loops.append((site, 0))
        item: Any = UNKNOWN
        try:
            while True:
                self.spend(1)
                if number >= self.limits.iterations and self._long(start):
                    last = _last(iterable)
                    if last is not UNKNOWN and last is not item:
                        self.loops[depth:] = [(site, number)]
                        yield last
                    return
                self.stack.append(site)
                try:
                    item = next(items)
                except StopIteration:
                    return
                except Exception as error:
                    self.failed(site, error)
                    return
                finally:
                    self.stack.pop()
                self.loops[depth:] = [(site, number)]
                yield self._fitting(site, item, shape)
                number += 1
        finally:
            del self.loops[depth:]

    def _fitting(self, site: Site, item: Any, shape: Any) -> Any:
        """An item as the target needs it: unknown parts come from the live names."""
        if isinstance(shape, tuple) and type(item) is Unknown:
            return self.live_values(site, shape)
        if isinstance(shape, str) and type(item) is Unknown:
            return self.live_value(site, shape)
        return item

    def _long(self, start: int) -> bool:
        total = self.limits.steps
        allowance = self.limits.loop if self._spent < total // 2 else 0
        return self._spent - start > allowance

    def bounded(self, values: Any, limit: int = 2000) -> Iterator[Any]:
        for number, value in enumerate(values):
            if number >= limit:
                return
            yield value

    def start_while(self, site: Site) -> None:
        self._whiles[site.index] = (0, self._spent)

    def go_on(self, site: Site, value: Any) -> bool:
        """The test of a `while`: undecidable ones and endless ones stop after a few rounds."""
        self.spend(1)
        number, start = self._whiles.get(site.index, (0, self._spent))
        self._whiles[site.index] = (number + 1, start)
        if number >= self.limits.iterations:
            if type(value) is Unknown or self._long(start):
                return False
        elif type(value) is Unknown:
            return True
        return self.truth(site, value)

    # -- scopes of the user's program ------------------------------------------------------------

    def context(self, site: Site, context: Any) -> Any:
        return context if hasattr(type(context), "__enter__") else UNKNOWN

    def trying(self) -> Any:
        return _Trying(self)

    def lookups_may_fail(self) -> bool:
        """Whether a missing attribute or key is the program's own business here."""
        return self._trying > 0

    def decorator(self, site: Site, decorator: Any, perform: Callable[..., Any]) -> Any:
        if type(decorator) is Unknown:
            return lambda decorated: decorated

        def decorate(decorated: Any) -> Any:
            found = perform(site, decorator, (decorated,), {})
            return decorated if type(found) is Unknown else found

        return decorate

    def base(self, base: Any, name: str) -> Any:
        """A base class; of unknown ones only whether they are modules is known."""
        if isinstance(base, type):
            if is_twin_class(base) or self.policy.allows(base):
                return base
        elif type(base) is not Unknown:
            return base
        live = self.incident.namespace.get(name)
        module = isinstance(live, type) and issubclass(live, torch.nn.Module)
        return torch.nn.Module if module else object

    def module_attribute(self, module: types.ModuleType, name: str) -> Any:
        try:
            found = getattr(module, name)
        except AttributeError:
            if self._trying:
                raise
            return UNKNOWN
        if isinstance(found, types.ModuleType) and not self.policy.may_import(found.__name__):
            return found if found in self.imports.twins else UNKNOWN
        return found

    def fact(self, tensor: torch.Tensor, name: str) -> Any:
        return getattr(tensor, name)

    # -- calls ----------------------------------------------------------------------------------

    def special(self, function: Any) -> Callable[..., Any] | None:
        try:
            return self._specials.get(function)
        except TypeError:  # unhashable callables are nothing special
            return None

    def prepared(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments as torch can take them: unknown numbers guessed, devices here."""
        return self.imports.arguments(function, args, kwargs)

    def touchable(
        self, function: Any, inputs: tuple[Any, ...], op: str
    ) -> list[torch.Tensor]:
        """The tensors an operation may write."""
        found = tensors_in(inputs)
        owner = function if isinstance(function, torch.nn.Module) else None
        owner = owner or getattr(function, "__self__", None)
        if isinstance(owner, torch.optim.Optimizer):
            for group in owner.param_groups:
                found.extend(group["params"])
        elif isinstance(owner, torch.nn.Module) and (owner is function or op in _MODULE_WRITERS):
            found.extend(list(self.bounded(_state(owner), 500)))
        return found

    def tracked(self, result: Any) -> tuple[Any, ...]:
        """The tensors, arrays and read numbers among some values."""
        if type(result) in (int, float, bool, str) or result is None:
            return ()
        if isinstance(result, torch.Tensor):
            return (result,)
        if self.is_array(result) or isinstance(result, (ReadFloat, ReadInt)):
            return (result,)
        if isinstance(result, (list, tuple)):
            found: list[Any] = []
            for value in result[:64]:
                found.extend(self.tracked(value))
            return tuple(found)
        if isinstance(result, dict):
            return self.tracked(list(result.values())[:64])
        return ()

    def is_array(self, value: Any) -> bool:
        kind = type(value)
        return kind.__module__ == "numpy" and kind.__name__ == "ndarray"


class _CellEnded(Exception):
    """The cell had raised here."""


class _Trying:
    """Counts how deep the walk is inside the user's `try` blocks."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk

    def __enter__(self) -> None:
        self.walk._trying += 1

    def __exit__(self, *error: object) -> None:
        self.walk._trying -= 1


class _Builtins(dict[str, Any]):
    """Twin code's builtins: a name that is nowhere else is looked for in the live namespace."""

    def __init__(self, walk: Walk, names: dict[str, Any]) -> None:
        super().__init__(names)
        self._walk = walk

    def __missing__(self, name: str) -> Any:
        special = self._walk.imports.builtin(name)
        if special is not None:
            return special
        namespace = self._walk.incident.namespace
        return self._walk.adopter.adopt(namespace[name]) if name in namespace else UNKNOWN


def _state(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    yield from module.parameters()
    yield from module.buffers()


_MODULE_WRITERS = frozenset(("load_state_dict", "reset_parameters", "apply", "_apply", "flatten_parameters"))
_AUTOGRAD = ("in-place", "inplace", "backward through the graph", "does not require grad", "grad_fn")


def _is_autograd(text: str) -> bool:
    return any(part in text for part in _AUTOGRAD)


def _head(text: str) -> str:
    """The part of a message before anything that names tensors."""
    return text[:48].partition("[")[0].strip()


def _roots(owner: Any, values: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    """What a backward starts from: its tensor, or the tensors of its first argument."""
    found = [owner] if isinstance(owner, torch.Tensor) else tensors_in(values[:1], 2)
    return tuple(t for t in found if t.requires_grad and t.grad_fn is not None)


def _called(site: Site) -> str:
    """The name a call is written with."""
    func = getattr(site.node, "func", None)
    return str(getattr(func, "attr", getattr(func, "id", "")))


def _last(iterable: Any) -> Any:
    try:
        return iterable[-1] if isinstance(iterable, (list, tuple, range)) else UNKNOWN
    except IndexError:
        return UNKNOWN


def _position(site: Site) -> tuple[str, int, int]:
    return site.source.filename, getattr(site.shown, "lineno", 0), getattr(site.shown, "col_offset", 0)


def _forced_arms(program: Program, incident: Incident) -> dict[tuple[str, int, int], bool]:
    """Which arm each `if` around the failing lines took."""
    found: dict[tuple[str, int, int], bool] = {}
    for frame in incident.user_frames:
        source = program.source(frame.filename)
        if source is None:
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.If):
                for arm, taken in ((node.body, True), (node.orelse, False)):
                    if arm and arm[0].lineno <= frame.line <= (arm[-1].end_lineno or 0):
                        found[source.filename, node.lineno, node.col_offset] = taken
    return found
