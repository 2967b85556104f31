"""`explain`: a message, a question, an entry's name, or a log of any size."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ..search import Answer, Found, LogReport, language_in, lookup, scan, scan_file, similar
from ..search.answer import message_dict, message_lines
from ..search.causes import Cause, causes
from ..search.find import entries_for, messages, topic
from ..search.words import say
from .exit import Exit
from .formats import Result, written
from .job import is_job, ranks_of, seen_at, tell_job

#: What is read from standard input before it is treated as a log.
SHORT = 1 << 16
#: What can only be meant as a file.
_FILE = re.compile(r"\S*[\\/]\S+|\S+\.(log|txt|out|err|ipynb|py)")


def run(options: argparse.Namespace) -> int:
    from . import language_for

    if options.json:
        options.output_format = "json"
    language = language_for(options)
    folders = tuple(options.causes)
    if options.log is not None:
        return _log(options, language, str(options.log))
    text = " ".join(options.text).strip()
    if text in ("", "-"):
        return _stdin(options, language)
    if text not in causes(folders) and is_job(options.text):
        return tell_job(options, language)
    if len(options.text) == 1 and os.path.isfile(text):
        return _log(options, language, text)
    if options.lang is None:
        language = language_in(text, language)
    meant = similar(text, folders)
    if meant:
        return _show(
            None,
            options,
            language,
            say("did_you_mean", language, asked=text, names=", ".join(meant)),
        )
    answer = lookup(text, language, folders)
    if answer is None and _FILE.fullmatch(text):
        raise FileNotFoundError(2, os.strerror(2), text)
    return _show(answer, options, language)


def _stdin(options: argparse.Namespace, language: str) -> int:
    """Standard input: a log, unless it is short and nothing is found in it."""
    stream = _Ahead(sys.stdin.buffer)
    start = stream.peek(SHORT)
    if len(start) < SHORT:
        answer = lookup(start.decode("utf-8", "replace"), language, tuple(options.causes))
        if answer is None or answer.match is None:
            return _show(answer, options, language)
    name = say("stdin", language)
    known = causes(tuple(options.causes))
    report = scan(stream, messages(known))  # type: ignore[arg-type]
    return _show_log(report, name, options, language)


def _log(options: argparse.Namespace, language: str, name: str) -> int:
    known = causes(tuple(options.causes))
    return _show_log(scan_file(name, messages(known)), name, options, language)


def _show(
    answer: Answer | None, options: argparse.Namespace, language: str, instead: str = ""
) -> int:
    """The answer; where there is none, `instead` or that nothing fits."""
    if options.output_format == "json":
        _print_json(None if answer is None else answer.to_dict())
    elif options.output_format != "text":
        print(written([] if answer is None else [_of_answer(answer)], options.output_format))
    elif answer is None:
        print(instead or say("nothing_fits", language), file=sys.stderr)
    else:
        answer.print(sys.stdout)
    return Exit.NOTHING if answer is None else Exit.FOUND


def _of_answer(answer: Answer) -> Result:
    title = answer.topics[0].title if answer.topics else answer.query
    summary = answer.topics[0].summary.markdown() if answer.topics else ""
    return Result(answer.id, "error", title, summary)


def _of_found(found: Found, name: str, known: Mapping[str, Cause], language: str) -> Result:
    """At the user's line, where its traceback shows one; else at the log's."""
    fitting = entries_for(found.match, known)
    title = topic(fitting[0], language).title if fitting else found.match.message
    frames = [seen.frame for seen in found.sightings if seen.frame is not None]
    here = {"file": None if name == say("stdin", language) else os.path.abspath(name)}
    place = frames[0].place if frames else {**here, "cell": None, "line": found.line}
    ranks = tuple(seen.rank for seen in found.sightings if seen.rank is not None)
    rule = fitting[0].name if fitting else "unknown"
    return Result(rule, "error", title, found.match.message, place, ranks=ranks)


def _show_log(report: LogReport, name: str, options: argparse.Namespace, language: str) -> int:
    known = causes(tuple(options.causes))
    if options.output_format == "json":
        _print_json(log_dict(report, name, known, language))
    elif options.output_format != "text":
        results = [_of_found(found, name, known, language) for found in report.found]
        print(written(results, options.output_format))
    elif not report.found:
        print(say("log_empty", language, lines=report.lines, name=name), file=sys.stderr)
    else:
        count = sum(found.count for found in report.found)
        print(say("log_found", language, count=count, lines=report.lines, name=name))
        for found in report.found:
            print()
            _show_found(found, name, known, language, options.full)
        own = {seen.rank for found in report.found for seen in found.sightings}
        late = [rank for rank in report.consequences if rank not in own]
        if late:
            first = report.consequences[late[0]]
            print(
                f"\n{say('in_consequence', language, ranks=ranks_of(late, language), text=first)}"
            )
    return Exit.FOUND if report.found else Exit.NOTHING


def _show_found(
    found: Found, name: str, known: Mapping[str, Cause], language: str, full: bool
) -> None:
    for line in _found_lines(found, name, language):
        print(line)
    fitting = entries_for(found.match, known)
    if not fitting:
        print(f"  {say('no_entry', language)}")
        return
    story = topic(fitting[0], language, [found.match.message])
    if full:
        story.print(sys.stdout)
        return
    print(f"  {story.title}")
    print(f"  {say('log_more', language, entry=story.name)}")


def _found_lines(found: Found, name: str, language: str) -> Iterator[str]:
    place = {"name": name, "line": found.line, "offset": found.offset, "count": found.count}
    yield say("log_place", language, **place)
    message = " ".join(found.match.message.split())
    yield f"  {message if len(message) <= 300 else message[:299] + '…'}"
    yield from (f"  {line}" for line in message_lines(found.match, language))
    yield from (f"  {line}" for line in seen_at(found, language))


def log_dict(
    report: LogReport, name: str, known: Mapping[str, Cause], language: str
) -> dict[str, Any]:
    """A log's messages as JSON types."""
    return {
        "schema": 1,
        "log": name,
        "language": language,
        "lines": report.lines,
        "bytes": report.size,
        "messages": [
            {
                "line": found.line,
                "offset": found.offset,
                "count": found.count,
                "places": [
                    {"rank": seen.rank, "line": seen.line}
                    | ({"place": None} if seen.frame is None else {"place": seen.frame.place})
                    for seen in found.sightings
                ],
                "message": message_dict(found.match),
                "entries": [
                    {"id": cause.name, "title": topic(cause, language).title}
                    for cause in entries_for(found.match, known)
                ],
            }
            for found in report.found
        ],
        "consequences": [
            {"rank": rank, "message": text} for rank, text in report.consequences.items()
        ],
    }


def _print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


class _Ahead:
    """A stream whose first bytes were looked at and are read again."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._start = stream, b""

    def peek(self, size: int) -> bytes:
        while len(self._start) < size:
            block = self._stream.read(size - len(self._start))
            if not block:
                break
            self._start += block
        return self._start

    def read(self, size: int = -1) -> bytes:
        if self._start:
            part, self._start = self._start, b""
            return part
        return self._stream.read(size)
