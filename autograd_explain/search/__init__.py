"""Looking things up without a live program: a pasted message, a question, a whole log.

`lookup(text, language)` answers from the knowledge base's own texts, in English, Japanese or
Chinese; `scan_file(path)` lists the autograd messages of a log.  Nothing here imports torch.
"""

from .answer import Answer
from .find import language_in, likely_causes, lookup, similar
from .logs import Found, LogReport, scan, scan_file

__all__ = [
    "Answer",
    "Found",
    "LogReport",
    "language_in",
    "likely_causes",
    "lookup",
    "scan",
    "scan_file",
    "similar",
]
