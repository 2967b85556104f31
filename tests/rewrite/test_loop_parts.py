"""Parts of a tensor that are given another shape in a comprehension or a loop over them."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result

from autograd_explain.rewrite.transforms.out_of_place import out_of_place

BODIES = [
    ("return [p.squeeze_(0) for p in x.split(1)]", "return [p.squeeze(0) for p in x.split(1)]"),
    ("return [p.mul_(2) for p in x.split(1)]", None),
    # a value that is written may be meant for whoever looks into the same memory
    ("y = x * 2\nz = {k: torch.relu_(p) for k, p in zip('ab', y.chunk(2))}\nreturn z", None),
    ("y = x * 2\nz = [p.mul_(2).squeeze_(0) for p in y.split(1)]\nreturn y, z", None),
    ("return {k: p.t_() for k, p in enumerate(x)}", None),
    ("y = x.unbind()\nz = [p.unsqueeze_(0) for p in y]\nreturn y", None),
    ("return [p.unsqueeze_(0) for p in x]", None),  # may be the caller's list
    ("return [(p.unsqueeze_(0), p) for p in x.unbind()]", None),
    (
        "for i, p in enumerate(x.unbind()):\n    z.append(p.t_())",
        "for i, p in enumerate(x.unbind()):\n    z.append(p.t())",
    ),
    (
        "for p in x.unbind():\n    z.append(p.t_())\n    w.append(p)",
        "for p in x.unbind():\n    p = p.t()\n    z.append(p)\n    w.append(p)",
    ),
]


@pytest.mark.parametrize(("body", "after"), BODIES, ids=[b for b, _ in BODIES])
def test_part(body: str, after: str | None) -> None:
    def wrapped(text: str) -> str:
        return "def f(x, z, w):\n" + "".join(f"    {line}\n" for line in text.splitlines())

    program = program_of(wrapped(body))
    needle = next(line for line in body.splitlines() if "_(" in line)
    found = result(out_of_place(program, at(program, needle, cell=2), "p"))
    assert found == (None if after is None else wrapped(after))
