"""The caller's copy, where a function writes to the tensor it was given."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rewrite.rewriting import applied, at, program_of

from autograd_explain.knowledge.saved_value_overwritten.clone_for_call import clone_for_call

HELPER = "def zero_small(t, eps=0.1):\n    t[t < eps] = 0\n"
SWAPPED = """
def advance(cur, nxt):
    nxt[1:] = cur[1:] * cur[:-1]
def simulate(a, steps):
    b = torch.zeros_like(a)
    for _ in range(steps):
        advance(a, b)
        a, b = b, a
    return a
"""
METHODS = """
class Recorder:
    def log(self, quat):
        self.rows.append(self._row(quat))
    def _row(self, quat):
        quat[0] *= -1
        return quat.tolist()
"""
#: The definition, the calling cell, the write, its parameter, the calls, and the line brought in.
CALLS = {
    "a helper that returns nothing": (
        HELPER, "zero_small(h)\ny = h.sum()", "t[t", "t", ["zero_small(h)"], "h = h.clone()",
    ),
    "by keyword": (
        HELPER, "zero_small(eps=0.2, t=self.h)", "t[t", "t", ["zero_small(eps"],
        "self.h = self.h.clone()",
    ),
    "a view of what is written": (
        HELPER, "zero_small(h[:, 0])", "t[t", "t", ["zero_small(h"], "h = h.clone()",
    ),
    "out of the no_grad block": (
        HELPER, "with torch.no_grad():\n    zero_small(h)\ny = h.sum()", "t[t", "t",
        ["zero_small(h)"], "h = h.clone()\nwith torch.no_grad():",
    ),
    "a block that made the tensor itself": (
        HELPER, "with torch.no_grad():\n    h = f(x)\n    zero_small(h)", "t[t", "t",
        ["zero_small(h)"], "    h = h.clone()\n    zero_small(h)",
    ),
    "buffers that take turns": (
        SWAPPED, "u = simulate(u, 3)", "nxt[1:]", "nxt", ["u = simulate", "advance(a, b)"],
        "        b = b.clone()\n        advance(a, b)",
    ),
    "a method called by its class": (
        METHODS, "Recorder._row(rec, q)", "quat[0]", "quat", ["Recorder._row("],
        "q = q.clone()\nRecorder._row(rec, q)",
    ),
    "through two methods": (
        METHODS, "rec.log(q)", "quat[0]", "quat", ["rec.log(q)", "self._row(quat)"],
        "q = q.clone()\nrec.log(q)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_the_call_gets_a_copy_under_the_old_name(name: str) -> None:
    definition, call, write, parameter, chain, wanted = CALLS[name]
    assert wanted in _rewritten(definition, call, write, parameter, chain)


def test_a_local_that_nobody_reads_again_needs_no_line_of_its_own() -> None:
    text = _rewritten(
        HELPER, "def f(x):\n    h = x.exp()\n    zero_small(h)", "t[t", "t", ["zero_small(h)"]
    )
    assert "zero_small(h.clone())" in text


#: Nothing honest can be done at the call.
DECLINED = {
    "a generator writes later": (
        "def decayed(t):\n    yield t\n    t *= 0.9\n",
        "decayed(h)",
        "t *=",
    ),
    "a value of its own": ("def f(t):\n    t = t + 1\n    t *= 2\n", "f(h)", "t *="),
    "another function on the line": (HELPER, "other(h)", "t[t"),
    "many calls of one line": (HELPER, "[zero_small(v) for v in hs]", "t[t"),
    "a temporary": (HELPER, "zero_small(h + 1)", "t[t"),
}


@pytest.mark.parametrize("name", DECLINED)
def test_what_cannot_be_told_is_declined(name: str) -> None:
    definition, call, write = DECLINED[name]
    program = program_of(definition, call)
    assert clone_for_call(program, at(program, write), "t", [at(program, call, 3)]) is None


@pytest.mark.parametrize("other", ["kept = h", "state = {'h': h}", "kept, n = [h], 1"])
def test_another_name_that_is_read_later(other: str) -> None:
    name = other.partition(" ")[0].strip(",")
    program = program_of(HELPER, f"{other}\nzero_small(h)\nuse({name}, h)")
    call = [at(program, "zero_small(h)", 3)]
    assert clone_for_call(program, at(program, "t[t"), "t", call) is None


def _rewritten(definition: str, call: str, write: str, parameter: str, chain: Sequence[str]) -> str:
    program = program_of(definition, call)
    lines = [at(program, needle) for needle in chain]
    edits = clone_for_call(program, at(program, write), parameter, lines)
    return "\n".join(applied(program, edits))
