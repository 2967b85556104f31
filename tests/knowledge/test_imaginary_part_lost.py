"""Complex values that lose their imaginary part: by a cast, by a write into a real tensor."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

HEAD = """# %%
import torch
from torch import nn
torch.manual_seed(0)
gain = torch.ones(8, requires_grad=True)
signal = torch.randn(4, 8)
# %%
"""
END = "\nloss = out.abs().square().mean()\nloss.backward()\n"
#: The program, the first name, the statement to blame, what the first rewrite brings in.
PROGRAMS = {
    "a row of a buffer of a class": (
        "class Frames:\n    def __init__(self, n):\n        self.rows = torch.zeros(n, 5)\n"
        "    def fill(self, x):\n        for i, row in enumerate(x):\n"
        "            self.rows[i] = torch.fft.rfft(row)\n        return self.rows\n"
        "out = Frames(4).fill(signal * gain)",
        "self.rows",
        "self.rows[i] = torch.fft.rfft(row)",
        "        self.rows = torch.zeros(n, 5, dtype=torch.cfloat)",
    ),
    "copy_ into a buffer of double precision": (
        "wave = torch.fft.fft(gain.double() * signal[0])\n"
        "out = signal.new_empty(8, dtype=torch.float64)\nout.copy_(wave)",
        "out",
        "out.copy_(wave)",
        "out = signal.new_empty(8, dtype=torch.cdouble)",
    ),
    "a cast behind an inverse transform": (
        "def smooth(x):\n    back = torch.fft.ifft(torch.fft.fft(x * gain))\n"
        "    return back.float()\nout = smooth(signal)",
        "back",
        "return back.float()",
        "    return back.real.float()",
    ),
    "to another type": (
        "spectrum = torch.fft.rfft(signal * gain)\nout = spectrum.to(torch.float32)",
        "spectrum",
        "out = spectrum.to(torch.float32)",
        "out = spectrum.real.to(torch.float32)",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, first, blamed, brought = PROGRAMS[name]
    cells = cells_of(HEAD + text + END)
    found = play(cells)
    assert found.trouble == ""
    assert found.diagnosis is not None, found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert finding.cause == "imaginary_part_lost"
    assert finding.tensors[0].names[0] == first
    assert finding.events[0].place is not None
    assert finding.events[0].place.source == blamed
    assert all(e.relation is None for e in finding.events)  # no real tensor "had a graph"
    repaired = edited(cells, rewrites[0])
    assert brought in repaired[1].splitlines()
    run(repaired)
    assert play(repaired).diagnosis is None


@pytest.mark.parametrize(
    "text",
    [
        "kept = torch.zeros(4, 5)\nkept[0] = torch.fft.rfft(signal[0])\n",  # data
        "shown = torch.fft.ifft(signal).float()\n",
        "with torch.no_grad():\n    seen = torch.fft.fft(gain * signal[0]).float()\n",
        "out = torch.fft.rfft(gain * signal[0])\nprint(out.detach().float())\n",
        "bins = torch.fft.fft(gain * signal[0]).to(torch.int64)\n",  # nor has it with both parts
        "out = torch.zeros(4, 5, dtype=torch.cfloat)\nout[0] = torch.fft.rfft(gain * signal[0])\n",
        "out = torch.zeros(4, 5)\nout[0] = torch.fft.rfft(gain * signal[0]).real\n",
    ],
)
def test_what_loses_no_gradient_stays_quiet(text: str) -> None:
    found = play(cells_of(HEAD + text))
    assert found.diagnosis is None and found.trouble == ""
