"""What the user can set: `%config AutogradExplain` lists it and changes it.

The stages get an `Options`, plain frozen data; only interception knows traitlets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from traitlets import Bool, Enum, Float, List, TraitError, Unicode, default, validate
from traitlets.config import Configurable

LANGUAGES = ("en", "ja", "zh")
DETAILS = ("short", "full")
TRACEBACKS = ("folded", "full")
FIXES = ("replace", "insert")
REPEATS = ("short", "full")
ALWAYS = "always"
ENVIRONMENT = "AUTOGRAD_EXPLAIN_LANG"


@dataclass(frozen=True)
class Options:
    """The settings as they were when a cell began.

    `verify` is `ALWAYS` where failures that were not watched are tried too.
    `language` is one of `LANGUAGES`.  `budget` is the number of seconds that trying the rewrites
    of one failure may take.  `causes` are folders with causes of the user's own.
    """

    language: str = "en"
    detail: str = "short"
    traceback: str = "folded"
    enabled: bool = True
    verify: bool | str = True
    budget: float = 20.0
    causes: tuple[str, ...] = ()
    record_next_run: bool = True
    fix: str = "replace"
    repeats: str = "short"


def language_of(tag: str) -> str | None:
    """The language that a tag or locale name means (`ja_JP.UTF-8`, `zh-Hant`), or None."""
    start = tag.strip().lower().replace("_", "-").split(".")[0].split("-")[0]
    return start if start in LANGUAGES else None


def default_language(environment: Mapping[str, str] = os.environ) -> str:
    """AUTOGRAD_EXPLAIN_LANG, else the locale, else English."""
    names = (ENVIRONMENT, "LC_ALL", "LC_MESSAGES", "LANG")
    for name in names:
        value = environment.get(name, "")
        if value:
            # As in C: the first variable that is set decides, even if we lack its language.
            found = language_of(value)
            if found or name != ENVIRONMENT:
                return found or "en"
    return "en"


def rank_of(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank that torch's launchers gave this process; None where it is the only one."""
    rank, size = environment.get("RANK", ""), environment.get("WORLD_SIZE", "")
    return int(rank) if rank.isdigit() and size.isdigit() and int(size) > 1 else None


class AutogradExplain(Configurable):
    """Settings of autograd_explain."""

    language = Unicode(
        help="Language of the explanations: 'en', 'ja' or 'zh'; 'auto' follows "
        "the environment variable AUTOGRAD_EXPLAIN_LANG, then the locale."
    ).tag(config=True)
    detail = Enum(DETAILS, "short", help="How much to show under a traceback.").tag(config=True)
    traceback = Enum(
        TRACEBACKS,
        "folded",
        help="Of errors that are explained, show the frames of libraries on a line each, or in "
        "full; %tb always shows them in full.",
    ).tag(config=True)
    enabled = Bool(True, help="Explain failing cells and autograd warnings.").tag(config=True)
    verify = Enum(
        (True, False, ALWAYS),
        True,
        help="Try the rewrites in another process when a watched cell fails; 'always': after the "
        "report of one that was not watched too, where its cells ran quickly.",
    ).tag(config=True)
    budget = Float(20.0, help="Seconds that trying the rewrites of a failure may take.").tag(
        config=True
    )
    causes = List(Unicode(), help="Folders with causes of your own.").tag(config=True)
    record_next_run = Bool(
        True, help="After a failure that was not watched, watch the next run of the same cell."
    ).tag(config=True)

    fix = Enum(
        FIXES,
        "replace",
        help="Whether %autograd_fix, alone in a cell, takes that cell's place or makes a new one.",
    ).tag(config=True)

    repeats = Enum(
        REPEATS,
        "short",
        help="Of a failure that was reported before and is the same in everything: a line with "
        "their number, or the report in full.",
    ).tag(config=True)

    @default("language")
    def _default_language(self) -> str:
        return default_language()

    @validate("language")
    def _check_language(self, proposal: Mapping[str, Any]) -> str:
        value = str(proposal["value"])
        found = default_language() if value == "auto" else language_of(value)
        if found is None:
            raise TraitError(f"language must be 'en', 'ja', 'zh' or 'auto', not {value!r}")
        return found

    @validate("budget")
    def _check_budget(self, proposal: Mapping[str, Any]) -> float:
        value = float(proposal["value"])
        if not 0 < value < float("inf"):
            raise TraitError(f"budget must be a positive number of seconds, not {value!r}")
        return value

    @validate("causes")
    def _check_causes(self, proposal: Mapping[str, Any]) -> list[str]:
        folders = [os.path.expanduser(folder) for folder in proposal["value"]]
        missing = [folder for folder in folders if not os.path.isdir(folder)]
        if missing:
            raise TraitError(f"causes: no such folder: {', '.join(missing)}")
        return folders

    @classmethod
    def of(cls, shell: Any) -> tuple[AutogradExplain, list[str]]:
        """The settings of a shell's configuration, and why some of it was left out.

        What `%config` refuses stays in IPython's configuration all the same.
        """
        with suppress(TraitError):
            return cls(parent=shell), []
        made, refused = cls(), []
        for name, value in shell.config[cls.__name__].items():
            try:
                setattr(made, name, value)
            except TraitError as error:
                refused.append(f"{name} is left as it was: {error}")
        return made, refused

    def options(self) -> Options:
        return Options(
            language=self.language,
            detail=self.detail,
            traceback=self.traceback,
            enabled=self.enabled,
            verify=ALWAYS if self.verify == ALWAYS else bool(self.verify),
            budget=self.budget,
            causes=tuple(self.causes),
            record_next_run=self.record_next_run,
            fix=self.fix,
            repeats=self.repeats,
        )
