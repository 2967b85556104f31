"""What the extension says about each cause's own case, found out in other processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..model import Diagnosis
from ..search.causes import Cause

_MOST = 4  #: processes; each loads torch
_SECONDS = 600


def played(causes: Iterable[Cause], verify: bool = True) -> dict[str, Diagnosis | None]:
    """The diagnosis of each cause's case, None where nothing was explained."""
    folders = [c.folder for c in causes if (c.folder / "case.py").exists()]
    count = min(_MOST, os.cpu_count() or 1, max(len(folders), 1))
    with tempfile.TemporaryDirectory() as scratch:
        outs = [Path(scratch, f"{number}.pickle") for number in range(count)]
        parts = [folders[number::count] for number in range(count)]
        players = [_start(out, verify, p) for out, p in zip(outs, parts, strict=True)]
        try:
            for player in players:
                player.wait(_SECONDS)
        finally:
            for player in players:
                player.kill()  # nothing, where it has ended
                player.wait()
        return {name: found for out in outs for name, found in _read(out).items()}


def _start(out: Path, verify: bool, folders: Sequence[Path]) -> subprocess.Popen[bytes]:
    how = "verify" if verify else "no-verify"
    command = [sys.executable, "-m", f"{__package__}.player", str(out), how, *map(str, folders)]
    # A case may print, plot or leave files behind: not here, and not where the user stands.
    nothing = subprocess.DEVNULL
    environment = {**os.environ, "AUTOGRAD_EXPLAIN_LANG": "en", "MPLBACKEND": "agg"}
    return subprocess.Popen(command, cwd=out.parent, env=environment, stdin=nothing, stdout=nothing)


def _read(out: Path) -> dict[str, Diagnosis | None]:
    return dict(pickle.loads(out.read_bytes())) if out.exists() else {}
