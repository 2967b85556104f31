"""What twin code gets from `import`, from unusual builtins, and as arguments of torch calls."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from .values import UNKNOWN, Unknown

if TYPE_CHECKING:
    from .walk import Walk


class Imports:
    """Modules as twin code sees them: pure libraries themselves, the user's files as twins."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.twins: dict[types.ModuleType, None] = {}
        self._by_name: dict[str, Any] = {}

    def module(self, name: str, full: str) -> Any:
        """The module `name`; `full` is what the import statement loads."""
        if self.walk.policy.may_import(full):
            try:
                importlib.import_module(full)  # the program has imported it already
                return sys.modules[name]
            except Exception:
                return UNKNOWN
        return self._twin(name)

    def member(self, module: str, name: str, level: int) -> Any:
        owner = self.module(module, module) if not level else UNKNOWN
        if type(owner) is Unknown:
            return UNKNOWN
        try:
            return getattr(owner, name)
        except AttributeError:
            return self.module(f"{module}.{name}", f"{module}.{name}")

    def everything(self, module: str, level: int) -> Mapping[str, Any]:
        from .policy import module_names

        owner = self.module(module, module) if not level else UNKNOWN
        return {} if type(owner) is Unknown else module_names(owner)

    def names(self, module: str) -> dict[str, Any]:
        found = self._by_name.get(module)
        return vars(found) if isinstance(found, types.ModuleType) else {}

    def _twin(self, name: str) -> Any:
        """The twin of one of the user's own modules."""
        if name in self._by_name:
            return self._by_name[name]
        live = sys.modules.get(name)
        filename = getattr(live, "__file__", None)
        source = self.walk.program.source(filename) if filename else None
        if source is None or len(source.lines) > 3000:
            return UNKNOWN
        twin = types.ModuleType(name)
        self._by_name[name] = twin
        self.twins[twin] = None
        self.walk.file(source, vars(twin))
        return twin

    def builtin(self, name: str) -> Any:
        from .standins import builtin_functions

        return builtin_functions().get(name)

    def arguments(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments as torch takes them: unknown numbers guessed, everything on this device."""
        if any(type(a) is Unknown for a in args):
            args = tuple(1 if type(a) is Unknown else a for a in args)
        if kwargs:
            kwargs = {k: v for k, v in kwargs.items() if type(v) is not Unknown}
            if "device" in kwargs:
                kwargs["device"] = torch.device("cpu")
            if kwargs.get("pin_memory"):
                kwargs.pop("pin_memory")
        if any(isinstance(a, torch.device) for a in args):
            args = tuple(torch.device("cpu") if isinstance(a, torch.device) else a for a in args)
        return args, kwargs
