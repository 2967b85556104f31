"""Completion of what our magics take, by IPython's own hook for commands (IPython 7 to 9).

What jedi knows of Python is added to what a hook gives, 200 names to `--`; of our magics' lines
IPython 8.6 and newer are asked to leave that out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..isolation.generators import kept
from ..settings import LANGUAGES, AutogradExplain
from .guard import guarded
from .looking import GRAPH_OPTIONS

if TYPE_CHECKING:
    from ..render.explanation import Explanation

_CHECK = ("--no-verify", "--budget", "--lang")
_VERIFY = ("--cell", "--file", "--budget")
_VERSION = "matcher_api_version"  #: where IPython looks for a matcher's
_HOOK = "complete_command"


class Completion:
    """The completers of one shell's magics."""

    def __init__(
        self,
        shell: Any,
        settings: AutogradExplain,
        last: Callable[[], Explanation | None],
        tensors: Callable[[], list[str]],
    ) -> None:
        self._shell = shell
        self._settings = settings
        self._last = last
        self._tensors = tensors
        self._completers: dict[str, Callable[[list[str]], list[str]]] = {
            "%autograd_check": lambda before: _check(before, ("on", "off", "status", "cell")),
            "%%autograd_check": lambda before: _check(before, ()),
            "%autograd_explain": self._entries,
            "%%autograd_explain": self._entries,
            "%autograd_fix": self._numbers,
            "%%autograd_fix": self._numbers,
            "%autograd_inspect": self._names,
            "%autograd_graph": self._graph,
            "%%autograd_verify": _verify,
        }

    def install(self) -> None:
        for command, complete in self._completers.items():
            self._shell.set_hook(_HOOK, _hook(complete), str_key=command)
        completer = self._shell.Completer
        if hasattr(completer, "custom_completer_matcher"):  # IPython 8.6
            completer.custom_matchers.append(_alone(completer, tuple(self._completers)))

    def remove(self) -> None:
        matchers = getattr(self._shell.Completer, "custom_matchers", [])
        matchers[:] = [each for each in matchers if getattr(each, "__module__", "") != __name__]
        table = self._shell.strdispatchers[_HOOK].strs
        for command in self._completers:
            chain = table.pop(command)
            others = [entry for entry in chain if entry[1].__func__.__module__ != __name__]
            if others:
                chain.chain = others
                table[command] = chain

    @kept()
    def _entries(self, before: list[str]) -> list[str]:
        from ..search.causes import causes

        return [] if before else ["--debug", *causes(self._settings.options().causes)]

    def _numbers(self, before: list[str]) -> list[str]:
        last = self._last()
        count = 0 if last is None else len(last.diagnosis.rewrites)
        numbers = [str(number) for number in range(1, count + 1)]
        options = [] if "--write" in before else ["--write"]
        return [*([] if set(numbers) & set(before) else numbers), *options]

    @kept()
    def _names(self, before: list[str]) -> list[str]:
        return [name for name in self._tensors() if name not in before]

    def _graph(self, before: list[str]) -> list[str]:
        if before[-1:] == ["--distance"]:
            return []
        if before[-1:] == ["--around"]:
            return self._names(before)
        options = [option for option in GRAPH_OPTIONS if option not in before]
        named = [word for word in before if not word.startswith("--")]
        return (
            options if len(named) > before.count("--around") else [*self._names(before), *options]
        )


def _check(before: list[str], states: tuple[str, ...]) -> list[str]:
    if before[-1:] == ["--lang"]:
        return list(LANGUAGES)
    if before[-1:] == ["--budget"]:
        return []
    left = () if set(states).intersection(before) else states
    return [*left, *(option for option in _CHECK if option not in before)]


def _verify(before: list[str]) -> list[str]:
    """The options; their values are the user's."""
    taken = before[-1:] and before[-1] in _VERIFY
    return [] if taken else [option for option in _VERIFY if option not in before]


def _alone(completer: Any, commands: tuple[str, ...]) -> Callable[[Any], Any]:
    """IPython's matcher for the hooks, which on our magics' lines keeps jedi's away too."""

    def autograd_explain_alone(context: Any) -> Any:
        if context.line_with_cursor.split(None, 1)[:1] not in ([each] for each in commands):
            return {"completions": []}
        return {**completer.custom_completer_matcher(context), "do_not_suppress": set()}

    setattr(autograd_explain_alone, _VERSION, 2)
    return autograd_explain_alone


def _hook(complete: Callable[[list[str]], list[str]]) -> Callable[..., list[str]]:
    """IPython's form: it binds the shell, and gives the line as far as the cursor."""

    def completer(shell: Any, event: Any) -> list[str]:
        with guarded("completion"):
            return complete(list(_before(event)))
        return []

    return completer


def _before(event: Any) -> Iterator[str]:
    """The arguments that stand complete before the one at the cursor."""
    line = event.text_until_cursor
    words = line.split()[1:]
    yield from words if not line or line[-1].isspace() else words[:-1]
