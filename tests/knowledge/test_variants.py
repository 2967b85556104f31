"""Further causes of the same messages: what each program is taken for, and the line repaired."""

from __future__ import annotations

from itertools import pairwise

import pytest
from knowledge.played import edited, explained
from knowledge.test_cases import run
from knowledge.variants import PROGRAMS

from autograd_explain.render.topic_content import cells_of

TORCH = "# %%\nimport torch\nfrom torch import nn\n"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, cause, variant, line = PROGRAMS[name]
    cells = cells_of(TORCH + "# %%" + text)
    diagnosis = explained(cells)
    finding, rewrites = diagnosis.finding, diagnosis.rewrites
    assert (finding.cause, finding.variant) == (cause, variant)
    if not line:
        assert rewrites == () or name == "unscaled twice"
        return
    assert rewrites
    repaired = edited(cells, rewrites[0])
    rows = [row for cell in repaired for row in cell.splitlines()]
    assert line in rows
    assert not any(row == after for row, after in pairwise(rows) if row.strip())  # put in once
    run(repaired)
