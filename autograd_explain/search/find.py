"""From a text to the entries of the knowledge base: by name, by message, by question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache

from ..match import Match, match_message, rows
from ..render.topic import Topic, topic_of
from .answer import Answer
from .causes import Cause, causes
from .clean import clean
from .ranking import Ranking

#: A question is short; what is longer is a pasted text that has no autograd message.
LONGEST_QUESTION = 400
#: Entries that one message may be explained by, and that a question is answered with.
MOST_ENTRIES = 4
#: An exception as Python prints it; autograd's were recognised before.
_FOREIGN = re.compile(r"^\s*(?:\w+\.)*\w*(?:Error|Exception|Warning): \S|^Traceback \(", re.M)
#: What an entry's name looks like; a question has words that are none of it.
_NAME = re.compile(r"[A-Za-z]\w*(?:[_-]\w+)+", re.A)
_ALIKE = 0.85
_KANA = re.compile(r"[ぁ-んァ-ヺ]")
_HAN = re.compile(r"[一-鿿]")
#: Words of a question in English; neither Python's nor those of PyTorch's messages.
_ENGLISH = re.compile(r"\b(?:how|why|what|should|my|i)\b", re.I)
_HOLE = re.compile(r"\{\w*(?::\w+)?\}")


def lookup(text: str, language: str = "en", extra: tuple[str, ...] = ()) -> Answer | None:
    """What the knowledge base says about `text`, or None where nothing fits.

    `text` is the name of an entry, a pasted message (a whole traceback will do) or a question in
    English, Japanese or Chinese.  `extra` are folders with causes of the user's own.
    """
    known = causes(extra)
    asked = text.strip()
    named = known.get(re.sub(r"[\s-]+", "_", asked.lower()))
    if named is not None:
        return Answer(asked, language, topics=(topic(named, language),))
    if asked in rows():
        return _about(_named(asked), asked, language, known)
    match = match_message(clean(text), messages(known))  # its last line may end the message
    if match is not None:
        return _about(match, asked, language, known)
    return _question(asked, language, known)


def likely_causes(text: str, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The names of the causes that a pasted traceback speaks for, the most probable first."""
    known = causes(extra)
    match = match_message(clean(text), messages(known))
    return () if match is None else tuple(c.name for c in entries_for(match, known, text))


def similar(text: str, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The entries of which `text` may be a misspelt name; none where it names one, or asks."""
    asked = re.sub(r"[\s-]+", "_", text.strip().lower())
    known = causes(extra)
    if asked in known or asked in rows() or not _NAME.fullmatch(text.strip()):
        return ()
    return tuple(get_close_matches(asked, known, MOST_ENTRIES, _ALIKE))


def language_in(text: str, otherwise: str) -> str:
    """The language of a question: kana is Japanese, other Han writing Chinese or the session's,
    what has neither and asks in English is English; keywords alone are the session's.

    A pasted message says nothing: it is English, and names and comments in it may be anybody's.
    """
    if len(text) > LONGEST_QUESTION or match_message(clean(text)) is not None:
        return otherwise
    if _KANA.search(text):
        return "ja"
    if _HAN.search(text):
        return "zh" if otherwise == "en" else otherwise
    return "en" if _ENGLISH.search(text) else otherwise


def entries_for(match: Match, known: Mapping[str, Cause], text: str = "") -> list[Cause]:
    """The entries that may explain a message, the most probable first.

    Without a live program the surrounding text decides: a traceback that shows
    `optimizer.step()` speaks for another cause than one that shows `x += 1`.
    """
    ids = {match.pattern, *match.siblings}
    fitting = [c for c in known.values() if ids.intersection(c.patterns)]
    if len(fitting) < 2:
        return fitting
    around = text.replace(match.message, " ") if text else match.message
    score = {r.name: r.score for r in ranking(known).rank(around)}
    own = match.pattern
    return sorted(fitting, key=lambda c: (own not in c.patterns, -score.get(c.name, 0.0), c.name))


def topic(cause: Cause, language: str, shown: Iterable[str] | None = None) -> Topic:
    """The whole story of an entry; `shown` are its messages, else those it may explain."""
    told = tuple(templates(cause) if shown is None else shown)
    return topic_of(cause.folder, cause.example, language, told)


def templates(cause: Cause) -> list[str]:
    """The messages an entry explains, `…` for what varies."""
    own = cause.messages
    texts = (own.get(p) or rows().get(p, {}).get("message", "") for p in cause.patterns)
    return [_HOLE.sub("…", text) for text in dict.fromkeys(texts) if text]


def messages(known: Mapping[str, Cause]) -> dict[str, str]:
    """The message templates that folders bring themselves."""
    return {id: text for cause in known.values() for id, text in cause.messages.items()}


def ranking(known: Mapping[str, Cause]) -> Ranking:
    return _ranking(tuple(known.values()))


@lru_cache(maxsize=2)
def _ranking(known: tuple[Cause, ...]) -> Ranking:
    return Ranking(known)


def _about(match: Match, text: str, language: str, known: Mapping[str, Cause]) -> Answer:
    fitting = entries_for(match, known, text)[:MOST_ENTRIES]
    topics = tuple(topic(cause, language, [match.message]) for cause in fitting)
    return Answer(text, language, match, topics)


def _question(text: str, language: str, known: Mapping[str, Cause]) -> Answer | None:
    if len(text) > LONGEST_QUESTION or _FOREIGN.search(text):
        return None
    found = ranking(known).answers(text)[:MOST_ENTRIES]
    topics = tuple(topic(known[r.name], language) for r in found)
    return Answer(text, language, topics=topics) if topics else None


def _named(id: str) -> Match:
    row = rows()[id]
    text = _HOLE.sub("…", row["message"])
    return Match(id, {}, text, row["family"], row["likelihood"])
