"""Errors that were raised in another process, or another thread of torch's: what reaches us is a
text with a traceback, in the message (DataLoader, `torch.multiprocessing.spawn`, DataParallel) or
beside it (`concurrent.futures`, `multiprocessing.Pool`, joblib, ipyparallel).
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, cast

from ..incident import Incident, LiveFrame
from ..isolation.type_checks import bases, message_of, raised_from, table_of
from ..model import Kind, Reason
from ..program import Program, Source
from ..settings import Options
from ..traceback_text import HEAD, TextFrame, ipython_frames_in, raised_in, without_colour
from .verification import Untried

#: How concurrent.futures, loky and multiprocessing.pool name what holds the other's traceback.
_HOLDERS = ("_RemoteTraceback", "RemoteTraceback")
_WHERE = re.compile(r"Caught \w+ in (.+)\.\n|-- Process (\d+) terminated")
_THREAD, _ENGINE = "replica ", "engine"
_ENGINES = "ipyparallel.error"
_LONGEST = 200_000  #: characters of a text that is looked at


@dataclass(frozen=True)
class Crossed:
    """What a text tells of an error: its message, its lines, and where it was raised."""

    message: str
    text: str
    lines: tuple[TextFrame, ...]
    where: str = ""

    @property
    def note(self) -> Reason:
        """That nothing live is left of it."""
        key = "crossed_thread" if self.where.startswith(_THREAD) else "crossed"
        return Reason(key, {"where": self.where})

    def frames(self, program: Program) -> tuple[LiveFrame, ...]:
        """Stand-ins for its frames, with the code that they ran where its text is known."""
        return tuple(_live(line, program) for line in self.lines)

    def likely(self, extra: tuple[str, ...]) -> tuple[str, ...]:
        """The causes that message and traceback speak for, the most probable first."""
        from ..search import likely_causes

        return likely_causes(self.text, extra)


def crossed(error: BaseException) -> Crossed | None:
    """The error behind one that another process has handed over; None for any other."""
    engines = _on_engines(error)
    if engines is not None:
        return engines
    message = message_of(error)
    holder = raised_from(error)
    if holder is not None and type(holder).__name__ in _HOLDERS:
        text = str(table_of(holder).get("tb", ""))[:_LONGEST]
        found = raised_in(text)
        return None if found is None else Crossed(message, text, found[0])
    if HEAD not in message:
        return None
    text = message[-_LONGEST:]
    found, where = raised_in(text), _WHERE.search(message)
    if found is None:
        return None
    named = "" if where is None else where[1] or f"process {where[2]}"
    return Crossed(found[2], text, found[0], named)


def _on_engines(error: BaseException) -> Crossed | None:
    """What ipyparallel's engines have raised: of several errors the first, with all who met it."""
    if not any(base.__module__ == _ENGINES for base in bases(type(error))):
        return None
    own = table_of(error)
    own = table_of(own.get("original_error", error))
    raised = own.get("elist") or [[own.get(n) for n in ("ename", "evalue", "traceback")] + [own]]
    if not all(isinstance(text, str) for text in raised[0][:3]):
        return None
    kind, message, shown, _ = raised[0]
    met = [_engine(entry[3]) for entry in raised if list(entry[:2]) == [kind, message]]
    where = ", ".join(name for name in met if name)
    text = without_colour(shown[-_LONGEST:])
    lines = ipython_frames_in(text.splitlines())
    named = f"{_ENGINE}{'s' if ',' in where else ''} {where}" if where else ""
    return Crossed(message, text, lines, named)


def _engine(info: Mapping[str, Any]) -> str:
    told = info.get("engine_info", info)
    number = told.get("engine_id") if isinstance(told, dict) else None
    return "" if number is None else str(number)


def incident_of(
    apart: Crossed,
    program: Program,
    names: Mapping[str, Any],
    frames: tuple[LiveFrame, ...],
    options: Options,
    cell: int | None = None,
) -> Incident:
    """The failure as far as its text tells; neither recording nor exception know of it."""
    likely = apart.likely(options.causes)
    return Incident(Kind.ERROR, apart.message, program, names, frames, cell=cell, likely=likely)


def asking(apart: Crossed, incident: Incident) -> dict[str, Any]:
    """What `explain_incident` is given besides: nothing is tried, and the report says why."""
    others = ", ".join(f"`{name}`" for name in incident.likely[1:])
    notes = [apart.note]
    if not apart.where.startswith((_THREAD, _ENGINE)):
        notes.append(Reason("called_here"))
    if others:
        notes.append(Reason("also_likely", {"causes": others}))
    return {"verifier": Untried("elsewhere"), "notes": tuple(notes)}


@dataclass
class _StandIn:
    """Of a frame that is gone: what code it ran and where."""

    f_code: CodeType
    f_lineno: int
    f_globals: Mapping[str, Any]
    f_locals: dict[str, Any] = field(default_factory=dict)
    f_lasti: int = -1
    f_back: None = None


def _live(line: TextFrame, program: Program) -> LiveFrame:
    source = program.present(line.file)
    code = None if source is None else _code_of(source, line)
    known = program.names if code is not None and source is not None and source.cell else {}
    stand_in = _StandIn(code or _named(line), line.line, known)
    lasti = -1 if code is None else _instruction(code, line, source)
    return LiveFrame(cast(types.FrameType, stand_in), line.line, lasti)


def _code_of(source: Source, line: TextFrame) -> CodeType | None:
    """The innermost code of that name which has the line, if the text still shows the same."""
    shown = source.python.split("\n")[line.line - 1 : line.line]
    if line.source and [text.strip() for text in shown] != [line.source]:
        return None
    try:
        whole = compile(source.python, source.filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    name = line.function.rpartition(".")[2]
    found = (code for code in _every(whole) if code.co_name == name)
    having = (code for code in found if any(line.line == at for *_, at in code.co_lines()))
    return next(iter(sorted(having, key=lambda code: -code.co_firstlineno)), None)


def _every(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _every(constant)


def _instruction(code: CodeType, line: TextFrame, source: Source | None) -> int:
    """That which the traceback marks; -1 where it marks none."""
    positions = getattr(code, "co_positions", None)  # Python 3.11 on
    if positions is None or source is None or line.columns is None:
        return -1
    text = source.python.split("\n")[line.line - 1]
    indent = len(text) - len(text.lstrip())
    marked = tuple(indent + column for column in line.columns)
    if not text.isascii():
        return -1  # Python counts bytes there
    fitting = [
        number
        for number, (first, last, start, end) in enumerate(positions())
        if first == last == line.line and (start, end) == marked
    ]
    return 2 * fitting[-1] if fitting else -1


def _named(line: TextFrame) -> CodeType:
    """Code that only has a name and a file."""
    return _blank.__code__.replace(
        co_filename=line.file, co_name=line.function, co_firstlineno=line.line
    )


def _blank() -> None: ...
