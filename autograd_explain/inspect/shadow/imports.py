"""What twin code gets from `import`, from unusual builtins, and as arguments of torch calls."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Mapping
from typing import Any

from ...isolation.type_checks import table_of
from ...program import Source
from ...set_aside import set_aside
from .libraries import LibraryModule
from .policy import may_read, module_names, private_copy
from .replacements import builtin_functions, outer_modules
from .shell import Shell
from .state import ShadowState
from .unknown import UNKNOWN, Unknown

_LONGEST = 3000  #: lines of a file that are walked through


class ShadowImports:
    """Modules as twin code sees them: pure libraries themselves, the user's files as twins."""

    def __init__(self, walk: ShadowState) -> None:
        self.walk = walk
        self._outer = walk.outer = outer_modules()
        self._builtins = {**builtin_functions(walk.tries), "get_ipython": Shell(walk).itself}

    def module(self, name: str, full: str) -> Any:
        """The module `name`; `full` is what the import statement loads."""
        if name in self._outer:
            return self._outer[name]
        if self.walk.policy.may_import(full):
            # The program has imported it already; loading more would be an effect of ours.
            loaded = full in sys.modules or full.rpartition(".")[0] in sys.modules
            return sys.modules.get(name, UNKNOWN) if loaded else UNKNOWN
        found = self._twin(name)
        return self.walk.libraries.module(name) or UNKNOWN if type(found) is Unknown else found

    def member(self, module: str, name: str, level: int, package: str) -> Any:
        """`from module import name`; `package` is where a relative import starts."""
        module = self._absolute(module, level, package)
        owner = self.module(module, module) if module else UNKNOWN
        if type(owner) is Unknown:
            return UNKNOWN
        if isinstance(owner, types.ModuleType) and hasattr(owner, name):
            return self.attribute(owner, name)
        return self.module(f"{module}.{name}", f"{module}.{name}")

    def _absolute(self, module: str, level: int, package: str) -> str:
        try:
            return importlib.util.resolve_name("." * level + module, package) if level else module
        except ImportError:
            return ""

    def everything(self, module: str, level: int, package: str) -> Mapping[str, Any]:
        """`from module import *`."""
        module = self._absolute(module, level, package)
        owner = self.module(module, module) if module else UNKNOWN
        return module_names(owner) if isinstance(owner, types.ModuleType) else {}

    def _twin(self, name: str) -> Any:
        """The twin of one of the user's own modules."""
        modules = self.walk.modules
        if name in modules:
            return modules[name]
        live = table_of(sys.modules.get(name))
        filename = live.get("__file__")
        source = self.walk.program.source(filename) if isinstance(filename, str) else None
        if source is None or self._is_long(source):
            return UNKNOWN
        twin = types.ModuleType(name)
        twin.__package__ = live.get("__package__")
        modules[name] = twin
        self.walk.execute(source, vars(twin))
        return twin

    def _is_long(self, source: Source) -> bool:
        with self.walk.budget.uncounted():
            aside = set_aside(self.walk.program, source)
        return len(source.lines) - sum(last - first for first, last in aside) > _LONGEST

    def _is_twin(self, module: types.ModuleType) -> bool:
        own = any(twin is module for twin in self.walk.modules.values())
        return own or isinstance(module, LibraryModule)

    def builtin(self, name: str) -> Any:
        """Builtins that twin code gets in a safe form."""
        return self._builtins.get(name)

    def attribute(self, module: types.ModuleType, name: str) -> Any:
        """`module.name`: parts of libraries that the walk may not touch are unknown."""
        if not may_read(module, name):
            return UNKNOWN
        try:
            found = getattr(module, name)
        except AttributeError:
            part = self._twin(f"{module.__name__}.{name}") if self._is_twin(module) else UNKNOWN
            if type(part) is Unknown and self.walk.catches(AttributeError(name)):
                raise
            return part
        if isinstance(found, types.ModuleType) and not self._is_twin(found):
            return found if self.walk.policy.may_import(found.__name__) else UNKNOWN
        return found if self._is_twin(module) else private_copy(module, found)
