# IPython's decorators carry no types.
# mypy: disable-error-code="no-untyped-call, untyped-decorator"
"""The magics: `%%autograd_check`, `%autograd_check`, `%autograd_explain`, `%autograd_fix` …"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    cell_magic,
    line_cell_magic,
    line_magic,
    magics_class,
    no_var_expand,
)
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ..isolation.generators import kept
from ..settings import LANGUAGES
from . import guard, screen
from .watched_cell import WatchOptions

if TYPE_CHECKING:
    from .session import Session

_STATES = ("on", "off", "status", "cell")


@magics_class
class AutogradMagics(Magics):
    """The magics of one session."""

    def __init__(self, shell: Any, session: Session) -> None:
        super().__init__(shell)
        self._session = session

    @no_var_expand
    @magic_arguments()
    @argument("state", nargs="?", help="on | off | status; cell: from here to the cell's end")
    @argument("--no-verify", action="store_true", help="Do not try the rewrites.")
    @argument("--budget", help="Seconds that trying the rewrites may take.")
    @argument("--lang", help="Language of this cell's report: en, ja or zh.")
    @line_cell_magic
    def autograd_check(self, line: str, cell: str | None = None) -> Any:
        """Record what the cell does to its tensors, so that the report is what was seen.

        `%%autograd_check` watches one cell, which runs as it would without; `%autograd_check on`
        watches every following cell.
        """
        arguments = _parse(self.autograd_check, line)
        choice = _choice(arguments)
        state = arguments.state
        if cell is not None:
            if state is not None:
                raise UsageError(f"%%autograd_check takes no {state!r}; the line magic does")
            self._session.watch_this_cell(replace(choice, here=True))
            from . import execute

            return execute.run_body(self.shell, self._session.cells, cell)
        if state not in (None, *_STATES):
            raise UsageError(f"%autograd_check: {state!r} is none of on, off, status")
        if state == "on":
            self._session.watch_all = choice
        elif state == "off":
            self._session.watch_no_more()
        elif state == "cell":
            self._session.watch_this_cell(replace(choice, here=True))
        if state != "cell":
            self._say_state()
        return None

    def _say_state(self) -> None:
        print(f"autograd_check: {'off' if self._session.watch_all is None else 'on'}")

    @no_var_expand
    @line_cell_magic
    def autograd_explain(self, line: str, cell: str | None = None) -> None:
        """Tell the whole story: of the last report, a cause, a pasted message, or a question.

        %autograd_explain                        the last report in full
        %autograd_explain saved_value_overwritten
        %autograd_explain why is my grad None
        %autograd_explain --debug                what went wrong inside autograd_explain

        As a cell magic it takes the text from the cell.
        """
        text = "\n".join(filter(None, (line.strip(), (cell or "").strip())))
        if text == "--debug":
            print(guard.report() or "autograd_explain: no internal error so far")
        elif not text:
            self._show_last()
        else:
            self._look_up(text)

    @kept()
    def _show_last(self) -> None:
        last = self._session.last
        if last is None:
            raise UsageError("Nothing has been explained yet: run a cell that fails first")
        screen.show(self.shell, last.with_detail("full"))

    @kept()
    def _look_up(self, text: str) -> None:
        from ..search import language_in, lookup, similar
        from ..search.causes import left_out
        from ..search.words import say

        options = self._session.settings.options()
        for line in left_out(options.causes):
            guard.remark(line)
        language = language_in(text, options.language)
        meant = similar(text, options.causes)
        if meant:
            screen.say(say("did_you_mean", language, asked=text, names=", ".join(meant)))
            return
        found = lookup(text, language, options.causes)
        if found is None:
            screen.say(say("nothing_fits", language))
        else:
            screen.show(self.shell, found)

    @no_var_expand
    @magic_arguments()
    @argument("number", nargs="?", default="1", help="Which rewrite, counted from 1.")
    @argument("--write", action="store_true", help="Write the user's files that it changes.")
    @line_cell_magic
    def autograd_fix(self, line: str, cell: str | None = None) -> None:
        """Take over a rewrite of the last report.

        %%autograd_fix       on top of the failed cell: replaces its text, runs nothing
        %autograd_fix 2      rewrite 2: its whole changed cell, in the place of this line
        %autograd_fix --write   the same; what it changes in your files is written there

        A change of a file is shown first. An earlier cell is handed over whole, marked as such.
        """
        from . import fix

        arguments, session = _parse(self.autograd_fix, line), self._session
        request = fix.Request(
            arguments.number,
            body=cell,
            write=arguments.write,
            replace=session.settings.fix == "replace" and session.runs_only_a_line(),
        )
        language = session.settings.language
        fix.offer(self.shell, session.last, session.last_cell, request, language)

    @no_var_expand
    @magic_arguments()
    @argument("--cell", type=int, help="The number of the cell in whose place it stands.")
    @argument("--file", help="One of your files, in whose place it stands.")
    @argument("--budget", help="Seconds that trying it may take.")
    @cell_magic
    def autograd_verify(self, line: str, cell: str) -> None:
        """Try this text in the place of the cell that failed: does it run, are its gradients right?

        The program runs again in another process; nothing of the session changes, and the text is
        not run here.
        """
        self._verify(_parse(self.autograd_verify, line), cell)

    @kept()
    def _verify(self, arguments: Any, text: str) -> None:
        from ..render.verdict import verdict_of
        from .candidate import NoPlace, try_in_session

        options = self._session.settings.options()
        seconds = options.budget if arguments.budget is None else _seconds(arguments.budget)
        try:
            tried = try_in_session(self._session, text, arguments.cell, arguments.file, seconds)
        except NoPlace as error:
            raise UsageError(f"%%autograd_verify: {error}") from None
        screen.say(str(verdict_of(tried, options.language)))

    @no_var_expand
    @line_magic
    def autograd_inspect(self, line: str) -> None:
        """What tensors are to autograd: leaf or result, version, gradient; who shares their memory,
        and whose writes their version counter counts.

        %autograd_inspect x net.fc1.weight outs[0]

        Nothing is computed and nothing changed.
        """
        from . import looking

        self._show(looking.tensor_table, line)

    @no_var_expand
    @line_magic
    def autograd_graph(self, line: str) -> None:
        """The graph behind a tensor, of any size: your lines and names at its operations, layers
        that repeat told once, what a backward would miss.

        %autograd_graph loss                            all of it
        %autograd_graph loss --around hidden            what lies around a tensor
        %autograd_graph loss --around hidden --distance 8   so many nodes up and down

        Time runs downwards: a row uses what lies above it, the tensor itself is the last.
        Nothing is computed and nothing changed.
        """
        from . import looking

        self._show(looking.graph_picture, line)

    @kept()
    def _show(self, look: Any, line: str) -> None:
        """What looking at living objects gives, or why there is nothing to see."""
        from .looking import Unclear

        try:
            found = look(self._session, line)
        except Unclear as error:
            raise UsageError(str(error)) from None
        screen.show(self.shell, found)


def _parse(magic: Any, line: str) -> Any:
    """The arguments; whatever is wrong with them is a UsageError."""
    try:
        return parse_argstring(magic, line)
    except UsageError:
        raise
    except (ValueError, SystemExit) as error:
        raise UsageError(str(error)) from None


def _choice(arguments: Any) -> WatchOptions:
    budget = None
    if arguments.budget is not None:
        budget = _seconds(arguments.budget)
    if arguments.lang is not None and arguments.lang not in LANGUAGES:
        raise UsageError(f"--lang must be en, ja or zh, not {arguments.lang!r}")
    verify = False if arguments.no_verify else None
    return WatchOptions(verify=verify, budget=budget, language=arguments.lang)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"--budget must be a positive number of seconds, not {text!r}")
    return value


def register(shell: Any, session: Session) -> None:
    shell.register_magics(AutogradMagics(shell, session))


def unregister(shell: Any) -> None:
    """Take out our magics, and nobody else's of the same name."""
    for table in shell.magics_manager.magics.values():
        for name, function in list(table.items()):
            if isinstance(getattr(function, "__self__", None), AutogradMagics):
                del table[name]
    ours = shell.magics_manager.registry.pop(AutogradMagics.__name__, None)
    if ours in shell.configurables:
        shell.configurables.remove(ours)
