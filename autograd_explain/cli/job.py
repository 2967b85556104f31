"""`explain` of what the processes of one job left behind: a folder of logs, or several files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..ranks.failure import Failure
from ..ranks.merge import Group, Merged, merge
from ..ranks.read import failures_in, is_ours
from ..search import Found
from ..search.causes import Cause, causes
from ..search.find import entries_for, messages, topic
from ..search.words import say
from ..traceback_text import TextFrame
from .exit import Exit
from .formats import Result, of_report, written

_LONGEST = 300  #: characters of a message


def is_job(texts: Sequence[str]) -> bool:
    """Whether these are a folder, a report, or several files."""
    paths = [Path(text) for text in texts]
    if len(paths) == 1:
        return paths[0].is_dir() or (paths[0].is_file() and is_ours(paths[0]))
    return len(paths) > 1 and all(path.exists() for path in paths)


def tell_job(options: argparse.Namespace, language: str) -> Exit:
    """One account of all ranks."""
    known = causes(tuple(options.causes))
    merged = _merged(options.text, known)
    name = " ".join(options.text)
    if options.output_format == "json":
        print(json.dumps(_dict(merged, name, known, language), ensure_ascii=False, indent=2))
    elif options.output_format != "text":
        results = (_result(group, known, language) for group in merged.causes)
        print(written(results, options.output_format))
    elif not merged.causes and merged.late is None:
        print(say("job_empty", language, name=name), file=sys.stderr)
    else:
        print("\n\n".join(_parts(merged, known, language, options.full)))
    return Exit.FOUND if merged.explained else Exit.NOTHING


def job_dict(texts: Sequence[str], folders: tuple[str, ...], language: str) -> dict[str, Any]:
    """The account as JSON types; raises OSError where something cannot be read."""
    known = causes(folders)
    return _dict(_merged(texts, known), " ".join(texts), known, language)


def _merged(texts: Sequence[str], known: Mapping[str, Cause]) -> Merged:
    own = messages(known)
    return merge(f for text in texts for f in failures_in(Path(text), own))


def ranks_of(ranks: Sequence[int | None], language: str) -> str:
    """`ranks 0, 2`."""
    numbers = sorted(rank for rank in ranks if rank is not None)
    key = "rank" if len(numbers) == 1 else "ranks"
    return say(key, language, ranks=", ".join(map(str, numbers)) or "?")


def seen_at(found: Found, language: str) -> Iterator[str]:
    """A message's ranks and the user's lines, a line for each place."""
    places: dict[TextFrame | None, list[int | None]] = {}
    for seen in found.sightings:
        places.setdefault(seen.frame, []).append(seen.rank)
    for frame, ranks in places.items():
        who = ranks_of(ranks, language) if any(rank is not None for rank in ranks) else ""
        where = "" if frame is None else _where(frame.place, language)
        if who or where:
            yield " · ".join(part for part in (who, where) if part)


def _parts(merged: Merged, known: Mapping[str, Cause], language: str, full: bool) -> Iterator[str]:
    for group in merged.causes:
        yield "\n".join(_group(group, known, language, full))
    if merged.late is not None:
        if not merged.causes:
            yield say("only_late", language)
        text, ranks = _short(merged.late.best), ranks_of(merged.late.ranks, language)
        yield say("in_consequence", language, ranks=ranks, text=text)


def _group(group: Group, known: Mapping[str, Cause], language: str, full: bool) -> Iterator[str]:
    best = group.best
    who = ranks_of(group.ranks, language) if group.ranks else ""
    where = "" if best.place is None else _where(best.place, language)
    yield " · ".join(part for part in (who, where) if part) or best.origin
    if best.text:
        yield best.text.rstrip("\n")
        return
    yield f"  {_short(best)}"
    if best.match is None:
        yield f"  {say('not_autograds', language)}"
        return
    fitting = entries_for(best.match, known)
    if not fitting:
        yield f"  {say('no_entry', language)}"
        return
    story = topic(fitting[0], language, [best.match.message])
    yield from (
        story.to_text().splitlines()
        if full
        else (
            f"  {story.title}",
            f"  {say('log_more', language, entry=story.name)}",
        )
    )


def _result(group: Group, known: Mapping[str, Cause], language: str) -> Result:
    best = group.best
    if best.report is not None:
        return of_report(best.report, group.ranks)
    fitting = [] if best.match is None else entries_for(best.match, known)
    title = topic(fitting[0], language).title if fitting else _short(best)
    rule = fitting[0].name if fitting else "unknown" if best.match else "foreign"
    return Result(rule, "error", title, best.message, best.place, ranks=group.ranks)


def _where(place: Mapping[str, Any], language: str) -> str:
    """`train.py:12 in main(): loss.backward()`, with the whole path."""
    at = f"{place.get('file') or 'In[{}]'.format(place.get('cell'))}:{place.get('line')}"
    function = place.get("function")
    named = say("in_function", language, place=at, function=function) if function else at
    return f"{named}  {place['source']}" if place.get("source") else named


def _short(failure: Failure) -> str:
    text = " ".join(failure.message.split())
    if failure.kind and not text.startswith(failure.kind):
        text = f"{failure.kind}: {text}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _dict(merged: Merged, name: str, known: Mapping[str, Cause], language: str) -> dict[str, Any]:
    late = merged.late
    return {
        "schema": 1,
        "job": name,
        "language": language,
        "causes": [_group_dict(group, known, language) for group in merged.causes],
        "consequences": []
        if late is None
        else [{"rank": f.rank, "message": f.message} for f in late.failures],
    }


def _group_dict(group: Group, known: Mapping[str, Cause], language: str) -> dict[str, Any]:
    best = group.best
    fitting = [] if best.match is None else entries_for(best.match, known)
    return {
        "ranks": list(group.ranks),
        "id": best.cause or None,
        "message": best.message,
        "pattern": best.pattern or None,
        "place": None if best.place is None else dict(best.place),
        "entries": [{"id": c.name, "title": topic(c, language).title} for c in fitting],
        "report": None if best.report is None else dict(best.report),
    }
