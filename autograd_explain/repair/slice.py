"""How near each statement of the program is to what went wrong: an order, never a filter.

Statements that share a name which one of them gives a value are neighbours; so are a function and
the calls of it, and the rounds of a loop with the loop.  From the places of the report the distance
is counted in such steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass

import libcst as cst

from ..model import Finding, Place, What
from ..rewrite.engine.cst_tools import targets
from ..rewrite.engine.tree import Statement, Tree
from ..rewrite.operators.site import Site

_WORD = re.compile(r"[^\W\d]\w*")
_FURTHEST = 5
_DECAY = 0.24
#: What the report says of a place weighs: where it went wrong more than where it showed.
_WEIGHT = {What.CHANGED: 1.0, What.CAUSE: 1.0, What.DETACHED: 1.0, What.SAVED: 0.66}
_OTHER = 0.41
_AROUND = 0.41  #: the head of a block that holds such a place says under what it ran
_BLOCKS = (cst.With, cst.For, cst.While, cst.If, cst.FunctionDef)
_NAMES = frozenset("self torch nn F np range len print int float list dict tuple".split())


def nearness(sites: Sequence[Site], finding: Finding) -> Mapping[Statement, float]:
    """A number up to 1 for each statement."""
    found = {site.statement: _DECAY ** (_FURTHEST + 1) for site in sites}
    for weight, place in _places(finding):
        for site in sites:
            near = weight * _share_of(site.tree, site.statement, place)
            found[site.statement] = max(found[site.statement], near)
    words = {site.statement: _words(site) for site in sites}
    given = {site.statement: _given(site) & words[site.statement] for site in sites}
    for _ in range(_FURTHEST):
        by_word, given_by = _best(found, words), _best(found, given)
        for statement in found:
            reached = [by_word[w] for w in given[statement]]
            reached += [given_by[w] for w in words[statement] if w in given_by]
            found[statement] = max(found[statement], _DECAY * max(reached, default=0.0))
    return found


def _best(
    found: Mapping[Statement, float], words: Mapping[Statement, frozenset[str]]
) -> Mapping[str, float]:
    """The highest number of a statement that has a word."""
    best: dict[str, float] = {}
    for statement, score in found.items():
        for word in words[statement]:
            best[word] = max(best.get(word, 0.0), score)
    return best


def _places(finding: Finding) -> Iterator[tuple[float, Place]]:
    for event in finding.events:
        weight = _WEIGHT.get(event.what, _OTHER)
        if event.place is not None:
            yield weight, event.place
        for place in event.chain:
            yield weight * _DECAY, place
    for place in _places_in(finding.details):
        yield _OTHER, place


def _places_in(value: object) -> Iterator[Place]:
    """The places in what a cause hands to its own rewrites, whatever it is made of."""
    if isinstance(value, Place):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _places_in(inner)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from _places_in(inner)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _places_in(getattr(value, field.name))


def _share_of(tree: Tree, statement: Statement, place: Place) -> float:
    """How much of a place's weight is a statement's: it stands there, or holds what does."""
    source, span = tree.source, tree.span(statement)
    if (source.cell, source.file) != (place.cell, place.file):
        return 0.0
    if not span.line <= place.line <= span.end_line:
        return 0.0
    if isinstance(statement, cst.BaseCompoundStatement) and span.line != place.line:
        return _AROUND if isinstance(statement, _BLOCKS) else 0.0
    return 1.0


def _words(site: Site) -> frozenset[str]:
    """The names in a statement; of a block, those in its head."""
    statement = site.statement
    if isinstance(statement, cst.BaseCompoundStatement):
        lines = site.tree.source.lines
        text = lines[site.tree.span(statement).line - 1]
    else:
        text = site.tree.code(statement)
    return frozenset(_WORD.findall(text)) - _NAMES


def _given(site: Site) -> frozenset[str]:
    """The names to which a statement gives a value or whose value it changes."""
    statement = site.statement
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return frozenset({statement.name.value})
    found = [word for t in targets(statement) for word in _WORD.findall(site.tree.code(t))]
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
        found += _WORD.findall(site.tree.code(statement.value.func))
    return frozenset(found)
