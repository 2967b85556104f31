"""The walk: the cells' twins executed in order on stand-ins, up to the failing line.

Nothing of the user's runs or changes.  The walk has a namespace, modules and tensors of its own,
keeps torch's global state (grad mode, generators, defaults) as it found it, and is bounded in
steps and in time.  Where it ends, the stand-ins' own autograd graph, aliases and version
counters tell what the program's tell, with the statement known for each.
"""

from __future__ import annotations

from typing import Any

import torch

from ...incident import Incident
from ...program import Program, Source
from ...program_index import index_of
from .budget import OutOfBudget, RunEnded, RunLimits, TooBig
from .control_flow import BranchChoices, Flow
from .imports import ShadowImports
from .instrument import TWIN, Twins
from .interpreter import Hooks
from .isolation import undisturbed
from .operations import Operations
from .policy import is_patched, safe_builtins
from .state import ShadowState
from .unknown import UNKNOWN


class ShadowRun(ShadowState):
    """One walk over a program: `run` it once, then read `trace`, `failure` and `globals`.

    `arms` says how some branches go; `big` takes stand-ins without numbers; `libraries` whether
    installed packages are followed.
    """

    def __init__(
        self,
        program: Program,
        incident: Incident,
        twins: Twins,
        *,
        limits: RunLimits | None = None,
        arms: BranchChoices | None = None,
        big: bool = False,
        libraries: bool = True,
    ) -> None:
        super().__init__(program, incident, twins, limits, big)
        self.libraries.follow = libraries
        imports = ShadowImports(self)
        hooks = Hooks(self, Flow(self, arms or {}), Operations(self), imports)
        self.replaced = imports.builtin
        self.builtins = _Builtins(self, imports, {**safe_builtins(), **hooks.table()})
        self.globals["__builtins__"] = self.builtins

    # -- running ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Walks the cells up to the failing one; raises nothing but TooBig."""
        if self.incident.patched or is_patched(torch.Tensor):
            return  # every operation might be the user's code
        try:
            with undisturbed(), self.devices.context():
                cells = self._cells()
                self._walk_history([c for c in cells if c.cell != self.incident.cell])
                self.budget.open()
                self.failure.in_failing_cell = True
                for source in cells:
                    if source.cell == self.incident.cell:
                        self.execute(source, self.globals)
                if not self.failure.arrivals:
                    self.enter()
        except TooBig:
            raise
        except (RunEnded, RecursionError, SystemExit, GeneratorExit):
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
        cells = list(index_of(self.program).runs)
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


class _Builtins(dict[str, Any]):
    """Twin code's builtins: a name that is nowhere else is looked for in the live namespace."""

    def __init__(self, walk: ShadowState, imports: ShadowImports, names: dict[str, Any]) -> None:
        super().__init__(names)
        self._walk = walk
        self._imports = imports

    def __missing__(self, name: str) -> Any:
        special = self._imports.builtin(name)
        if special is not None:
            return special
        namespace = self._walk.incident.namespace
        return self._walk.adopter.adopt(namespace[name]) if name in namespace else UNKNOWN


def _raised_by_twin(error: BaseException) -> bool:
    """Whether twin code stood innermost: `raise KeyboardInterrupt`, as the program may say."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(TWIN)
