"""A script or a module, found and run as Python itself would run it."""

from __future__ import annotations

import importlib.util
import io
import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType

from ..program import Program, Source


class NoTarget(Exception):
    """There is nothing of that name to run; the text says why."""


@dataclass(frozen=True)
class Target:
    """What `python FILE` or `python -m MODULE` would run: its file, its code, its module's spec."""

    file: str
    code: CodeType
    spec: ModuleSpec | None = None
    module: str = ""

    def program(self, main: ModuleType) -> Program:
        """The program that it is, with the names of the module in which it runs."""
        with io.open_code(self.file) as file:
            text = importlib.util.decode_source(file.read())
        return Program([Source(None, self.file, text, text, self.file)], main.__dict__)

    def as_main(self, arguments: Sequence[str]) -> ModuleType:
        """Make the module `__main__`, and the arguments and the path what the program expects."""
        main = ModuleType("__main__")
        main.__dict__.update(__file__=self.file, __builtins__=__builtins__, __spec__=self.spec)
        if self.spec is None:
            main.__dict__["__loader__"] = SourceFileLoader("__main__", self.file)
        else:
            main.__dict__.update(__loader__=self.spec.loader, __package__=self.spec.parent)
        sys.modules["__main__"] = main
        sys.argv[:] = [self.file, *arguments]
        here = os.getcwd() if self.spec else os.path.dirname(os.path.realpath(self.file))
        if not getattr(sys.flags, "safe_path", False):  # Python 3.11 on
            sys.path[0] = here
        return main

    def execute(self, main: ModuleType) -> None:
        """Run it as the module that `as_main` made.

        A module runs by way of Python's own `runpy`, whose frames are part of its tracebacks.
        """
        if self.spec is None:
            exec(self.code, main.__dict__)
        else:
            runpy._run_module_as_main(self.module)  # type: ignore[attr-defined]


def script(path: str) -> Target:
    """The script in a file; raises NoTarget, and SyntaxError where it does not compile."""
    file = os.path.abspath(path)
    try:
        with io.open_code(file) as opened:
            return Target(file, compile(opened.read(), file, "exec", dont_inherit=True))
    except OSError as error:
        raise NoTarget(f"can't open file {file!r}: {error.strerror}") from None


def module(name: str) -> Target:
    """The module, or a package's `__main__`; raises NoTarget, and what importing parents raises."""
    sys.path[0] = os.getcwd()
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    code = None
    if spec is not None and isinstance(spec.loader, SourceFileLoader):
        code = spec.loader.get_code(spec.name)
    if spec is None or code is None or spec.origin is None:
        raise NoTarget(f"no module named {name} with a source")
    return Target(spec.origin, code, spec, name)
