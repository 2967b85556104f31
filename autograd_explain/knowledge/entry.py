"""What a folder of the knowledge base holds, and how the folders are found.

    knowledge/<cause>/
      diagnose.py   PATTERNS, EXAMPLE, Details, diagnose(scene) -> Finding[Details] | None
      rewrite.py    propose(finding, program) -> Iterator[Proposal]      (optional)
      en.md ja.md zh.md
      case.py fixed.py          (notebooks, cells split by `# %%`)
      *.py          helpers of its own, imported as `from .helper import …`
      table.py      rows() -> Iterable[Mapping[str, str]]                (optional)

A folder without diagnose.py is a topic: it explains no message.  A table in the text's background
whose columns are computed is written with one row of `{placeholders}`; it is shown once for each
mapping of `rows()`, which runs torch.  The values `yes` and `no` become the reader's words.

A section that tells what the program did (once, never, no longer …) names in the front matter of
en.md, under `needs`, the facts that prove it: where one of them is "" the section is not shown.

There is no list of causes to edit.  Teams add folders through `AutogradExplain.causes` (a path)
or the entry point group `autograd_explain.causes` (a package whose folders are causes).  What
cannot be used is left out and told in one line.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from ..inspect.scene import Scene
    from ..model import Finding
    from ..program import Program
from autograd_explain.rewrite import Proposal

BUILT_IN = Path(__file__).parent
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


@dataclass(frozen=True)
class Entry:
    """One cause: a folder.  Its modules are imported when first needed."""

    name: str
    folder: Path

    @property
    def built_in(self) -> bool:
        return self.folder.parent == BUILT_IN

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """Ids of the messages (or recorder signals) this cause may explain; () for topics."""
        return tuple(getattr(self._diagnose_module, "PATTERNS", ()))

    @cached_property
    def messages(self) -> Mapping[str, str]:
        """Message templates that the folder brings itself: id -> text with `{}`."""
        return dict(getattr(self._diagnose_module, "MESSAGES", {}))

    @cached_property
    def example(self) -> Mapping[str, str]:
        """The facts of its own case, for showing the texts without a live program."""
        return dict(getattr(self._diagnose_module, "EXAMPLE", {}))

    @property
    def diagnose(self) -> Callable[[Scene], Finding | None] | None:
        return getattr(self._diagnose_module, "diagnose", None)

    @property
    def propose(self) -> Callable[[Finding, Program], Iterator[Proposal]] | None:
        module = self._module("rewrite")
        return None if module is None else getattr(module, "propose", None)

    @cached_property
    def rows(self) -> tuple[Mapping[str, str], ...]:
        """The rows of the texts' table, computed by `table.py`; () where there is none."""
        module = self._module("table")
        return () if module is None else tuple(dict(row) for row in module.rows())

    def text_path(self, language: str) -> Path:
        return self.folder / f"{language}.md"

    @cached_property
    def _diagnose_module(self) -> ModuleType | None:
        return self._module("diagnose")

    def _module(self, stem: str) -> ModuleType | None:
        if not (self.folder / f"{stem}.py").exists():
            return None
        return importlib.import_module(f"{self._package}.{stem}")

    @property
    def _package(self) -> str:
        """The package that the folder's modules belong to: they can import each other."""
        if self.built_in:
            return f"{__package__}.{self.name}"
        # The folder is in the name: two folders may hold causes of one name, one after the other.
        around = f"_autograd_explain_causes_{crc32(str(self.folder).encode()):x}"
        _package_at(around, self.folder.parent)
        _package_at(f"{around}.{self.name}", self.folder)
        return f"{around}.{self.name}"


def _package_at(name: str, folder: Path) -> None:
    """A package without code of its own whose modules lie in `folder`."""
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


def entries(extra: tuple[str, ...] = ()) -> Mapping[str, Entry]:
    """All causes by name: built in, from installed packages, and from the folders `extra`.

    A cause of one's own replaces a built-in one of the same name.
    """
    return _found(extra)[0]


def unusable(extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What was named as a source of causes and is none: a line each, with the reason."""
    return _found(extra)[1]


@cache
def _found(extra: tuple[str, ...]) -> tuple[Mapping[str, Entry], tuple[str, ...]]:
    found = {folder.name: Entry(folder.name, folder) for folder in cause_folders(BUILT_IN)}
    trouble: list[str] = []
    for root in (*_package_folders(trouble), *map(Path, extra)):
        try:
            folders = cause_folders(root)
        except OSError as error:
            trouble.append(f"{root}: {error.strerror}")
            continue
        if not folders:
            trouble.append(f"{root}: neither has an en.md nor holds folders that do")
        found.update({folder.name: Entry(folder.name, folder) for folder in folders})
    return found, tuple(trouble)


def cause_folders(root: Path) -> list[Path]:
    """The folders of causes in `root`, or `root` itself where it is one."""
    inside = [root] if (root / "en.md").exists() else sorted(root.iterdir())
    return [f for f in inside if _NAME.match(f.name) and (f / "en.md").exists()]


def _package_folders(trouble: list[str]) -> Iterator[Path]:
    for point in metadata.entry_points(group="autograd_explain.causes"):
        try:
            loaded = point.load()
            package = getattr(loaded, "__path__", None)
            yield Path(next(iter(package)) if package else str(loaded))
        except Exception as error:  # a package of somebody's: anything may happen
            trouble.append(f"entry point {point.name} ({point.value}): {one_line(error)}")


def one_line(error: BaseException) -> str:
    """An exception as one line of text."""
    return " ".join(f"{type(error).__name__}: {error}".split())
