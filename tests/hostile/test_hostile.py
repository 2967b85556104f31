"""After hostile programs the world is as without us, time and memory are bounded, text is escaped.

By default every fortieth one in hook mode and every eightieth in check mode, where rewrites are
tried; AUTOGRAD_EXPLAIN_HOSTILE=all takes them all in both.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import warm
from hostile import run
from hostile.world import Describer, differences

EVERYTHING = os.environ.get("AUTOGRAD_EXPLAIN_HOSTILE") == "all"
PARTS = {"hook": 40, "check": 80}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("mode", sorted(PARTS))
def test_the_world_is_as_without_us(mode: str, tmp_path: Path) -> None:
    part = 1 if EVERYTHING else PARTS[mode]
    rows = judged(mode, tmp_path, "--part", str(part))
    assert len(rows) >= 100 // part
    assert not {f"{r['family']}/{r['name']}": r["faults"] for r in rows if r["faults"]}


def test_what_acts_twice_is_found(tmp_path: Path) -> None:
    """The judgement itself: with every cell run twice, what has effects differs."""
    acting = ("descriptors", "command", "subprocess", "sockets", "threads", "fork")
    every = [] if EVERYTHING else [part for name in acting for part in ("--named", name)]
    rows = judged("twice", tmp_path, "--only", "world", *every)
    found = [r["name"] for r in rows if [f for f in r["faults"] if f != "no report"]]
    assert {*acting} <= {*found}


def judged(mode: str, folder: Path, *more: str) -> list[dict[str, Any]]:
    out = folder / "rows.json"
    ended = warm.run(
        *(run.__file__, "--mode", mode, "--quiet", "--json", out, *more),
        folder=folder,
        seconds=1400,
    )
    assert ended.status == 0, ended.err
    rows: list[dict[str, Any]] = json.loads(out.read_text())
    return rows


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("text", "a\x1b[31mb"),
        ("terminal", "a\x1b]0;title\x07"),
        ("terminal", "\x9b31m"),
        ("text", "\u202egnp.exe"),
        ("markdown", "a\u061cb"),
        ("html", "<img src=x onerror=alert(1)>"),
        ("html", "<a href='javascript:alert(1)'>x</a>"),
        ("html", "<b onclick='x'>y</b>"),
        ("html", "<script>x</script>"),
    ],
)
def test_what_would_act_on_a_screen_is_found(form: str, text: str) -> None:
    assert list(run.escapes(form, text))


def test_colours_and_our_own_markup_are_no_fault() -> None:
    assert not list(run.escapes("terminal", "\x1b[1;31mred\x1b[0m"))
    assert not list(run.escapes("html", '<div class="axg"><code>&lt;img&gt;</code></div>'))


def test_a_changed_object_is_seen() -> None:
    class Box:
        def __init__(self, value: Any) -> None:
            self.value = value

    def told(value: Any) -> Any:
        return Describer().of(Box(value))

    assert list(differences(told([1, {"a": 2}]), told([1, {"a": 3}])))
    assert not list(differences(told([1, {"a": 2}]), told([1, {"a": 2}])))
