"""What travels between the stages: frozen data, no tensor, no frame, no sentence.

Everything here pickles.  Language enters in `render` alone; a `Finding` therefore carries
*facts* (names, numbers, fragments of the user's code), never prose.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D")
    #: What a cause's diagnosis hands to its rewrites; a plain `Finding` hands over anything.
    D_co = TypeVar("D_co", covariant=True, default=object)
else:
    from typing import TypeVar

    D_co = TypeVar("D_co", covariant=True)  # `default` wants Python 3.13


_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")


def lines_of(source: str, keepends: bool = False) -> list[str]:
    """The lines of a source as Python counts them; `str.splitlines` ends one at a form feed or
    at a U+2028 inside a string as well."""
    found = _LINE.findall(source)
    return found if keepends else [line.rstrip("\r\n") for line in found]


class Kind(str, Enum):
    """How the user met the problem."""

    ERROR = "error"
    WARNING = "warning"
    SILENT = "silent"
    NOTE = "note"  #: silent, and the program may well mean it: no alarm


class ZeroBy(str, Enum):
    """What makes a gradient 0 by the graph; the texts have a variant for each."""

    OPERATION = ""  #: its derivative is 0
    DRAW = "partly"  #: so is a draw's, and the leaf gets the gradient of other terms
    SUM = "cancels"  #: it takes away what it adds
    DIFFERENCE = "taken"  #: it takes away a part of a sum


class Certainty(str, Enum):
    """Whether an event was seen while it happened or concluded afterwards."""

    OBSERVED = "observed"
    INFERRED = "inferred"


class Confidence(IntEnum):
    """How strongly a cause claims an incident; the highest claim wins."""

    GENERAL = 1  #: the message fits, nothing live confirms it
    LIKELY = 2  #: live objects or the source agree
    PROVEN = 3  #: the live objects leave no other reading


class Role(str, Enum):
    CULPRIT = "culprit"
    ROOT = "root"
    SAVED_BY = "saved_by"
    OTHER = "other"


class What(str, Enum):
    """What happened at an event's place."""

    CREATED = "created"
    SAVED = "saved"
    CHANGED = "changed"  #: the in-place write
    CAUSE = "cause"  #: the statement to change, for errors that are no in-place write
    DETACHED = "detached"
    FREED = "freed"
    FAILED = "failed"


class Relation(str, Enum):
    """What the tensor made at an event's line is to the tensor that the finding is about."""

    OPERAND = "operand"  #: what the operation that cut the graph read
    ALIAS = "alias"  #: shares its memory
    LEAF = "leaf"  #: the only leaf behind it
    NAMED = "named"  #: itself, where what a function returned got its name


class Safety(str, Enum):
    """What a rewrite may do to the user's results (compare rustc's applicability)."""

    SAME_GRADIENTS = "same_gradients"
    CHANGES_MEANING = "changes_meaning"
    SHOW_ONLY = "show_only"


class Outcome(str, Enum):
    """What running a rewrite showed."""

    VERIFIED = "verified"
    RUNS = "runs"
    FAILS = "fails"
    DIFFERS = "differs"
    NOT_TRIED = "not_tried"


#: Cell, file and line.
LineId: TypeAlias = tuple[int | None, str | None, int]


