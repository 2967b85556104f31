"""Repair by search: general edits, tried near what the report names, judged by running them.

    rewrites = search(finding, request, known)      # known: what the cause itself proposed, tried

It is a second proposer before the judge of `verify`, not a judge: what it calls verified is what
`verify` found to be so.  Where nothing is run, `likely(finding, request)` gives the edits that are
likely enough to be told untried.
"""

from .candidates import likely
from .search import search

__all__ = ["likely", "search"]
