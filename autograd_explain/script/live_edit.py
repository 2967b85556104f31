"""A program that lives, changed as an edit of its files says: definitions are made anew where
nothing that is there was made with the old ones.

Only for a process that exists to try the edit: nothing is put back.
"""

from __future__ import annotations

import ast
import gc
import io
import linecache
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import decode_source
from types import CellType, FunctionType, ModuleType
from typing import Any

from ..program import is_library

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_HOLDERS = (dict, list, set, tuple, CellType)


class MadeBefore(Exception):
    """Something that lives was, or may have been, made by what the edit changes."""


def own_modules() -> tuple[ModuleType, ...]:
    """The program's own that are loaded.

    To be asked for before this process is forked: to look at every module there is writes to each.
    """
    found = [m for m in list(sys.modules.values()) if isinstance(m, ModuleType)]
    return tuple(module for module in found if _is_own(vars(module).get("__file__")))


@dataclass(frozen=True)
class LiveEdit:
    """`running` is what is going to run, the name of a function or of a class and its method.
    `values` tells whether there are values already that any of the program may have made,
    `modules` are its own."""

    running: Sequence[str]
    values: bool
    modules: Sequence[ModuleType]

    def apply(self, texts: Mapping[str, str]) -> None:
        """Give the program's modules these texts; raises MadeBefore."""
        for file, text in texts.items():
            found = [module for module in self.modules if module.__file__ == file]
            if not found:
                raise MadeBefore
            for module in found:
                _apply(self, module, file, text)


def _apply(edit: LiveEdit, module: ModuleType, file: str, text: str) -> None:
    modules, running = edit.modules, edit.running
    before, after = ast.parse(_read(file)), ast.parse(text)
    known = {ast.dump(statement) for statement in before.body}
    changed = [s for s in after.body if ast.dump(s) not in known]
    definitions = [s for s in changed if isinstance(s, _DEFINITIONS)]
    if not _only_redefines(before, after, changed):
        raise MadeBefore
    old = {s.name: module.__dict__.get(s.name) for s in definitions}
    for statement in definitions:
        if _outside(_of_name(before, statement.name)) != _outside(statement) or (
            _rest(_of_name(before, statement.name), running) != _rest(statement, running)
        ):
            used = edit.values or _used_while_imported(statement.name, modules)
            if used or _lives(statement.name, old, modules):
                raise MadeBefore
    future = [s for s in after.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    new = ast.Module([*future, *(s for s in changed if s not in future)], [])
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(new, file, "exec", dont_inherit=True), module.__dict__)
    _rebind({id(value): module.__dict__[name] for name, value in old.items()}, modules)


def _only_redefines(before: ast.Module, after: ast.Module, changed: Iterable[ast.stmt]) -> bool:
    """Whether nothing changes but definitions that were there, and imports that are added."""
    left = {ast.dump(statement) for statement in after.body}
    gone = [s for s in before.body if ast.dump(s) not in left]
    names = {s.name for s in changed if isinstance(s, _DEFINITIONS)}
    kept = all(isinstance(s, _DEFINITIONS) and s.name in names for s in gone)
    return kept and all(isinstance(s, (*_DEFINITIONS, *_IMPORTS)) for s in changed)


def _of_name(tree: ast.Module, name: str) -> _Definition | None:
    found = [s for s in tree.body if isinstance(s, _DEFINITIONS) and s.name == name]
    return found[-1] if found else None


def _outside(definition: _Definition | None) -> tuple[str, ...]:
    """What of a definition was evaluated when it was made."""
    if definition is None:
        return ()
    parts: list[ast.AST] = [*definition.decorator_list]
    if isinstance(definition, ast.ClassDef):
        parts += [*definition.bases, *definition.keywords]
    else:
        parts.append(definition.args)
    return tuple(map(ast.dump, parts))


def _rest(definition: _Definition | None, running: Sequence[str]) -> str | None:
    """A definition without the body of what is going to run."""
    if definition is None or definition.name != running[0]:
        return None if definition is None else ast.dump(definition)
    if isinstance(definition, _FUNCTIONS):
        return "" if len(running) == 1 else ast.dump(definition)
    return "\n".join(
        str(_outside(s)) if isinstance(s, _FUNCTIONS) and s.name == running[-1] else ast.dump(s)
        for s in definition.body
    )


def _used_while_imported(name: str, modules: Sequence[ModuleType]) -> bool:
    """Whether a module of the program used the name when it was imported: what came of that is not
    made anew."""
    for module in modules:
        text = _read(str(module.__file__))
        if name in text and any(
            isinstance(node, ast.Name) and node.id == name for node in _at_import(ast.parse(text))
        ):
            return True
    return False


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """What an import evaluates: everything but functions' bodies."""
    for child in ast.iter_child_nodes(tree):
        yield child
        if isinstance(child, _FUNCTIONS):
            for part in (*child.decorator_list, child.args):
                yield from ast.walk(part)
        elif not isinstance(child, ast.Lambda):
            yield from _at_import(child)


def _lives(name: str, definitions: Mapping[str, Any], modules: Sequence[ModuleType]) -> bool:
    """Whether something was made with a class, or holds a function besides the modules."""
    old = definitions[name]
    for error in ("last_type", "last_value", "last_traceback", "last_exc"):
        sys.__dict__.pop(error, None)  # frames of what failed before
    if not isinstance(old, (type, FunctionType)):
        return old is not None
    gc.unfreeze()  # what is frozen is not looked at
    try:
        # A collection writes to every object, so it comes only where something is to be collected:
        # this process has been forked, and copies each page that it writes to.
        if not _is_held(old, definitions, modules):
            return False
        gc.collect()
        return _is_held(old, definitions, modules)
    finally:
        gc.freeze()


def _is_held(old: Any, definitions: Mapping[str, Any], modules: Sequence[ModuleType]) -> bool:
    holders = gc.get_referrers(old)
    if isinstance(old, type):
        kept: list[type] = type(old).__subclasses__(old)
        return bool(kept) or any(type(holder) is old for holder in holders)
    tables = {id(definitions), *(id(vars(module)) for module in modules)}
    others = (holder for holder in holders if id(holder) not in tables)
    return any(isinstance(h, _HOLDERS) or hasattr(h, "__dict__") for h in others)


def _rebind(new: Mapping[int, Any], modules: Sequence[ModuleType]) -> None:
    """Modules that have imported a definition get the new one."""
    for module in modules:
        for name, value in list(vars(module).items()):
            if id(value) in new:
                vars(module)[name] = new[id(value)]


def _is_own(file: object) -> bool:
    return (
        isinstance(file, str)
        and os.path.isabs(file)
        and file.endswith(".py")
        and not is_library(file)
    )


def _read(file: str) -> str:
    with io.open_code(file) as opened:
        return decode_source(opened.read())
