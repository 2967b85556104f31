"""Modules that a helper freezes in turn."""

from __future__ import annotations

from rewriting import rewritten

from autograd_explain.knowledge.graph_cut.thaw import thawed_in_turn

HELPER = "def freeze(m):\n    for p in m.parameters():\n        p.requires_grad = False\n\n\n"
JUDGE = "def train_judge():\n    freeze(painter)\n    step(judge(painter(z)))\n\n\n"
PAINTER = "def train_painter():\n    freeze(judge)\n    step(judge(painter(z)))\n"


def thawed(code: str) -> str | None:
    text = rewritten(thawed_in_turn, HELPER + code, "requires_grad = False")
    return None if text is None else text.removeprefix(HELPER)


def test_each_function_thaws_the_other() -> None:
    assert thawed(JUDGE + PAINTER) == (JUDGE + PAINTER).replace(
        "freeze(painter)\n", "freeze(painter)\n    judge.requires_grad_(True)\n"
    ).replace("freeze(judge)\n", "freeze(judge)\n    painter.requires_grad_(True)\n")


def test_turns_of_one_function() -> None:
    code = (
        "def train():\n    freeze(painter)\n    step(judge(painter(z)))\n    freeze(judge)\n"
        "    step(judge(painter(z)))\n"
    )
    text = thawed(code)
    assert text is not None and text.count("requires_grad_(True)") == 2


def test_frozen_together_stay_frozen_together() -> None:
    code = JUDGE + PAINTER.replace("freeze(judge)\n", "freeze(judge)\n    freeze(vgg)\n")
    text = thawed(code)
    assert text is not None
    assert "    freeze(judge)\n    freeze(vgg)\n    painter.requires_grad_(True)\n" in text
    assert text.count("requires_grad_(True)") == 2


def test_frozen_for_good() -> None:
    assert thawed("freeze(vgg)\n" + (JUDGE + PAINTER).replace("(z)", "(vgg(z))")) is None
    assert thawed((JUDGE + PAINTER).replace("    freeze", "    freeze(vgg)\n    freeze")) is None


def test_one_module_is_no_turn() -> None:
    assert thawed(JUDGE) is None
