"""`check`: everything wrong with knowledge folders, one's own included."""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ..knowledge.entry import one_line
from ..match import rows
from ..render.lint import problems
from ..render.texts import LANGUAGES, accept
from ..search.causes import UNKNOWN, Cause, causes
from ..search.words import say
from .exit import Exit

#: What the recorder reports without a message (its modules import torch, so they are not asked).
SIGNALS = frozenset(
    {
        *("silent-overwrite", "graph-cut", "gradients-thrown-away", "gradients-not-cleared"),
        *("optimizer-misses-parameters", "plain-list-of-layers", "nonfinite-gradient"),
        *(
            "partial-cut",
            "cancelled-difference",
            "zero-gradient",
            "gradient-ignored",
            "gradient-overwritten",
        ),
        *(
            "stale-value",
            "gradients-changed-too-late",
            "gradients-changed-too-early",
            "kept-output-overwritten",
        ),
        *("frozen-while-stepped", "gradient-stopped", "last-round-only", "hook-registered-again"),
    }
)
#: What the modules of a folder are for.
_FUNCTIONS = {"diagnose": "diagnose", "rewrite": "propose", "table": "rows"}
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


def run(options: argparse.Namespace) -> int:
    from . import language_for

    language = language_for(options)
    folders = list(_folders(options))
    if options.accept:
        return _accept(folders, options.accept, language)
    found = {str(folder): list(_problems(folder)) for folder in folders}
    wrong = {folder: list_ for folder, list_ in found.items() if list_}
    if options.json:
        print(json.dumps(wrong, ensure_ascii=False, indent=2))
    elif wrong:
        for folder, list_ in wrong.items():
            for problem in list_:
                print(f"{folder}: {problem}")
    else:
        print(say("check_clean", language, count=len(folders)))
    return Exit.NOTHING if wrong else Exit.FOUND


def _folders(options: argparse.Namespace) -> Iterator[Path]:
    """The folders of causes that were named, or all known ones."""
    known = {cause.name: cause.folder for cause in causes(tuple(options.causes)).values()}
    if not options.folders:
        yield from known.values()
    for named in options.folders:
        folder = named if named.is_dir() else known.get(str(named), named)
        if not folder.is_dir():
            raise NotADirectoryError(20, "neither a folder nor a known cause", str(folder))
        if (folder / "en.md").exists():
            yield folder
            continue
        inner = [f for f in sorted(folder.iterdir()) if (f / "en.md").exists()]
        if not inner:
            raise FileNotFoundError(
                2, "neither has an en.md nor holds folders that do", str(folder)
            )
        yield from inner


def _problems(folder: Path) -> Iterator[str]:
    cause = Cause(folder.name, folder)
    yield from _modules(folder)
    try:
        yield from problems(folder, cause.example)
    except Exception as error:  # front matter that is no YAML, say
        yield f"the texts cannot be read: {one_line(error)}"
    if folder.name != UNKNOWN:
        yield from _messages(cause)


def _modules(folder: Path) -> Iterator[str]:
    """Modules that Python would not take, or that lack what they are for."""
    if not _NAME.match(folder.name):
        yield "the folder's name is not lower case letters, digits and underscores"
    for stem, function in _FUNCTIONS.items():
        path = folder / f"{stem}.py"
        if not path.exists():
            continue
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, ValueError) as error:
            yield f"{path.name}: {one_line(error)}"
            continue
        defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        imported = {
            a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names
        }
        assigned = {  # `propose: Propose[Details] = by_table(…)`
            ast.unparse(target)
            for n in tree.body
            if isinstance(n, (ast.Assign, ast.AnnAssign))
            for target in (n.targets if isinstance(n, ast.Assign) else [n.target])
        }
        if function not in defined | imported | assigned:
            yield f"{path.name}: has no function {function!r}"


def _messages(cause: Cause) -> Iterator[str]:
    """A pattern that is neither a known message nor the folder's own is a slip of the pen.

    Signals of the recorder are known by name.
    """
    for pattern in cause.patterns:
        if pattern not in rows() and pattern not in cause.messages and pattern not in SIGNALS:
            yield f"diagnose.py: PATTERNS names {pattern!r}, which is no known message"


def _accept(folders: list[Path], translation: str, language: str) -> int:
    assert translation in LANGUAGES
    for folder in folders:
        path = folder / f"{translation}.md"
        if not path.exists():
            print(f"{path}: no such file", file=sys.stderr)
            return Exit.USAGE
        if accept(folder, translation):
            print(say("accepted", language, path=path))
    return Exit.FOUND
