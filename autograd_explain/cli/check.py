"""`check`: everything wrong with knowledge folders, one's own included."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from ..match import rows
from ..render.lint import problems
from ..render.texts import LANGUAGES, accept
from ..search.causes import UNKNOWN, Cause, causes
from ..search.words import say
from .exit import Exit


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
    if not options.folders:
        yield from (cause.folder for cause in causes(tuple(options.causes)).values())
    for folder in options.folders:
        if not folder.is_dir():
            raise NotADirectoryError(20, "not a folder", str(folder))
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
    yield from problems(folder, cause.example)
    if folder.name != UNKNOWN:
        yield from _messages(cause)


def _messages(cause: Cause) -> Iterator[str]:
    """A pattern that is neither a known message nor the folder's own is a slip of the pen.

    Signals of the recorder are told from messages by their underscores.
    """
    for pattern in cause.patterns:
        if pattern not in rows() and pattern not in cause.messages and "-" in pattern:
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
