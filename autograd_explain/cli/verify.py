"""`verify`: a text in the place of a script; whether its gradients are the intended ones."""

from __future__ import annotations

import argparse
import json
import sys

from .exit import Exit


def run(options: argparse.Namespace) -> int:
    """Try the candidate and print the verdict; 0 where it is verified."""
    from ..intercept.candidate import NoPlace, try_script
    from ..render.verdict import verdict_of
    from . import language_for

    try:
        candidate = options.candidate.read_text("utf-8")
        tried = try_script(options.file, candidate, options.budget, *options.arguments)
    except (NoPlace, UnicodeDecodeError) as error:
        print(f"autograd-explain: verify: {error}", file=sys.stderr)
        return Exit.USAGE
    verdict = verdict_of(tried, language_for(options))
    print(json.dumps(verdict.to_dict(), indent=1) if options.json else verdict)
    return Exit.FOUND if verdict.outcome == "verified" else Exit.NOTHING


def positive(text: str) -> float:
    """A number of seconds; argparse shows the ValueError."""
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds
