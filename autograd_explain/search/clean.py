"""Taking off what terminals, launchers, loggers and web pages put around a message.

Every function works on text; nothing here knows messages.
"""

from __future__ import annotations

import re

from ..traceback_text import without_colour

_DATE = r"\d{4}[-/]\d\d[-/]\d\d"
_TIME = r"\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
#: Prefixes of one line, each of which may be there several times, in any order.
_PREFIX = re.compile(
    rf"""(?:
        \[(?:rank\s*)?\d+\]:?\s(?!params\[)  # torchrun and others: [rank0]:; DDP says [1]: params[
      | \[[A-Za-z_]\w*?\d+\]:               # torchrun --tee, by role and local rank: [default0]:
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

_RANK = re.compile(r"\brank[ _-]?(\d+)", re.IGNORECASE)
_LOCAL_RANK = re.compile(r"\[[A-Za-z_]*?(\d+)\]")


def without_prefix(line: str) -> str:
    """A line without ranks, times, levels and quotation marks before it."""
    found = _PREFIX.match(line)
    return line[found.end() :] if found else line


def rank_in(line: str) -> int | None:
    """The rank that a launcher wrote before a line; a local one where it tells no other."""
    found = _PREFIX.match(line)
    prefix = found.group() if found else ""
    number = _RANK.search(prefix) or _LOCAL_RANK.search(prefix)
    return int(number[1]) if number else None


def clean(text: str) -> str:
    """A pasted text or a piece of a log as the program itself wrote it."""
    lines = without_colour(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(map(without_prefix, lines))
