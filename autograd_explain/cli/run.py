"""`run`: a program with its own exit code, and what is to be said about it."""

from __future__ import annotations

import argparse
import sys

from traitlets import TraitError

from ..settings import AutogradExplain
from .exit import Exit


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
            verify=not options.no_verify,
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
        target, arguments, *known, settings, check=options.check, report=options.report
    )


def _refuse(why: str) -> Exit:
    print(f"autograd-explain: run: {why}", file=sys.stderr)
    return Exit.USAGE
