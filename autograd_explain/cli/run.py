"""`run`: a program with its own exit code, and what is to be said about it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from traitlets import TraitError

from ..settings import AutogradExplain, rank_of
from .exit import Exit

if TYPE_CHECKING:
    from ..render.explanation import Explanation


def run(options: argparse.Namespace) -> int:
    """Run the target; its exit code.  Raises what the target raises to end (SystemExit)."""
    from .. import _explain_incident, _is_recognised
    from ..script.run import run as run_target
    from ..script.target import NoTarget, module, script
    from . import language_for

    if not options.target:
        return _refuse("a FILE is missing, or -m and a MODULE")
    name, *arguments = options.target
    try:
        target = module(name) if options.module else script(name)
        settings = AutogradExplain(
            language=language_for(options),
            verify=rank_of() is None if options.verify is None else options.verify,
            budget=options.budget,
            causes=options.causes,
            record_next_run=False,
        )
    except (NoTarget, TraitError) as error:
        return _refuse(str(error))
    except SyntaxError as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        return Exit.NOTHING
    known = _explain_incident, _is_recognised
    return run_target(
        target,
        arguments,
        *known,
        settings,
        check=options.check,
        report=options.report,
        write=_writer(options.output_format),
    )


def _writer(format: str) -> Callable[[Sequence[Explanation]], str] | None:
    """What puts reports into a format for other programs; None for text."""
    from .formats import of_report, written

    def lines(found: Sequence[Explanation]) -> str:
        return "\n".join(json.dumps(each.to_dict(), ensure_ascii=False) for each in found)

    def results(found: Sequence[Explanation]) -> str:
        return written([of_report(each.to_dict()) for each in found], format)

    return {"text": None, "json": lines}.get(format, results)


def _refuse(why: str) -> Exit:
    print(f"autograd-explain: run: {why}", file=sys.stderr)
    return Exit.USAGE
