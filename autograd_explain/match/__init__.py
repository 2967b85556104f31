"""Torch's autograd messages as named patterns: which message a text holds, and what it tells.

A pattern's id is that of messages.json.  Older wordings (since torch 0.1) belong to the same id.
Nothing here imports torch.  A text without an autograd message costs microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .context import fits
from .table import MessageIndex, built_in, rows, with_extra
from .wording import Hit, Owner

__all__ = ["Match", "find_messages", "match_message", "rows"]

_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "‑": "-", "‐": "-", "\xa0": " "})


@dataclass(frozen=True)
class Match:
    """A message that was recognised.

    `pattern` is its id, `captures` the values it holds (`type`, `shape`, `op`, `version` …),
    `message` the recognised part of the text, `torch` the releases that used this wording ("" for
    the current one).  `siblings` are ids whose message reads the same: only the live objects can
    tell them apart.
    """

    pattern: str
    captures: Mapping[str, str]
    message: str
    family: str
    likelihood: str
    torch: str = ""
    siblings: tuple[str, ...] = ()
    span: tuple[int, int] = field(default=(0, 0), compare=False)


def match_message(
    text: str, extra: Mapping[str, str] = {}, *, source: str = "", running: str = ""
) -> Match | None:
    """The autograd message in `text`, or None for anything else.

    `text` may be the bare message, its beginning, or a whole pasted traceback.  `extra` maps ids
    to templates with `{}` that are known besides the built-in ones.  `source` is the program line
    that failed, where known: a few messages are autograd's only if that line reads so.  `running`
    is "backward" for an error that a custom Function's backward raised.
    """
    index = with_extra(tuple(extra.items())) if extra else built_in()
    if not text.isascii():
        text = text.translate(_PLAIN)
    found = _candidates(text, index, source, running)
    return _match(text, *_best(found)) if found else None


def find_messages(text: str, extra: Mapping[str, str] = {}, *, source: str = "") -> list[Match]:
    """Every autograd message in `text`, in order; of one that stands there twice the first.

    `source` are program lines known besides those that `text` itself shows.
    """
    index = with_extra(tuple(extra.items())) if extra else built_in()
    if not text.isascii():
        text = text.translate(_PLAIN)
    left = _candidates(text, index, source)
    found = []
    while left:
        hit, owners = _reading(left, min(left, key=lambda c: (c[0].start, -c[0].literals))[0])
        found.append(_match(text, hit, owners))
        left = [c for c in left if c[0].start >= hit.end]
    return found


Candidate = tuple[Hit, tuple[Owner, ...]]


def _candidates(text: str, index: MessageIndex, source: str, running: str = "") -> list[Candidate]:
    flat = " ".join(text.split())
    found = []
    for wording in index.candidates(flat):
        hit = wording.find(text)
        if hit is None:
            continue
        owners = tuple(o for o in wording.owners if fits(o.id, hit, text, source, running))
        if owners:
            found.append((hit, owners))
    return found


def _best(found: list[Candidate]) -> tuple[Hit, tuple[Owner, ...]]:
    """Of several messages in a text the last error."""
    outer = [c for c in found if not any(_covers(other[0], c[0]) for other in found)]
    return _reading(outer, max(outer, key=lambda c: (not _is_warning(c), c[0].start))[0])


def _reading(found: list[Candidate], hit: Hit) -> tuple[Hit, tuple[Owner, ...]]:
    """The most plausible of the readings that are as specific as `hit`, and who else has it."""
    equal = [c for c in found if c[0].start == hit.start and c[0].literals == hit.literals]
    equal.sort(key=lambda c: (not c[0].complete, c[1][0].rank))
    return equal[0][0], tuple(owner for _, owners in equal for owner in owners)


def _covers(one: Hit, other: Hit) -> bool:
    """`one` reads the same stretch of text and says more about it."""
    overlap = one.start < other.end and other.start < one.end
    return overlap and one.literals > other.literals


def _is_warning(candidate: Candidate) -> bool:
    return candidate[1][0].exception.lower().endswith("warning")


def _match(text: str, hit: Hit, owners: Iterable[Owner]) -> Match:
    first, *others = owners
    return Match(
        pattern=first.id,
        captures=hit.captures,
        message=text[hit.start : hit.end].strip(),
        family=first.family,
        likelihood=first.likelihood,
        torch=first.torch,
        siblings=tuple(dict.fromkeys(o.id for o in others if o.id != first.id)),
        span=(hit.start, hit.end),
    )
