"""The command line: run a program and explain what it raises; explain a message, a question or a
log; list, check and print the entries.

    python -m autograd_explain run train.py --epochs 3
    python -m autograd_explain run --check -m package.train
    python -m autograd_explain explain "a leaf Variable that requires grad is being used …"
    python -m autograd_explain explain train.log
    torchrun train.py 2>&1 | python -m autograd_explain explain
    python -m autograd_explain verify train.py proposed.py

Exit codes: 0 something was explained (check: nothing is wrong); 1 nothing fits (check: something is
wrong); 2 the command line was not understood or a file cannot be read.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..settings import LANGUAGES, default_language, language_of
from .exit import Exit

_EPILOG = (
    "exit codes: 0 explained (check: nothing wrong), 1 nothing fits (check: something wrong), "
    "2 not understood or not readable"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    options = parser().parse_args(arguments)
    try:
        if "folders" not in options:  # check tells everything itself
            _tell_left_out(tuple(options.causes))
        return int(options.run(options))
    except BrokenPipeError:
        # The reader (`| head`) has gone: so must what Python would still flush at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FOUND
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except OSError as error:
        print(f"autograd-explain: {_reason(error)}", file=sys.stderr)
        return Exit.USAGE


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    made = argparse.ArgumentParser(
        prog="autograd-explain",
        description="Explains PyTorch autograd errors outside a notebook.",
        epilog=_EPILOG,
    )
    made.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _run(commands)
    _explain(commands)
    _verify(commands)
    _list(commands)
    _check(commands)
    _docs(commands)
    _mcp(commands)
    return made


def _run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from . import run

    command = commands.add_parser(
        "run",
        usage="autograd-explain run [options] (FILE | -m MODULE) [ARGUMENT ...]",
        help="run a program and explain its autograd errors",
        description="Runs a program as Python does, with its exit code; what it raises is "
        "explained below the traceback. With --check the program is recorded, so that the lines "
        "are observed, faults without an error are told at its end and the rewrites are tried; "
        "torch is imported before it.",
    )
    command.add_argument("--check", action="store_true", help="record it and try the rewrites")
    command.add_argument(
        "--verify",
        action=argparse.BooleanOptionalAction,
        help="with --check: try them, or not; not in the processes of a distributed job",
    )
    command.add_argument(
        "--budget", type=float, default=20.0, metavar="S", help="seconds that trying may take (20)"
    )
    command.add_argument(
        "--report", type=Path, metavar="FILE", help="write the report, as JSON or as asked for"
    )
    _format(command)
    _own(command)
    command.add_argument("-m", dest="module", action="store_true", help="run a module")
    command.add_argument("target", nargs=argparse.REMAINDER, metavar="FILE")
    command.set_defaults(run=run.run)


def _explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from . import explain

    command = commands.add_parser(
        "explain",
        help="explain a message, a question, an entry or a log",
        description="TEXT is a pasted message, a question in English, Japanese or Chinese, the "
        "name of an entry, a log file, a report, or a folder or several files of a distributed "
        "job. Without TEXT, or with -, it is read from standard input.",
        epilog=_EPILOG,
    )
    command.add_argument("text", nargs="*", metavar="TEXT")
    command.add_argument("--log", type=Path, metavar="FILE", help="find the messages of this log")
    command.add_argument("--full", action="store_true", help="of a log, tell every whole story")
    _format(command)
    _common(command)
    command.set_defaults(run=explain.run)


def _verify(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from . import verify

    command = commands.add_parser(
        "verify",
        help="try a candidate in the place of a script",
        description="Runs FILE, then CANDIDATE in its place, in processes that change nothing, "
        "and compares the gradients with the intended ones.",
        epilog="exit codes: 0 verified, 1 not, 2 not understood or not readable",
    )
    command.add_argument("file", metavar="FILE", help="the script as it is")
    command.add_argument("candidate", type=Path, metavar="CANDIDATE", help="its text as proposed")
    command.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="what FILE is given"
    )
    command.add_argument(
        "--budget",
        type=verify.positive,
        default=20.0,
        metavar="S",
        help="seconds for all of it (20)",
    )
    _common(command)
    command.set_defaults(run=verify.run)


def _list(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from . import listing

    command = commands.add_parser("list", help="list the entries or the messages", epilog=_EPILOG)
    command.add_argument("word", nargs="?", default="", help="only those that have this word")
    command.add_argument("--messages", action="store_true", help="PyTorch's messages instead")
    _common(command)
    command.set_defaults(run=listing.run)


def _check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from . import check

    command = commands.add_parser(
        "check",
        help="check knowledge folders",
        description="FOLDER is the folder of a cause, the name of a known one, or a folder that "
        "holds such folders; without it, all known ones are checked.",
        epilog=_EPILOG,
    )
    command.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    command.add_argument(
        "--accept",
        choices=[language for language in LANGUAGES if language != "en"],
        help="note that this translation is in step with en.md as it is now",
    )
    _common(command)
    command.set_defaults(run=check.run)


def _docs(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from . import docs

    command = commands.add_parser(
        "docs",
        help="write the documentation",
        description="Writes the site (HTML) to OUT: a page per entry and language, with what the "
        "notebook shows when the entry's own program is run now, and indexes by message and by "
        "symptom. A dead link, a missing section or a program that is not explained is an error.",
        epilog=_EPILOG,
    )
    command.add_argument("out", type=Path, metavar="OUT", nargs="?", default=Path("site"))
    command.add_argument("--format", choices=("html", "markdown"), default="html")
    _common(command)
    command.set_defaults(run=docs.run)


def _mcp(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from . import mcp

    command = commands.add_parser(
        "mcp",
        help="serve assistants over the Model Context Protocol",
        description="Serves explain_message and explain_log on standard input and output. Needs "
        "the extra: pip install 'autograd_explain[mcp]'.",
    )
    _own(command)
    command.set_defaults(run=mcp.run)


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")
    _own(command)


def _format(command: argparse.ArgumentParser) -> None:
    from .formats import FORMATS

    command.add_argument(
        "--output-format", choices=FORMATS, default="text", help="how it is told (text)"
    )


def _own(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--lang", type=_language, metavar="LANG", help="en, ja or zh (docs: only this one)"
    )
    command.add_argument(
        "--causes",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder with causes of your own; may be given several times",
    )


def _language(tag: str) -> str:
    found = language_of(tag)
    if found is None:
        raise argparse.ArgumentTypeError(f"{tag!r} is not one of {', '.join(LANGUAGES)}")
    return found


def language_for(options: argparse.Namespace) -> str:
    """The language asked for, else that of the environment."""
    return str(options.lang or default_language())


def _tell_left_out(folders: tuple[str, ...]) -> None:
    """One line for each folder of one's own that cannot be used."""
    from ..search.causes import left_out

    for line in left_out(folders):
        print(f"autograd-explain: {line}", file=sys.stderr)


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _version() -> str:
    from .. import __version__

    return __version__
