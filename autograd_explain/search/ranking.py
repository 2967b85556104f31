"""Ranks causes for a question: BM25 over their texts, and how well one of their questions agrees.

Everything comes from the folders' own texts; there is no model.  A question whose words the texts
do not have finds nothing: better no answer than a wrong one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..match import rows
from .causes import Cause
from .terms import ANCHORS, asks_for_a_notion, terms

#: Weight of a section's words; what is not here counts as background.
WEIGHTS = {"title": 5.0, "questions": 4.0, "summary": 2.0, "cause": 1.0}
BACKGROUND = 0.25
K1, B = 1.2, 0.6
#: What a question must reach to be answered: share of its weight found in the cause's texts.
ENOUGH = 0.54
#: How well one of the cause's own questions must agree where nothing in it names autograd.
CLEAR = 0.6
#: How much a pair of Han characters counts: a word is several pairs, and some cross its border.
PAIR = 0.4
#: What full agreement with one of the cause's own questions is worth.
AGREEING = 1.5
#: What an entry without messages gains where a notion is asked for ("what is a leaf").
NOTION = 1.2
#: What a cause is worth before anything is asked, by how likely its likeliest message is.
PRIOR = {"common": 1.15, "occasional": 1.0, "rare": 0.85}


@dataclass(frozen=True)
class Ranked:
    """A cause with its score (larger is better), the share of the question that its texts cover,
    and how far the best of its own questions says the same."""

    name: str
    score: float
    coverage: float
    agreement: float


@dataclass(frozen=True)
class _Text:
    """One cause in one language: weighted term counts, and the terms of each question."""

    name: str
    counts: Mapping[str, float]
    questions: tuple[frozenset[str], ...]
    length: float

    @cached_property
    def subject(self) -> frozenset[str]:
        """The terms of the title and the questions."""
        return frozenset().union(*self.questions)


class Ranking:
    """An index over causes."""

    def __init__(self, causes: Iterable[Cause]) -> None:
        causes = tuple(causes)
        self._texts = [text for cause in causes for text in _texts(cause)]
        self._verbatim = {
            _plain(q) for c in causes for d in c.documents.values() for q in d.questions
        }
        self._topics = {cause.name for cause in causes if not cause.patterns}
        self._priors = {cause.name: _prior(cause) for cause in causes}
        self._mean = sum(t.length for t in self._texts) / max(1, len(self._texts))
        names: dict[str, set[str]] = {}
        subjects: dict[str, set[str]] = {}
        for text in self._texts:
            for term in text.counts:
                names.setdefault(term, set()).add(text.name)
            for term in text.subject:
                subjects.setdefault(term, set()).add(text.name)
        self._causes = {text.name for text in self._texts}
        # What a cause is about says more of a word than where else it is mentioned.
        self._spread = {t: len(subjects.get(t) or owners) for t, owners in names.items()}

    def rank(self, question: str) -> list[Ranked]:
        """Every cause that has anything to do with the question, the best first."""
        asked = terms(question)
        weight = {term: self._weight(term) * min(2, n) for term, n in asked.items()}
        whole = sum(weight.values()) or 1.0
        notion = asks_for_a_notion(question)
        best: dict[str, Ranked] = {}
        for text in self._texts:
            agreement = _agreement(text, weight)
            score = self._bm25(text, weight) + AGREEING * whole * agreement
            score *= self._priors[text.name] if agreement < 0.99 else 1.5
            if notion and text.name in self._topics:
                score *= NOTION
            coverage = sum(w for t, w in weight.items() if t in text.counts) / whole
            known = best.get(text.name)
            if score > 0 and (known is None or score > known.score):
                best[text.name] = Ranked(text.name, score, coverage, agreement)
        return sorted(best.values(), key=lambda r: (-r.score, r.name))

    def answers(self, question: str) -> list[Ranked]:
        """Those that answer it; empty where nothing fits."""
        ranked = self.rank(question)
        if ranked and _plain(question) in self._verbatim:
            return [r for r in ranked if r.score >= 0.6 * ranked[0].score]
        if not ranked or ranked[0].coverage < ENOUGH:
            return []
        asked = terms(question)
        if ANCHORS.isdisjoint(asked):
            words = sum(not _is_pair(term) for term in asked)
            if words < 2 or ranked[0].agreement < CLEAR:
                return []
        return [r for r in ranked if r.score >= 0.6 * ranked[0].score]

    def _weight(self, term: str) -> float:
        return self._idf(term) * (PAIR if _is_pair(term) else 1.0)

    def _idf(self, term: str) -> float:
        spread = self._spread.get(term, 0)
        return math.log(1 + (len(self._causes) - spread + 0.5) / (spread + 0.5))

    def _bm25(self, text: _Text, weight: Mapping[str, float]) -> float:
        norm = K1 * (1 - B + B * text.length / self._mean)
        found = ((w, text.counts[t]) for t, w in weight.items() if t in text.counts)
        return sum(w * count * (K1 + 1) / (count + norm) for w, count in found)


def _plain(question: str) -> str:
    return " ".join(question.lower().split()).rstrip("?？。")


def _is_pair(term: str) -> bool:
    return len(term) == 2 and not term.isascii()


def _prior(cause: Cause) -> float:
    known = (rows().get(pattern, {}).get("likelihood", "") for pattern in cause.patterns)
    return max((PRIOR[likelihood] for likelihood in known if likelihood in PRIOR), default=1.0)


def _agreement(text: _Text, weight: Mapping[str, float]) -> float:
    """How far the best of the cause's own questions says the same, from 0 to 1."""
    whole = sum(weight.values()) or 1.0
    best = 0.0
    for question in text.questions:
        common = question & weight.keys()
        if common:
            share = sum(weight[term] for term in common) / whole
            best = max(best, share * (len(common) / len(question)) ** 0.5)
    return best


def _texts(cause: Cause) -> Iterator[_Text]:
    for document in cause.documents.values():
        counts: dict[str, float] = defaultdict(float)
        fields = {"title": document.title, "questions": "\n".join(document.questions)}
        for name, text in {**document.sections, **fields}.items():
            weight = WEIGHTS.get(name.split()[0], BACKGROUND)
            for term, count in terms(text).items():
                counts[term] += weight * count
        for term in terms(cause.name.replace("_", " ")):
            counts[term] += WEIGHTS["title"]
        questions = tuple(frozenset(terms(q)) for q in (document.title, *document.questions))
        yield _Text(cause.name, counts, tuple(q for q in questions if q), sum(counts.values()))
