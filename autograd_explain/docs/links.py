"""Whether every link of the site leads somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

_ABROAD = ("https://", "data:image/")


class _Page(HTMLParser):
    """The addresses and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value or "")
            elif name == "id":
                self.anchors.append(value or "")


def dead_links(root: Path) -> Iterator[str]:
    """Every address in the pages under `root` that leads nowhere, with the page it stands on."""
    pages = {path.resolve(): _Page(path.read_text("utf-8")) for path in root.rglob("*.html")}
    for path, page in sorted(pages.items()):
        name = path.relative_to(root.resolve()).as_posix()
        if len(set(page.anchors)) != len(page.anchors):
            yield f"{name}: an id stands twice"
        for link in page.links:
            if not link.startswith(_ABROAD) and not _leads_somewhere(link, path, pages):
                yield f"{name}: dead link {link!r}"


def _leads_somewhere(link: str, path: Path, pages: dict[Path, _Page]) -> bool:
    where, anchor = urldefrag(link)
    target = (path.parent / unquote(where)).resolve() if where else path
    if anchor:
        return target in pages and unquote(anchor) in pages[target].anchors
    return target.is_file()
