"""Values that a loop or a closure carries from one backward to the next."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, rewritten, spot

from autograd_explain.rewrite.transforms.detach import bound_again
from autograd_explain.rewrite.transforms.numpy_detour import in_torch
from autograd_explain.rewrite.transforms.out_of_place import out_of_place
from autograd_explain.rewrite.transforms.recompute import repeat_inside
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.uncut import apply_patches


def test_a_list_is_emptied_after_its_use() -> None:
    before = "def finish(self):\n    loss.backward()  # go\n    self.rewards.clear()"
    after = (
        "def finish(self):\n    loss.backward()  # go\n    self.log_probs.clear()\n"
        "    self.rewards.clear()"
    )
    cleared = "self.log_probs.clear()"
    assert rewritten(lambda p, at: Spot(p, at).behind(cleared), before, "loss.backward") == after


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("for s in states:\n    loss.backward()\n    v = v_next", 3),
        ("for s in states:\n    if s:\n        loss.backward()\n    v, n = v_next, 1", 4),
        ("for s in states:\n    v = f(s)\n    loss.backward()", None),
        ("loss.backward()\nv = v_next", None),
        ("for s in states:\n    loss.backward()\nv = v_next", None),
    ],
)
def test_where_a_name_gets_its_next_value(text: str, line: int | None) -> None:
    program = program_of(text)
    place = bound_again(program, at(program, "loss.backward"), "v")
    assert (None if place is None else place.line) == line


CLOSURE = "loss = energy(x)\ndef closure():\n    opt.zero_grad()\n    loss.backward()\n"


def test_a_loss_is_computed_inside_the_closure() -> None:
    program = program_of(CLOSURE)
    edits = repeat_inside(program, at(program, "loss.backward"), [at(program, "energy")])
    assert edits is not None
    assert edits[0].new_source == CLOSURE.replace(
        "    loss.backward", "    loss = energy(x)\n    loss.backward"
    )


def test_a_term_of_the_loss_is_computed_before_the_closure_first_reads_it() -> None:
    code = CLOSURE.replace("    loss.backward", "    total = f(x) + loss\n    total.backward")
    program = program_of(code)
    edits = repeat_inside(program, at(program, "total.backward"), [at(program, "energy")])
    assert edits is not None
    assert edits[0].new_source == code.replace(
        "    total = f", "    loss = energy(x)\n    total = f"
    )


def test_all_that_the_loss_is_made_of_is_computed_inside_the_closure() -> None:
    body = "pred = net(x)\n{0}loss = energy(pred)\n"
    code = "def fit(x):\n    " + body.format("    ")
    closure = "    def closure(y=0):\n        loss.backward()\n    opt.step(closure)\n"
    program = program_of(code + closure)
    old = [at(program, "net"), at(program, "energy")]
    edits = repeat_inside(program, at(program, "loss.backward"), old)
    assert edits is not None
    inside = "        " + body.format("        ")
    assert edits[0].new_source == code + closure.replace("        loss", inside + "        loss")
    program = program_of(code + closure.replace("y=0", "x=0"))
    assert repeat_inside(program, at(program, "loss.backward"), old) is None


def test_a_closure_that_is_a_method_computes_what_another_method_keeps() -> None:
    code = (
        "class Fit:\n    def closure(self):\n        self.loss.backward()\n"
        "        return self.loss\n    def run(self):\n        self.loss = self.energy(x)\n"
        "        self.opt.step(self.closure)\n"
    )
    program = program_of(code)
    old = [at(program, "self.energy")]
    edits = repeat_inside(program, at(program, "self.loss.backward"), old)
    assert edits is not None
    assert edits[0].new_source == code.replace(
        "        self.loss.backward",
        "        self.loss = self.energy(x)\n        self.loss.backward",
    )
    program = program_of(code.replace("def run(self)", "def run(self, x)"))
    old = [at(program, "self.energy")]
    assert repeat_inside(program, at(program, "self.loss.backward"), old) is None


def test_not_inside_a_closure_that_has_its_own_names() -> None:
    program = program_of(CLOSURE.replace("closure()", "closure(x)"))
    assert repeat_inside(program, at(program, "loss.backward"), [at(program, "energy")]) is None
    program = program_of(CLOSURE.replace("energy(x)", "loss + energy(x)"))
    assert repeat_inside(program, at(program, "loss.backward"), [at(program, "energy")]) is None


ELEMENT = """
def forward(self, x):
    skips = [f(x) for f in self.down]
    for up, s in zip(self.up, reversed(skips)):
        x = up(x) + F.relu(s, inplace=True)
    return x
"""


def test_an_element_nobody_looks_at_again_need_not_be_rebound() -> None:
    after = ELEMENT.lstrip("\n").replace("F.relu(s, inplace=True)", "F.relu(s)")
    assert rewritten(out_of_place, ELEMENT, "F.relu") == after


@pytest.mark.parametrize("tail", ["return x, skips", "return x + sum(skips)"])
def test_an_element_of_a_list_read_later_stays(tail: str) -> None:
    text = ELEMENT.replace("return x\n", f"{tail}\n")
    found = rewritten(out_of_place, text, "F.relu")
    assert found is None or "F.relu(s)" not in found.replace("s = F.relu(s)", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("b = torch.from_numpy(np.exp(-d.numpy()))", "b = torch.exp(-d)"),
        (
            "b = 2 * torch.tensor(np.sum(d.numpy(), axis=1) + 1)",
            "b = 2 * (torch.sum(d, axis=1) + 1)",
        ),
        ("b = torch.from_numpy(np.interp(d.numpy(), xs, ys))", None),
        ("b = np.exp(d.numpy())", None),
        (
            "b = torch.tensor(np.exp(d.numpy()), dtype=torch.float64)",
            "b = torch.exp(d).to(torch.float64)",
        ),
    ],
)
def test_a_round_trip_through_numpy_stays_in_torch(before: str, after: str | None) -> None:
    program = program_of(before)
    place = spot(program, "d.numpy()")
    left = program.expression_at(place)
    assert left is not None
    edits = apply_patches(in_torch(program, place, left) or ())
    assert (edits[0].new_source if edits else None) == after
