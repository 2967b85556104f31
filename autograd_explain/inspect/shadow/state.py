"""What a shadow run knows while it goes on: all that its parts share."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from ...incident import Incident, LiveFrame
from ...isolation.type_checks import is_a
from ...program import Program, Source, called_name
from .arrival import FailurePoint
from .budget import NotMade, RunBudget, RunLimits, TooBig
from .callbacks import calls_of, entered_from, is_call, twin_behind
from .devices import Devices
from .event_log import ShadowLog
from .instrument import Twins
from .libraries import Libraries, works_on_tensors
from .policy import Policy, is_twin_class, is_twin_function
from .replacements import specials
from .site import Site
from .substitutes import Substitutes, part_of
from .torch_names import CHANCE
from .unknown import UNKNOWN, Unknown

_INDICES = 4096  #: numbers of a tensor that are taken over
_EMPTY = types.ModuleType("_nothing")


class ShadowState:
    """The state of one run: its namespace, stack, event log and budget.

    The parts of a run (operations, control flow, imports, the hooks of twin code) are given the
    state and know nothing of each other.
    """

    #: what twin code finds as builtins; made by the run, which knows the hooks
    builtins: dict[str, Any]
    #: what stands for the modules that lead outside, by name
    outer: dict[str, types.ModuleType]
    #: builtins that twin code gets in a safe form, by name; None for others
    replaced: Callable[[str], Any]

    def __init__(
        self,
        program: Program,
        incident: Incident,
        twins: Twins,
        limits: RunLimits | None,
        big: bool,
    ) -> None:
        self.program = program
        self.incident = incident
        self.budget = RunBudget(limits or RunLimits(), big)
        self.devices = Devices(big)
        self.policy = Policy()
        self.trace = ShadowLog()
        self.twins = twins
        self.sites = twins.sites
        #: the user's calls that are open, outermost first
        self.stack: list[Site] = []
        #: the loops around the current operation, outermost first, with iteration numbers
        self.loops: list[tuple[Site, int]] = []
        #: what the `try` blocks that are open catch
        self.tries: list[Callable[[], Any]] = []
        #: the branches that hung on unknown numbers
        self.undecided: dict[tuple[str, int, int], bool] = {}
        #: where an element was taken out of a tuple, with the tuple's length
        self.tuples: dict[Site, int] = {}
        #: the twins of the user's modules, by name
        self.modules: dict[str, types.ModuleType] = {}
        self.failure = FailurePoint(self.trace, self.stack, incident)
        self.adopter = Substitutes(self.policy, self.twin_of, self.stand_in)
        self.libraries = Libraries(self)
        #: whether an object of a library is made, for which the live one may stand
        self.making = False
        #: the live objects that correspond to those that are being made, None for what is gone
        self.made: list[Any] = []
        #: the user's call that is open in a library, and what it was given
        self.given: tuple[Site | None, tuple[Any, ...]] = None, ()
        #: live tensors that numbers had to be invented for
        self.invented = 0
        # A script has a file, a module run as one a package: relative imports ask for it.
        own = {name: incident.namespace.get(name) for name in ("__file__", "__package__")}
        self.name = str(incident.namespace.get("__name__", "__main__"))
        self.globals: dict[str, Any] = {"__name__": self.name, "__doc__": None, **own}
        self._specials = specials()

    # -- running ---------------------------------------------------------------------------------

    def execute(
        self, source: Source, names: dict[str, Any], *, definitions_only: bool = False
    ) -> None:
        """Executes the twin of a cell or of one of the user's files."""
        with self.budget.uncounted():
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
        if isinstance(error, (StopIteration, StopAsyncIteration)) or self.catches(error):
            raise error
        if self.making and site.in_library:
            raise NotMade  # the program made it: this goes another way
        if _is_autograd(error):
            raise error
        return UNKNOWN

    def catches(self, error: Exception) -> bool:
        """Whether a `try` that is open is for such an error."""
        return any(isinstance(error, kinds()) for kinds in reversed(self.tries))

    def miss(self, site: Site) -> None:
        """Something was not known: where a library makes an object, that is the end of it."""
        if self.making and site.in_library and site.used:
            raise NotMade

    def fault(self, error: Exception) -> None:
        """A statement of a cell raised.  An autograd error was the user's and ended the cell."""
        self.stack.clear()
        self.loops.clear()
        self.tries.clear()
        if isinstance(error, CellEnded) or _is_autograd(error):
            raise CellEnded from None

    # -- unknown values and live ones ------------------------------------------------------------

    def unknown_call(
        self, site: Site, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of something the walk does not know; progress bars hand their items through."""
        name = name or called_name(site.node)
        self.miss(site)
        self.budget.spend(1)
        self.failure.arrive(site, (*args, *kwargs.values()), name)
        self._call_back(site, (*args, *kwargs.values()))
        if name in ("tqdm", "trange", "track", "progress_bar", "prepare") and args:
            return args[0] if name != "prepare" or len(args) == 1 else args
        return UNKNOWN

    def _call_back(self, site: Site, given: tuple[Any, ...]) -> None:
        """Enters the function that the library, which is not run, called on its way to fail."""
        frames = self.incident.user_frames
        live = entered_from(frames, site) if self.failure.in_failing_cell else None
        if live is None or self.failure.arrivals:
            return
        self.stack.append(site)
        try:
            self._call_as(live, given)
        except Exception as error:
            self.failed(site, error)
        finally:
            self.stack.pop()

    def enter(self) -> None:
        """Calls the function in which a library entered the program, where that is how it began."""
        frames = self.incident.user_frames
        try:
            if frames and is_call(frames[0]):
                self._call_as(frames[0], ())
        except Exception as error:
            with suppress(CellEnded):
                self.fault(error)

    def _call_as(self, live: LiveFrame, given: tuple[Any, ...]) -> None:
        """Calls the twin of a live frame's function as that was called."""
        names = self._names_of(live.frame.f_globals.get("__name__"))
        function = twin_behind(live, given, names)
        if function is None:
            return
        for arguments in calls_of(function, live, self.adopter.adopt):
            self.budget.spend(2)
            function(*arguments)

    def calls_back(self, site: Site) -> bool:
        """Whether the traceback shows the function of the user's that a library called here."""
        frames = self.incident.user_frames
        return self.failure.in_failing_cell and entered_from(frames, site) is not None

    def stays_out(
        self, site: Site, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Whether a library is not entered that the user calls: it does nothing with tensors."""
        given = (function, getattr(function, "__self__", None), *args, *kwargs.values())
        return not isinstance(function, type) and not works_on_tensors(given)

    def missing(self, owner: Any, key: Any) -> Any:
        """A key that is not there: of a list that a shortened loop filled, its last item."""
        if isinstance(owner, (list, tuple)) and owner and isinstance(key, int):
            return owner[-1]
        return UNKNOWN

    def counterpart(self, site: Site, kind: type) -> Any:
        """The live object of a class that the program made at a site and has there still."""
        found: Any = None
        target = site.target
        if isinstance(target, ast.Name) and not site.in_library:
            found = self._live_names(site).get(target.id)
        elif isinstance(target, ast.Attribute) and self.made:
            owner, _, name = site.target_text.rpartition(".")
            found = part_of(self.made[-1], name) if owner.isidentifier() else None
        same = found is not None and type(found).__name__ == kind.__name__
        return found if same and self.twin_of(type(found)) is kind else None

    def is_kept(self, site: Site) -> bool:
        """Whether the program still has what a statement of the user's gave a name."""
        name = site.target.id if isinstance(site.target, ast.Name) else None
        return not site.in_library and name in self._live_names(site)

    def _live_names(self, site: Site) -> Any:
        """What the program has under the names of a site."""
        if site.function is None:
            return self.incident.namespace
        frames = [f for f in self.incident.user_frames if f.function == site.function]
        return frames[-1].frame.f_locals if frames else {}

    def live_values(self, site: Site, shape: Any) -> Any:
        """Stand-ins for what the program has under a name, or under nested names."""
        if isinstance(shape, tuple):
            return tuple(self.live_values(site, s) for s in shape)
        if site.in_library:
            return UNKNOWN  # its frames are gone
        namespace = self._live_names(site)
        return self.adopter.adopt(namespace[shape]) if shape and shape in namespace else UNKNOWN

    def twin_of(self, live: Any) -> Any:
        """The twin of one of the user's functions or classes, by name, or of a library's, or what
        stands for its module; else UNKNOWN."""
        if is_a(live, types.ModuleType):
            return self.libraries.module(live.__name__) or UNKNOWN
        if is_a(live, types.FunctionType) and self.program.source_of(live.__code__) is None:
            return self.libraries.twin(live)  # a wrapper has the name of what it wraps
        name = getattr(live, "__qualname__", "")
        module = getattr(live, "__module__", self.name)
        scope = self._names_of(module)
        found: Any = scope.get(name.partition(".")[0], UNKNOWN)
        for part in name.split(".")[1:]:
            found = getattr(found, part, UNKNOWN)
        if is_twin_function(found) or (isinstance(found, type) and is_twin_class(found)):
            return found
        return self.libraries.twin(live)

    def _names_of(self, module: Any) -> dict[str, Any]:
        """What the twin of one of the user's modules holds, by its name."""
        return self.globals if module == self.name else vars(self.modules.get(module, _EMPTY))

    def stand_in(self, live: torch.Tensor) -> Any:
        """A tensor of the same shape, dtype and role with storage of its own, and of the same
        numbers where these are a few indices or flags: what they choose has a shape."""
        if type(live).__module__.partition(".")[0] != "torch" or live.layout is not torch.strided:
            return UNKNOWN
        if live.numel() > self.budget.limits.elements and not self.devices.big:
            raise TooBig
        self.invented += 1
        with torch.no_grad():
            found = torch.zeros(live.shape, dtype=live.dtype, device=self.devices.device)
            if live.is_floating_point():
                found.uniform_(0.1, 0.9)
            elif live.numel() <= _INDICES and live.device == found.device:
                found.copy_(live.detach())
        if isinstance(live, torch.nn.Parameter):
            found = torch.nn.Parameter(found, live.requires_grad)
        elif live.requires_grad:
            found.requires_grad_()
            if not live.is_leaf:
                with torch.enable_grad():
                    found = found.clone()  # a leaf could not be written to
        self.devices.mark(found, str(live.device))
        return found

    @property
    def made_up(self) -> bool:
        """Whether the stand-ins' numbers may be others than the program's."""
        seeds = {s.op for s in self.trace.steps if s.op in ("manual_seed", "seed")}
        chance = any(s.op in CHANCE for s in self.trace.steps)
        return (
            self.devices.big
            or self.twins.partial
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

    def base(self, base: Any, name: str, module: str) -> Any:
        """A base class of `name`; of unknown ones only whether they are modules is known."""
        if isinstance(base, type):
            if is_twin_class(base) or self.policy.allows(base):
                return base
        elif type(base) is not Unknown:
            return base
        own = module == self.name
        names = self.incident.namespace if own else vars(sys.modules.get(module, _EMPTY))
        live = names.get(name)
        is_module = isinstance(live, type) and issubclass(live, torch.nn.Module)
        return torch.nn.Module if is_module else object


class CellEnded(Exception):
    """The cell had raised here when it ran."""


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
