"""The session: what is registered with IPython while the extension is loaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..isolation.generators import kept
from ..settings import AutogradExplain
from . import guard, screen, transform
from .apart import Apart
from .cell_run import CellRun
from .cells import Cells, Run
from .completion import Completion
from .defining_cells import only_defines
from .explainer import Explain, Explainer, Recognise
from .folding import Folding
from .idle import Idle
from .oldest_torch import too_old
from .progress import progress_for
from .repeats import Repeats
from .shown_elsewhere import ShownElsewhere
from .warned import WarningHook
from .watched_cell import Count, WatchedCell, WatchOptions
from .without_graph import reaches_no_graph

if TYPE_CHECKING:
    from ..render.explanation import Explanation
    from ..render.shown import Shown

#: Words of which every warning that we know has one; other warnings cost nothing.
_SUBJECT = re.compile(
    "tensor|grad|scheduler|scaler|optimizer|volatile|cublas|torch|backward|anomaly|error detected"
    "|saved_variables|autograd|static_graph|check_reduction|broadcast_buffers|imaginary",
    re.I,
)
_MAX_NAMES = 3  #: listed in a line
_FIX = re.compile(r"\s*%%?autograd_fix\b")  #: of a cell whose text a rewrite is to replace
_SAME_CELL = 0.8  #: how alike two texts are that count as one cell, where cells have no id


class _Silent(NamedTuple):
    """What a cell that came to its end did wrong, and may well mean; `unseen` as of `_all_well`."""

    alarms: list[Explanation]
    notes: list[Explanation]
    unseen: tuple[str, ...]


class Session:
    """Watches one shell.  `last` is the latest Explanation: data, no tensor, no frame."""

    def __init__(
        self,
        shell: Any,
        explain: Explain,
        recognise: Recognise,
        told: int | None = None,
        warm_up: Callable[[], Iterator[None]] | None = None,
    ) -> None:
        """`told`: the id of an error that a session before this one has dealt with; `warm_up`: what
        can be loaded before the first failure, in steps."""
        self.shell = shell
        self.settings, refused = AutogradExplain.of(shell)
        for line in refused:
            guard.remark(line)
        self.cells = Cells(shell)
        self.last: Explanation | None = None
        self.last_cell: int | None = None
        self.watch_all: WatchOptions | None = None
        self.recording: Any = None
        self.apart = Apart()
        self.explainer = Explainer(shell, self.cells, self.settings, explain, recognise, self.apart)
        self._repeats = Repeats()
        self._visits: dict[int, CellRun] = {}
        self._watch_next: Run | None = None
        self._error_at_load = id(getattr(sys, "last_value", None))
        self._told = told
        self._warning_hook: WarningHook | None = None
        self._folding = Folding(shell, self._is_folded)
        self._idle = Idle(shell, warm_up, self._is_busy)
        self._elsewhere = ShownElsewhere(shell, self._on_shown)
        self._completion = Completion(shell, self.settings, lambda: self.last, self._tensors)

    # Loading and unloading

    def install(self) -> None:
        self.shell.configurables.append(self.settings)
        self.settings.observe(self._tell_anew, "language")
        self.shell.events.register("pre_run_cell", self._before)
        self.shell.events.register("post_run_cell", self._after)
        transform.install(self.shell)
        self._warning_hook = WarningHook(self._on_warning)
        self._folding.install()
        self._elsewhere.install()
        self._completion.install()
        release = too_old()
        if release is not None:
            screen.show_line("old_torch", self.settings.language, version=release)

    def remove(self) -> None:
        for visit in self._visits.values():
            self._leave(visit)
        self._visits.clear()
        for event, callback in (("pre_run_cell", self._before), ("post_run_cell", self._after)):
            self.shell.events.unregister(event, callback)
        transform.remove(self.shell)
        if self.settings in self.shell.configurables:
            self.shell.configurables.remove(self.settings)
        self.settings.unobserve(self._tell_anew, "language")
        if self._warning_hook is not None:
            self._warning_hook.remove()
        self._idle.end()
        self._folding.remove()
        self._elsewhere.remove()
        self._completion.remove()
        self.recording = None

    def _tell_anew(self, change: Any) -> None:
        """The latest report in the language that was just set."""
        with guard.guarded("language"):
            self.last = self.last and self.last.in_language(change.new)

    # A cell's beginning and end

    @kept()
    def _before(self, info: Any) -> None:
        self.apart.remember_torch()
        with self.apart, guard.guarded("before the cell"):
            outer = self.cells.running
            run = self.cells.start(info)
            if run is None or outer is not None:
                return  # a cell run by a cell magic belongs to the cell that the user typed
            visit = CellRun(run, id(getattr(sys, "last_value", None)))
            self._visits[id(run)] = visit
            choice = self._choice_for(run)
            if choice is not None:
                self._watch(visit, choice)

    @kept()
    def _after(self, result: Any) -> None:
        with self.apart:
            self._work_after(result)

    def _work_after(self, result: Any) -> None:
        try:
            with guard.guarded("after the cell"):
                run = self.cells.finish(result)
                if run is not None and self.cells.running is None:
                    self._finish(run, result)
        except KeyboardInterrupt:
            # IPython would show a second traceback; the user wants the prompt back.
            screen.show_line("interrupted", self.settings.language)
        guard.tell(self.settings.language)
        if self.settings.enabled:
            self._idle.begin()

    def _is_busy(self) -> bool:
        return self.cells.outermost is not None

    def _finish(self, run: Run, result: Any) -> None:
        seen = self._visits.pop(id(run), None)
        visit = seen or CellRun(run, self._error_at_load)
        try:
            self._leave(visit)
            error = self._error_of(result, visit)
            if error is not None:
                run.success = False
            self._tell(visit, error)
            if error is None and seen is None:  # the cell that loaded us
                self._look_back()
        finally:
            if visit.check is not None:
                visit.check.discard()

    def _tell(self, visit: CellRun, error: BaseException | None) -> None:
        progress = progress_for(self.shell, visit.options(self.settings.options()).language)
        failure = None
        silent = None
        try:
            if isinstance(error, Exception):
                failure = self.explainer.error(error, visit, progress)
            if error is None and visit.check is not None:
                silent = self._silent(visit, visit.check)
            found = self.explainer.settle_warnings(visit, failure, failed=error is not None)
        except BaseException:
            if progress is not None and progress.begun:
                progress.abandon()
            raise
        for alarm in () if silent is None else silent.alarms:
            self._show(alarm, visit)  # before what torch itself has warned of: that is seen last
        for explanation in found:
            if explanation is found[-1] and progress is not None and progress.begun:
                self.last, self.last_cell = explanation, visit.run.number
                progress.finish(self._counted(explanation, visit))
                continue
            shown = self._show(explanation, visit)
            if explanation is failure:
                self._try_later(failure, visit, shown)
        if failure is not None and (visit.check is None or visit.check.choice.automatic):
            self._watch_next = visit.run
        if silent is not None and visit.check is not None:
            self._on_success(visit, visit.check, silent)

    def _look_back(self) -> None:
        """Explain the failure that was there when the extension was loaded."""
        error = getattr(sys, "last_value", None)
        visit = self._failed_before(error)
        if visit is None or not isinstance(error, Exception):
            return
        anew = self.cells.bound_since(visit.run)
        if not anew:
            self._tell(visit, error)
            return
        if self.explainer.error(error, visit) is None:
            return  # not autograd's
        names = ", ".join(f"`{name}`" for name in sorted(anew)[:_MAX_NAMES])
        cell = f"In[{visit.run.number}]"
        screen.show_line("bound_since", self.settings.language, cell=cell, names=names)

    def _failed_before(self, error: BaseException | None) -> CellRun | None:
        """The cell that raised an error before the extension was loaded."""
        if error is None or id(error) != self._error_at_load or id(error) == self._told:
            return None
        run = self.cells.failed_before_loading(error)
        return None if run is None else CellRun(run, self._error_at_load)

    def _error_of(self, result: Any, visit: CellRun) -> BaseException | None:
        """What the cell raised, or showed without raising it (%run, %%capture, 7.34's %%time)."""
        error: BaseException | None = getattr(result, "error_in_exec", None)
        shown = getattr(sys, "last_value", None)
        if error is None and isinstance(shown, BaseException) and id(shown) != visit.error_before:
            error = shown
        return error or getattr(result, "error_before_exec", None)

    def _silent(self, visit: CellRun, check: WatchedCell) -> _Silent | None:
        """What a cell that came to its end did wrong; None where that could not be judged."""
        judged = check.signals()
        if judged is None:
            return None
        # What is sure has the time first: what is in doubt costs more runs of the cell.
        alarms = self.explainer.signals(visit, judged[0])
        shown, doubtful = self.explainer.decided(visit, judged[1])
        sure = (*judged[0], *shown)
        alarms += self.explainer.signals(visit, (*shown, *check.suspicions()))
        notes = self.explainer.doubts(visit, doubtful)
        told = self.explainer.told_once(visit, alarms)
        unseen = ("unexplained",) if sure or doubtful else ()
        return _Silent(told, notes, (*unseen, *(("not_run_again",) * visit.not_run_again)))

    def _on_success(self, visit: CellRun, check: WatchedCell, silent: _Silent) -> None:
        alarms, notes, unseen = silent
        language = visit.options(self.settings.options()).language
        for note in notes:
            screen.show_finding("worth_a_look", language, note.headline)
        self._keep(notes, visit, told=bool(alarms or visit.warnings))
        if not alarms and not notes and not visit.warnings:
            self._all_well(check, language, unseen)

    def _keep(self, notes: list[Explanation], visit: CellRun, *, told: bool) -> None:
        """The last report has the cell's notes; where there is none, the first note is it."""
        if notes and told and self.last is not None:
            self.last = self.last.with_notes(notes)
        elif notes:
            self.last, self.last_cell = notes[0].with_notes(notes[1:]), visit.run.number

    def _all_well(self, check: WatchedCell, language: str, unseen: tuple[str, ...]) -> None:
        """One quiet line: always where it was asked for this cell, else if there was anything; it
        says where the recorder could not look."""
        check.discard()  # nothing is tried any more, and what is touched now need not be copied
        seen = check.watched()
        unseen = (*unseen, *check.blind_spots())
        asked = check.choice.here or unseen or (seen is not None and seen.anything)
        if seen is None or check.choice.automatic or not asked:
            return
        counts = {"writes": _count(seen.writes, language), "nodes": _count(seen.nodes, language)}
        if not unseen:
            screen.show_line("nothing_wrong", language, **counts)
            return
        reasons = [screen.line(f"limit_{key}", language) for key in unseen]
        lead = screen.line("nothing_seen", language, **counts)
        screen.show_sentences((lead, *reasons), language)

    @kept()
    def _on_warning(self, text: str, frame: FrameType) -> None:
        visit = self._visit()
        if visit is None or not _SUBJECT.search(text) or self._warning_hook is None:
            return
        with self.apart, self._warning_hook.silence(), guard.guarded("warning"):
            self.explainer.warning(text, frame, visit)

    @kept()
    def _on_shown(self, error: Exception) -> None:
        """Explain what a callback raised, or an Output widget caught, where it is shown."""
        visit = self._visit()
        if not self.settings.enabled or "torch" not in sys.modules:
            return
        try:
            with self.apart:
                found = self.explainer.by_hand(error, visit)
                if found is not None:
                    self._show_here(found, visit)
        except KeyboardInterrupt:
            screen.show_line("interrupted", self.settings.language)
        if visit is not None:
            visit.error_before = id(error)
        guard.tell(self.settings.language)

    def _show_here(self, explanation: Explanation, visit: CellRun | None) -> None:
        self.last, self.last_cell = explanation, None if visit is None else visit.run.number
        with guard.guarded("show"):
            screen.show(self.shell, self._counted(explanation, None))

    def _visit(self) -> CellRun | None:
        """The visit of the cell that runs in this thread."""
        outermost = self.cells.outermost
        return None if outermost is None else self._visits.get(id(outermost))

    @kept()
    def explain(self, error: BaseException) -> Explanation | None:
        """Explain an exception that the user hands over; shows nothing."""
        visit = self._failed_before(error) or self._visit()
        with self.apart:
            found = self.explainer.by_hand(error, visit)
        if found is not None:
            self.last, self.last_cell = found, None if visit is None else visit.run.number
        return found

    def _tensors(self) -> list[str]:
        """The names of the session's tensors; none before torch is there."""
        from .looking import names_of_tensors

        return names_of_tensors(self) if "torch" in sys.modules else []

    def runs_only_a_line(self) -> bool:
        """Whether the cell that runs is one line, so that nothing else is lost with its text."""
        outermost = self.cells.outermost
        return outermost is not None and len(outermost.text.strip().splitlines()) == 1

    # Watching

    @kept()
    def watch_this_cell(self, choice: WatchOptions) -> None:
        """From here to the end of the running cell."""
        outermost = self.cells.outermost
        if outermost is None:
            return
        visit = self._visits.setdefault(id(outermost), CellRun(outermost, self._error_at_load))
        if visit.check is None:
            self._watch(visit, choice)
        else:
            visit.check.choice = choice

    def watch_no_more(self) -> None:
        """`%autograd_check off`: from this cell on."""
        self.watch_all = None
        visit = self._visit()
        if visit is not None and visit.check is not None:
            self._leave(visit)
            visit.check.discard()
            visit.check = None

    def _choice_for(self, run: Run) -> WatchOptions | None:
        failed = self._watch_next
        again = failed is not None and not _FIX.match(run.text) and same_cell(run, failed)
        if again:
            self._watch_next = None
        if self.watch_all is not None:
            return self.watch_all
        wanted = self.settings.record_next_run and self.settings.enabled
        return WatchOptions(automatic=True) if again and wanted else None

    def _watch(self, visit: CellRun, choice: WatchOptions) -> None:
        visit.check = check = WatchedCell(choice, self.shell)
        check.enter(self.cells.program(), visit.run.number, self.recording)
        self.recording = check.recording or self.recording
        if visit.options(self.settings.options()).verify and self._may_fail(visit.run.raw):
            check.take_checkpoint()

    def _may_fail(self, text: str) -> bool:
        """Whether autograd may fail in a cell, so that a copy of the session is of use."""
        with guard.guarded("checkpoint"):
            return not (only_defines(text) or reaches_no_graph(text, self.shell.user_ns))
        return True

    def _leave(self, visit: CellRun) -> None:
        if visit.check is not None:
            visit.check.leave()

    # Screen

    @kept()
    def _is_folded(self, error: BaseException) -> bool:
        """Whether a traceback that is being shown is that of an error which gets a report; when it
        is asked for again (`%tb`), it is shown in full."""
        visit = self._visit()
        before = self._error_at_load if visit is None else visit.error_before
        if self.settings.traceback == "full" or id(error) == before:
            return False
        with self.apart:
            return self.explainer.recognises(error, visit)

    def _show(self, explanation: Explanation, visit: CellRun) -> Any:
        self.last, self.last_cell = explanation, visit.run.number
        with guard.guarded("show"):
            if visit.later is not None:
                return screen.show_for_now(self.shell, explanation)
            screen.show(self.shell, self._counted(explanation, visit))
        return None

    def _counted(self, explanation: Explanation, visit: CellRun | None) -> Shown:
        """The report, or a line where it was shown before."""
        if self.settings.repeats == "full":
            return explanation
        run = None if visit is None else visit.run
        in_kernel = screen.in_kernel(self.shell)
        with guard.guarded("repeat"):
            again = self._repeats.repeated(explanation, run, self.cells.runs, in_kernel)
            return again or explanation
        return explanation

    def _try_later(self, failure: Explanation, visit: CellRun, shown: Any) -> None:
        """The report again, with what trying its rewrites has shown."""
        tried = self.explainer.tried(failure, visit)
        if tried is not None:
            self.last = tried
            with guard.guarded("show"):
                screen.show_instead(self.shell, tried, shown)


def _count(found: Count, language: str) -> str:
    """How many there were, as far as they were counted."""
    number, complete = found
    return str(number) if complete else screen.line("more_than", language, count=number)


def same_cell(run: Run, other: Run) -> bool:
    """Whether two runs are of one cell, which the user may have edited in between."""
    if run.cell_id is not None and other.cell_id is not None:
        return run.cell_id == other.cell_id
    if run.text.strip() == other.text.strip():
        return True
    import difflib

    likeness = difflib.SequenceMatcher(None, run.text, other.text)
    return likeness.quick_ratio() >= _SAME_CELL and likeness.ratio() >= _SAME_CELL
