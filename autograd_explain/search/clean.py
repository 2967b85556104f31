"""Taking off what terminals, launchers, loggers and web pages put around a message.

Every function works on text; nothing here knows messages.
"""

from __future__ import annotations

import re

#: Colours, cursor movements, links and titles (ECMA-48 control sequences and OSC strings).
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

_DATE = r"\d{4}[-/]\d\d[-/]\d\d"
_TIME = r"\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
#: Prefixes of one line, each of which may be there several times, in any order.
_PREFIX = re.compile(
    rf"""(?:
        \[(?:rank\s*)?\d+\]:?\s(?!params\[)  # torchrun and others: [rank0]:; DDP says [1]: params[
      | \[?(?:rank|worker|node|proc(?:ess)?|gpu)[ _-]?\d+\]?(?::\s*|\s*\|\s*|\s+-\s+|\s)
      | [\w./-]+/\d+\s\|\s                  # docker compose
      | \[?{_DATE}(?:[T\s]+{_TIME})?\]?[,:]?\s+
      | \[?{_TIME}\]?[,:]?\s+
      | (?:\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\]?)(?::\s+|\s+-\s+|\s+)
      | \((?:\w+\s)?pid=\d+(?:,\s*ip=[\d.]+)?\)\s   # ray
      | E\s{{3,}}                             # pytest
      | >{{1,3}}\s                           # quoted mail, Markdown, prompts
    )+""",
    re.VERBOSE,
)


def without_colour(text: str) -> str:
    """The text without terminal control sequences."""
    return ANSI.sub("", text) if "\x1b" in text else text


def without_prefix(line: str) -> str:
    """A line without ranks, times, levels and quotation marks before it."""
    found = _PREFIX.match(line)
    return line[found.end() :] if found else line


def clean(text: str) -> str:
    """A pasted text or a piece of a log as the program itself wrote it."""
    lines = without_colour(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(map(without_prefix, lines))
