"""The saving and the overwriting statement of programs of many kinds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from notebook import cells_of
from shadow_notebook import fresh_session, history_of, marked, programs, run


@pytest.mark.parametrize("path", programs("programs"), ids=lambda p: p.stem)
def test_names_saver_and_writer(path: Path) -> None:
    cells = cells_of(path.read_text(encoding="utf-8"))
    with fresh_session():
        incident = run(cells)
    assert "modified by an inplace operation" in incident.message, incident.message
    history = history_of(incident)
    saved = next(history.graph.overwritten())
    start = time.thread_time()
    maker, writes = history.maker(saved.node), history.writes(saved)
    seconds = time.thread_time() - start
    assert maker is not None
    assert (maker.place.cell, maker.place.line) in marked(cells, "saved"), maker
    assert writes, history.steps
    assert (writes[0].place.cell, writes[0].place.line) in marked(cells, "wrote"), writes
    assert writes[0].order > maker.order
    assert seconds < 1
