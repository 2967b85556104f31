"""The walk: the cells' twins executed in order on stand-ins, up to the failing line.

Nothing of the user's runs or changes.  The walk has a namespace, modules and tensors of its own,
keeps torch's global state (grad mode, generators, defaults) as it found it, and is bounded in
steps and in time.  Where it ends, the stand-ins' own autograd graph, aliases and version
counters tell what the program's tell, with the statement known for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...incident import Incident
from ...program import Program, Source
from .adopt import Adopter
from .budget import Budget, Limits, OutOfBudget, TooBig, WalkEnded
from .devices import Devices
from .failing import Failure
from .flow import Arms, Flow
from .guard import undisturbed
from .instrument import TWIN, Twins
from .names import CHANCE
from .policy import Policy, is_patched, is_twin_class, is_twin_function, safe_builtins
from .site import Site
from .trace import Trace
from .values import UNKNOWN, Unknown


class Walk:
    """One walk over a program: `run` it once, then read `trace`, `failure` and `globals`.

    `arms` says how some branches go; `big` takes stand-ins without numbers.
    """

    def __init__(
        self,
        program: Program,
        incident: Incident,
        twins: Twins,
        *,
        limits: Limits | None = None,
        arms: Arms | None = None,
        big: bool = False,
    ) -> None:
        from .hooks import Hooks
        from .imports import Imports
        from .operations import Operations
        from .standins import specials

        self.program = program
        self.incident = incident
        self.budget = Budget(limits or Limits(), big)
        self.devices = Devices(big)
        self.policy = Policy()
        self.trace = Trace()
        self.twins = twins
        self.sites = twins.sites
        #: the user's calls that are open, outermost first
        self.stack: list[Site] = []
        self.flow = Flow(self, arms or {})
        self.failure = Failure(self, incident)
        self.adopter = Adopter(self.policy, self.twin_of, self.stand_in)
        self.imports = Imports(self)
        self.operations = Operations(self)
        self.in_failing_cell = False
        #: live tensors that the walk had to invent numbers for
        self.invented = 0
        self.globals: dict[str, Any] = {"__name__": "__main__", "__doc__": None}
        self.builtins = _Builtins(self, {**safe_builtins(), **Hooks(self).table()})
        self.globals["__builtins__"] = self.builtins
        self._specials = specials()

    # -- running ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Walks the cells up to the failing one; raises nothing but TooBig."""
        if is_patched(torch.Tensor):
            return  # every operation might be the user's code
        try:
            with undisturbed(), self.devices.context():
                cells = self._cells()
                self._walk_history([c for c in cells if c.cell != self.incident.cell])
                self.budget.open()
                self.in_failing_cell = True
                for source in cells:
                    if source.cell == self.incident.cell:
                        self.execute(source, self.globals)
        except TooBig:
            raise
        except (WalkEnded, RecursionError, SystemExit, GeneratorExit):
            return
        except KeyboardInterrupt as error:
            if not _raised_by_twin(error):
                raise
        finally:
            self.budget.close()

    def _walk_history(self, cells: list[Source]) -> None:
        """The cells before the failing one; of those beyond the budget only the definitions."""
        todo = cells[::-1]
        try:
            while todo:
                self.execute(todo.pop(), self.globals)
        except OutOfBudget:
            self.budget.open()
            for source in reversed(todo):
                self.execute(source, self.globals, definitions_only=True)

    def _cells(self) -> list[Source]:
        """The cells up to the failing one, each once; of equal ones the last two runs."""
        cells = list(self.program.cells)
        number = self.incident.cell
        last = max((i for i, c in enumerate(cells) if c.cell == number), default=len(cells) - 1)
        failing = {frame.filename for frame in self.incident.user_frames}
        runs: dict[tuple[int | None, str], Source] = {}
        for source in cells[: last + 1]:
            # `%%time` leaves two names for one body: the frames tell which one ran.
            key = source.cell, source.python
            if key not in runs or source.filename in failing:
                runs[key] = source
        found: list[Source] = []
        seen: dict[str, int] = {}
        for source in reversed(runs.values()):
            seen[source.python] = seen.get(source.python, 0) + 1
            if seen[source.python] <= 2:
                found.append(source)
        return found[::-1]

    def execute(
        self, source: Source, names: dict[str, Any], *, definitions_only: bool = False
    ) -> None:
        """Executes the twin of a cell or of one of the user's files."""
        code = self.twins.code(source, definitions_only)
        if code is None:
            return
        names.setdefault("__builtins__", self.builtins)
        outer = self.stack[:]
        try:
            exec(code, names)
        except CellEnded:
            return
        finally:
            self.stack[:] = outer

    def failed(self, site: Site, error: Exception) -> Any:
        """An operation raised: the failure itself, the user's `try`, or the walk's ignorance."""
        self.failure.check(site, error)
        if isinstance(error, (StopIteration, StopAsyncIteration)) or self.flow.tries:
            raise error
        if _is_autograd(error):
            raise error
        return UNKNOWN

    def fault(self, error: Exception) -> None:
        """A statement of a cell raised.  An autograd error was the user's and ended the cell."""
        self.stack.clear()
        self.flow.reset()
        if isinstance(error, CellEnded) or _is_autograd(error):
            raise CellEnded from None

    # -- unknown values and live ones ------------------------------------------------------------

    def unknown_call(
        self, site: Site, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of something the walk does not know; progress bars hand their items through."""
        name = name or _called(site)
        self.budget.spend(1)
        self.failure.arrive(site, (*args, *kwargs.values()), name)
        if name in ("tqdm", "trange", "track", "progress_bar", "prepare") and args:
            return args[0] if name != "prepare" or len(args) == 1 else args
        return UNKNOWN

    def missing(self, owner: Any, key: Any) -> Any:
        """A key that is not there: of a list that a shortened loop filled, its last item."""
        if isinstance(owner, (list, tuple)) and owner and isinstance(key, int):
            return owner[-1]
        return UNKNOWN

    def live_values(self, site: Site, shape: Any) -> Any:
        """Stand-ins for what the program has under a name, or under nested names."""
        if isinstance(shape, tuple):
            return tuple(self.live_values(site, s) for s in shape)
        namespace: Any = self.incident.namespace
        if site.function is not None:
            frames = [f for f in self.incident.user_frames if f.function == site.function]
            namespace = frames[-1].frame.f_locals if frames else {}
        return self.adopter.adopt(namespace[shape]) if shape and shape in namespace else UNKNOWN

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
        if live.numel() > self.budget.limits.elements and not self.devices.big:
            raise TooBig
        self.invented += 1
        with torch.no_grad():
            found = torch.zeros(live.shape, dtype=live.dtype, device=self.devices.device)
            if live.is_floating_point():
                found.uniform_(0.1, 0.9)
        if isinstance(live, torch.nn.Parameter):
            found = torch.nn.Parameter(found, live.requires_grad)
        elif live.requires_grad:
            found.requires_grad_()
        self.devices.mark(found, str(live.device))
        return found

    @property
    def made_up(self) -> bool:
        """Whether the stand-ins' numbers may be others than the program's."""
        seeds = {s.op for s in self.trace.steps if s.op in ("manual_seed", "seed")}
        chance = any(s.op in CHANCE for s in self.trace.steps)
        return (
            self.devices.big
            or self.invented > 0
            or "manual_seed" not in seeds
            or (chance and "seed" not in seeds)
        )

    def special(self, function: Any) -> Callable[..., Any] | None:
        """What the walk does instead of calling a function, or None."""
        try:
            return self._specials.get(function)
        except Exception:  # unhashable callables, or a hash of the user's own
            return None

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


class CellEnded(Exception):
    """The cell had raised here when it ran."""


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


_AUTOGRAD = (
    "in-place",
    "inplace",
    "backward through the graph",
    "does not require grad",
    "grad_fn",
)


def _is_autograd(error: Exception) -> bool:
    text = str(error) if isinstance(error, RuntimeError) else ""
    return any(part in text for part in _AUTOGRAD)


def _raised_by_twin(error: BaseException) -> bool:
    """Whether twin code stood innermost: `raise KeyboardInterrupt`, as the program may say."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(TWIN)


def _called(site: Site) -> str:
    """The name a call is written with."""
    func = getattr(site.node, "func", None)
    return str(getattr(func, "attr", getattr(func, "id", "")))
