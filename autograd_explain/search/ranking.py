"""Ranks causes for a question: BM25 over their texts, and how well one of their questions agrees.

Everything comes from the folders' own texts; there is no model.  A question whose words the texts
do not have finds nothing: better no answer than a wrong one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .causes import Cause
from .terms import terms

#: Weight of a section's words; what is not here counts as background.
WEIGHTS = {"title": 5.0, "questions": 4.0, "summary": 2.0, "cause": 1.0}
BACKGROUND = 0.25
K1, B = 1.2, 0.6
#: What a question must reach to be answered: share of its weight found in the cause's texts.
ENOUGH = 0.5


@dataclass(frozen=True)
class Ranked:
    """A cause with its score (larger is better) and the share of the question it covers."""

    name: str
    score: float
    coverage: float


@dataclass(frozen=True)
class _Text:
    """One cause in one language: weighted term counts, and the terms of each question."""

    name: str
    counts: Mapping[str, float]
    questions: tuple[frozenset[str], ...]
    length: float


class Ranking:
    """An index over causes."""

    def __init__(self, causes: Iterable[Cause]) -> None:
        self._texts = [text for cause in causes for text in _texts(cause)]
        self._mean = sum(t.length for t in self._texts) / max(1, len(self._texts))
        names: dict[str, set[str]] = {}
        for text in self._texts:
            for term in text.counts:
                names.setdefault(term, set()).add(text.name)
        self._causes = {text.name for text in self._texts}
        self._spread = {term: len(owners) for term, owners in names.items()}

    def rank(self, question: str) -> list[Ranked]:
        """Every cause that has anything to do with the question, the best first."""
        asked = terms(question)
        weight = {term: self._idf(term) * min(2, n) for term, n in asked.items()}
        whole = sum(weight.values()) or 1.0
        best: dict[str, Ranked] = {}
        for text in self._texts:
            score = self._bm25(text, weight) + 1.5 * whole * _agreement(text, weight)
            coverage = sum(w for t, w in weight.items() if t in text.counts) / whole
            known = best.get(text.name)
            if score > 0 and (known is None or score > known.score):
                best[text.name] = Ranked(text.name, score, coverage)
        return sorted(best.values(), key=lambda r: (-r.score, r.name))

    def answers(self, question: str) -> list[Ranked]:
        """Those that answer it; empty where nothing fits."""
        ranked = self.rank(question)
        if not ranked or ranked[0].coverage < ENOUGH:
            return []
        return [r for r in ranked if r.score >= 0.6 * ranked[0].score]

    def _idf(self, term: str) -> float:
        spread = self._spread.get(term, 0)
        return math.log(1 + (len(self._causes) - spread + 0.5) / (spread + 0.5))

    def _bm25(self, text: _Text, weight: Mapping[str, float]) -> float:
        norm = K1 * (1 - B + B * text.length / self._mean)
        found = ((w, text.counts[t]) for t, w in weight.items() if t in text.counts)
        return sum(w * count * (K1 + 1) / (count + norm) for w, count in found)


def _agreement(text: _Text, weight: Mapping[str, float]) -> float:
    """How far the best of the cause's own questions says the same, from 0 to 1."""
    whole = sum(weight.values()) or 1.0
    best = 0.0
    for question in text.questions:
        common = sum(w for t, w in weight.items() if t in question)
        best = max(best, (common / whole) * (len(question & weight.keys()) / len(question)) ** 0.5)
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
