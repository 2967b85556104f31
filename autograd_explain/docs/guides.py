"""The guides: Markdown files beside the package, in the repository's `docs` folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..render.texts import parser

#: Of a checkout; an installed package has none.
FOLDER = Path(__file__).parents[2] / "docs"
_PICTURES = (".png", ".svg")
_LINK = re.compile(r'href="(?!https?:)([\w./-]+)\.md(#[\w-]+)?"')


@dataclass(frozen=True)
class Guide:
    """A guide as a page: its name in addresses, its title and its HTML."""

    name: str
    title: str
    html: str


def guides(folder: Path = FOLDER) -> Iterator[Guide]:
    """Every guide, by name."""
    for path in sorted(folder.glob("*.md")):
        source = path.read_text("utf-8")
        title = next((t[2:] for t in source.splitlines() if t.startswith("# ")), path.stem)
        html = _LINK.sub(r'href="\1.html\2"', parser().render(source))
        yield Guide(path.stem, title.strip(), html)


def pictures(folder: Path = FOLDER) -> Iterator[Path]:
    """What the guides may show, by its path below the folder."""
    found = sorted(folder.rglob("*"))
    return (path.relative_to(folder) for path in found if path.suffix in _PICTURES)
