"""Sites: the places of the user's source at which something can happen to a tensor."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...model import Place
from ...program import Source


@dataclass(frozen=True)
class LibrarySource(Source):
    """A file of an installed package: what happens in it is told at the user's call."""


@dataclass(eq=False)
class Site:
    """One expression or statement of the source that the walk passes through a hook.

    `node` is the expression, `shown` the node whose span is meant (the whole statement for an
    assignment that writes), `operands` the expressions read, `target` the expression that is
    made or written.  Nodes are used for their positions only.
    """

    index: int
    source: Source
    function: str | None
    node: ast.AST
    shown: ast.AST
    operands: tuple[ast.AST, ...] = ()
    target: ast.AST | None = None
    #: what an undecidable condition is taken for: the arm that leaves the block is not
    prefer: bool = True
    #: whether somebody reads what it gives
    used: bool = True
    _parts: dict[tuple[bool, bool], Site] = field(default_factory=dict, repr=False)

    @cached_property
    def in_library(self) -> bool:
        return isinstance(self.source, LibrarySource)

    @cached_property
    def line(self) -> int:
        """The line Python reports: of a method's name in a chain over several lines (3.12)."""
        func = getattr(self.node, "func", None)
        if isinstance(self.shown, ast.Call) and isinstance(func, ast.Attribute):
            return int(func.end_lineno or func.lineno)
        return int(getattr(self.shown, "lineno", 1))

    @cached_property
    def place(self) -> Place:
        return self.source.place(self.line, self.function, self.shown)

    @cached_property
    def position(self) -> tuple[str, int, int]:
        """File name, line and column of what is shown."""
        shown = self.shown
        return self.source.filename, getattr(shown, "lineno", 0), getattr(shown, "col_offset", 0)

    def covers(self, line: int) -> bool:
        """Whether a frame that stands at `line` may be executing this site."""
        first = getattr(self.shown, "lineno", 0)
        return bool(first <= line <= (getattr(self.shown, "end_lineno", None) or first))

    def text(self, node: ast.AST | None) -> str:
        """The user's source text of a node, on one line."""
        if node is None:
            return ""
        found = self.source.segment(node)
        return " ".join((found or "").split())

    @cached_property
    def target_text(self) -> str:
        return self.text(self.target)

    @cached_property
    def operand_texts(self) -> tuple[str, ...]:
        return tuple(self.text(o) for o in self.operands)

    @cached_property
    def of_item(self) -> Site:
        """This `state["pos"] += v`, where the tensor is the item and not a part of the base."""
        return replace(self, target=self.operands[0])

    def part(self, *, first: bool, last: bool) -> Site:
        """This call, for one of the operations that it runs in a row: the first is given the
        written operands, the last makes what is bound."""
        if first and last:
            return self
        if (first, last) not in self._parts:
            operands, target = self.operands if first else (), self.target if last else None
            self._parts[first, last] = replace(self, operands=operands, target=target, _parts={})
        return self._parts[first, last]

    @cached_property
    def from_inside(self) -> Site:
        """This call, for what the library does that it calls: no expression here names it."""
        return replace(self, operands=(), target=None, _parts={})

    def text_of_operand(self, at: int) -> str:
        """How the user wrote the operand with this number, "" where they cannot be counted."""
        spread = any(isinstance(o, ast.Starred) for o in self.operands)
        keywords = getattr(self.node, "keywords", ())
        if spread or any(k.arg is None for k in keywords) or at >= len(self.operands):
            return ""
        found = self.operands[at]
        # Only what names a tensor: a call or an operator makes one that has no name.
        return self.text(found) if _is_path(found) else ""


class Sites(dict[int, Site]):
    """Sites by number: those of libraries, which runs share, count down, a program's up."""

    def __init__(self, direction: int, shared: Sites | None = None) -> None:
        super().__init__()
        self._direction = direction
        self._last = 0
        self._shared = shared

    @property
    def free(self) -> int:
        """A number that no site has had."""
        self._last += self._direction
        return self._last

    def __missing__(self, number: int) -> Site:
        if self._shared is None:
            raise KeyError(number)
        return self.setdefault(number, self._shared[number])


def as_seen(stack: Sequence[Site], site: Site) -> tuple[tuple[Site, ...], Site | None]:
    """The user's calls that are open, outermost first, and the user's line that `site` belongs to:
    inside a library the call of that; None where nothing of the user's called."""
    calls = tuple(s for s in stack if not s.in_library)
    if not site.in_library:
        return calls, site
    return calls[:-1], calls[-1].from_inside if calls else None


def _is_path(node: ast.AST) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name)