@dataclass(frozen=True)
class Span:
    """A range of source: lines from 1, columns from 0 in characters, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def holds(self, inner: Span) -> bool:
        """Whether a range is part of it."""
        starts = (self.line, self.column) <= (inner.line, inner.column)
        return starts and (inner.end_line, inner.end_column) <= (self.end_line, self.end_column)

    def until(self, inner: Span) -> Span:
        """What comes before a range that is part of it."""
        return Span(self.line, self.column, inner.line, inner.column)

    def since(self, inner: Span) -> Span:
        """What comes behind a range that is part of it."""
        return Span(inner.end_line, inner.end_column, self.end_line, self.end_column)

    @property
    def start(self) -> Span:
        """The empty range before it, where text can be put in."""
        return Span(self.line, self.column, self.line, self.column)

    @property
    def end(self) -> Span:
        """The empty range behind it."""
        return Span(self.end_line, self.end_column, self.end_line, self.end_column)


@dataclass(frozen=True)
class Place:
    """A line of the user's own code: a cell `In[cell]` or a file.

    `line` counts from 1 in the text as the user typed it, a `%%magic` first line included.
    `span` is the expression or statement meant, where known; `source` is that line without its
    indentation, of `indent` characters, and of several statements side by side the one meant, of
    which `indent` is the column.  `changed` says that the file is not as it was when this
    line ran: then there is no text to show.
    """

    cell: int | None
    file: str | None
    line: int
    source: str
    function: str | None = None
    span: Span | None = None
    indent: int = field(default=0, compare=False)
    changed: bool = field(default=False, compare=False)

    @property
    def line_id(self) -> LineId:
        """What all places of one line have in common."""
        return self.cell, self.file, self.line

    @property
    def function_id(self) -> tuple[int | None, str | None, str | None]:
        """What all places of one function, or of the top level of one text, have in common."""
        return self.cell, self.file, self.function

    def to_dict(self) -> dict[str, object]:
        return {
            "cell": self.cell,
            "file": self.file,
            "line": self.line,
            "source": self.source,
            "function": self.function,
            "span": None if self.span is None else asdict(self.span),
            "changed": self.changed,
        }


def label(place: Place | None) -> str:
    """A place in few characters, the same in every language: `In[3]:9`, `train.py:12`, and
    `train.py` where the file is not as it was when it was loaded."""
    if place is None:
        return "?"
    if place.cell is not None:
        return f"In[{place.cell}]:{place.line}"
    file = (place.file or "?").rsplit("/", 1)[-1]
    return file if place.changed else f"{file}:{place.line}"


def line_facts(**places: Place | None) -> dict[str, str]:
    """For each name the line as the user wrote it, "" if unknown, and its label: `<name>_place`."""
    lines = {name: "" if place is None else place.source for name, place in places.items()}
    return {**lines, **{f"{name}_place": label(place) for name, place in places.items()}}


@dataclass(frozen=True)
class TensorFact:
    """A tensor as it was when the report was made; `names` best first."""

    role: Role
    names: tuple[str, ...]
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    is_leaf: bool | None = None
    requires_grad: bool | None = None
    grad_fn: str | None = None
    saved_version: int | None = None
    current_version: int | None = None

    def to_dict(self) -> dict[str, object]:
        return {
            "role": self.role.value,
            "names": list(self.names),
            "shape": None if self.shape is None else list(self.shape),
            "dtype": self.dtype,
            "device": self.device,
            "is_leaf": self.is_leaf,
            "requires_grad": self.requires_grad,
            "grad_fn": self.grad_fn,
            "saved_version": self.saved_version,
            "current_version": self.current_version,
        }


@dataclass(frozen=True)
class Event:
    """Something that happened at one of the user's lines.

    `op` is an operation of torch by its name there ("add_", "AddmmBackward0", "step"), None where
    none is known.  `version` is the version counter after the event.  `chain` holds the user's
    outer lines (outermost first) that led to `place`.  `relation` tells what was made there from
    the finding's tensor itself.  `inside` is the line of a library that the user's line led to.
    """

    what: What
    place: Place | None
    op: str | None = None
    version: int | None = None
    certainty: Certainty = Certainty.INFERRED
    chain: tuple[Place, ...] = ()
    relation: Relation | None = None
    inside: Place | None = None

    def to_dict(self) -> dict[str, object]:
        inside = {} if self.inside is None else {"inside": self.inside.to_dict()}
        chain = {"chain": [place.to_dict() for place in self.chain]} if self.chain else {}
        return {
            **inside,
            **chain,
            "what": self.what.value,
            "place": None if self.place is None else self.place.to_dict(),
            "op": self.op,
            "version": self.version,
            "certainty": self.certainty.value,
            "relation": None if self.relation is None else self.relation.value,
        }


@dataclass(frozen=True)
class Edit:
    """A whole new text for one cell or one of the user's own files."""

    cell: int | None
    file: str | None
    old_source: str
    new_source: str

    @property
    def diff(self) -> str:
        """Unified diff, three lines of context."""
        name = self.file or f"In[{self.cell}]"
        lines = difflib.unified_diff(
            lines_of(self.old_source), lines_of(self.new_source), name, name, lineterm=""
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        return {
            "cell": self.cell,
            "file": self.file,
            "old_source": self.old_source,
            "new_source": self.new_source,
            "diff": self.diff,
        }


#: The edits of one change of the program: all are applied, or none.
Edits: TypeAlias = tuple[Edit, ...]


@dataclass(frozen=True)
class Comparison:
    """How far a rewrite's run agrees with the reference: `worst` is the largest relative error."""

    compared: tuple[str, ...] = ()
    worst: float = 0.0
    differing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reason:
    """Why an outcome is what it is: a key of `render/labels.py` and the values it takes."""

    key: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rewrite:
    """A proposed change of the user's program: its edits are all or none.

    `fix` names the section `## fix <fix>` of the cause's text, which holds title and reason.
    """

    fix: str
    edits: tuple[Edit, ...]
    safety: Safety
    facts: Mapping[str, str] = field(default_factory=dict)
    outcome: Outcome = Outcome.NOT_TRIED
    reason: Reason = Reason("not_checked")
    comparison: Comparison | None = None


@dataclass(frozen=True)
class Finding(Generic[D_co]):
    """A diagnosis: which cause, how sure, and what the live objects and the source show.

    `facts` fill the `{placeholders}` of the cause's texts.  `variant` chooses the sections
    `## summary <variant>` and `## cause <variant>` where the cause has them.  `details` is a
    frozen dataclass of the cause's own, for its rewrites alone.  `awaited` are names of tensors
    that never got a gradient, or, where it `awaits_steps`, that no optimizer changes by one: a
    rewrite that leaves them so repairs nothing.  `freed` are the lines whose saved values an
    earlier backward has freed, and whether it has those of every run.
    """

    cause: str
    confidence: Confidence
    facts: Mapping[str, str]
    tensors: tuple[TensorFact, ...] = ()
    events: tuple[Event, ...] = ()
    variant: str = ""
    awaited: tuple[str, ...] = ()
    awaits_steps: bool = False
    freed: Mapping[LineId, bool] = field(default_factory=dict)
    details: D_co = cast(Any, None)  # noqa: RUF009 -- a cast makes nothing

    def with_details(self, details: D) -> Finding[D]:
        """The same finding, handing this to the rewrites."""
        return cast("Finding[D]", replace(self, details=cast(Any, details)))

    def place(self, what: What) -> Place | None:
        """The place of the first event of this sort."""
        event = self.event(what)
        return None if event is None else event.place

    def places(self, what: What) -> list[Place]:
        """Those of all events of this sort."""
        return [e.place for e in self.events if e.what is what and e.place is not None]

    def event(self, what: What) -> Event | None:
        """The first event of this sort, which is the guilty one, or None."""
        return next((e for e in self.events if e.what is what), None)

    def tensor(self, role: Role) -> TensorFact | None:
        return next((t for t in self.tensors if t.role is role), None)


@dataclass(frozen=True)
class GraphLine:
    """A line of the user's program in the drawn part of the graph.

    `inputs` are the positions of the lines that it computes from, all of them before its own;
    `leaves` the names of the leaves that it reads; `count` how often the gradient passes.
    `freed`: an earlier backward has freed what "all" of its runs, or the "first" ones, had saved.
    Without a place it stands for `count` lines that are left out.
    """

    place: Place | None
    inputs: tuple[int, ...] = ()
    leaves: tuple[str, ...] = ()
    count: int = 1
    certainty: Certainty = Certainty.INFERRED
    freed: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What the pipeline hands to `render`: a finding with its rewrites, best first.

    `notes` are label keys with values for remarks that are not part of the cause, for example
    that the next run of the cell is going to be recorded.  `outside`: the program is no notebook,
    so that magics are of no use to its author.  `graph` are the lines from the culprit to the loss
    in the order of time, where they are known.  `rank` is that of the process in a distributed job.
    `signal` is what the recorder saw, by name, where nothing was raised.
    """

    kind: Kind
    message: str
    finding: Finding
    rewrites: tuple[Rewrite, ...] = ()
    notes: tuple[Reason, ...] = ()
    outside: bool = False
    graph: tuple[GraphLine, ...] = ()
    rank: int | None = None
    signal: str = ""
