"""A helper's statement that waits for something its caller does later."""

from __future__ import annotations

from pathlib import Path

import pytest
from rewriting import applied, at, program_of

from autograd_explain.knowledge.silent_overwrite.defer_to_caller import wait_outside
from autograd_explain.model import Place

HELPER = """
def predict(model, binarizer, x):
    binarizer.binarize()
    out = model(x)
    binarizer.restore(model.layers)
    return out
"""
STEP = """
for x in xs:
    loss = predict(net, trainer.bin, x).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def waited(helper: str, step: str, inner: str = "restore") -> list[str] | None:
    program = program_of(helper, step)
    edits = wait_outside(
        program, at(program, "loss =", 3), at(program, inner, 2), at(program, "loss.backward", 3)
    )
    return None if edits is None else applied(program, edits)


def test_parameters_become_what_the_caller_passes() -> None:
    found = waited(HELPER, STEP)
    assert found is not None
    assert "restore" not in found[0] and "binarize()\n    out = model(x)\n    return" in found[0]
    assert "    loss.backward()\n    trainer.bin.restore(net.layers)\n    opt" in found[1]


def test_method_of_the_same_object() -> None:
    helper = """
class Trainer:
    def loss(self, x):
        out = self.net(x)
        self.ema.swap(target=self.net)
        return out
    def fit(self, x):
        loss = self.loss(x)
        loss.backward()
"""
    program = program_of(helper)
    edits = wait_outside(
        program, at(program, "loss ="), at(program, "swap"), at(program, "loss.backward")
    )
    (text,) = applied(program, edits)
    assert "        loss.backward()\n        self.ema.swap(target=self.net)\n" in text


def test_keyword_arguments() -> None:
    found = waited(HELPER, STEP.replace("trainer.bin, x", "x=x, binarizer=b"))
    assert found is not None and "b.restore(net.layers)" in found[1]


def test_comments_come_along() -> None:
    inner = "    binarizer.restore(model.layers)\n"
    helper = HELPER.replace(inner, f"    # real weights\n{inner[:-1]}  # again\n")
    found = waited(helper, STEP)
    assert found is not None and "#" not in found[0]
    assert "    # real weights\n    trainer.bin.restore(net.layers)  # again\n" in found[1]


DECLINED = [
    (HELPER.replace("    out =", "    if x is None:\n        return x\n    out ="), STEP),
    (HELPER, STEP + "\nshow(predict(net, trainer.bin, y))\n"),  # another caller needs it
    (HELPER.replace("return out", "return out, binarizer.real"), STEP),  # its effect is returned
    (HELPER.replace("return out", "binarizer.log()\n    return out"), STEP),
    (HELPER.replace("out = model(x)", "model = model.half()"), STEP),  # reads what it made
    (HELPER.replace("    binarizer.restore", "    if x:\n        binarizer.restore"), STEP),
    ("@cached" + HELPER, STEP),
    (HELPER, STEP.replace("predict(net, trainer.bin, x)", "predict(*given)")),
    (HELPER, STEP.replace("trainer.bin", "make()")),  # would be made again
    (HELPER, STEP.replace("opt.zero_grad()", "trainer.bin.check()")),  # looks in between
]


@pytest.mark.parametrize(("helper", "step"), DECLINED)
def test_declined(helper: str, step: str) -> None:
    assert waited(helper, step) is None


@pytest.mark.parametrize(("line", "moves"), [("binarizer.restore()", True), ("real.put()", False)])
def test_helper_in_a_file(tmp_path: Path, line: str, moves: bool) -> None:
    """A cell does not know the globals of a file."""
    file = tmp_path / "helpers_of_test.py"
    file.write_text(HELPER.replace("binarizer.restore(model.layers)", line))
    program = program_of(STEP)
    inner = Place(None, str(file), 5, line)
    edits = wait_outside(program, at(program, "loss ="), inner, at(program, "loss.backward"))
    assert (edits is not None) is moves
