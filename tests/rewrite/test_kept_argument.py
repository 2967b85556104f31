"""Arguments of a constructor that what it computed needs later."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result

from autograd_explain.knowledge.second_backward.attribute import recompute_attribute
from autograd_explain.rewrite.transforms.as_property import attributes_as_properties

MODULE = """
class Reg(nn.Module):
    def __init__(self, w, lam):
        super().__init__()
        self.lam = lam
        self.value = VALUE
"""


def kept(value: str, use: str, model: str = MODULE) -> tuple[str | None, str | None]:
    """As a property, and as a method that is called before the use."""
    loop = "for x in xs:\n    (f(x) + reg.value).backward()\n"
    program = program_of(model.replace("VALUE", value), f"reg = {use}\n{loop}")
    made, read = at(program, "self.value =", 2), at(program, "reg.value", 3)
    edits = recompute_attribute(program, made, read, "value")
    text = None if edits is None else next(e.new_source for e in edits if "class" in e.new_source)
    return result(attributes_as_properties(program, [made], [read])), text


def test_an_attribute_that_has_it_is_read() -> None:
    for text in kept("lam * torch.ones(3)", "Reg(net, 0.1)"):
        assert text is not None and text.count("= lam\n") == 1 and "self.lam * torch" in text


def test_a_module_does_not_become_part_of_another() -> None:
    for text in kept("w.weight.pow(2).sum()", "Reg(net, 0.1)"):
        assert text is not None
        assert "self.w = (w,)\n" in text and "self.w[0].weight.pow(2)" in text


def test_a_number_is_kept_as_it_is() -> None:
    for text in kept("w * torch.ones(3)", "Reg(2.5, lam=0.1)"):
        assert text is not None and "self.w = w\n" in text


@pytest.mark.parametrize(
    ("value", "use"),
    [
        ("penalty(w)", "Reg(net.parameters(), 0.1)"),
        ("penalty(w)", "Reg(w=(p for p in ps), lam=0.1)"),
        ("w.sum() + sum(w.sum() for w in lam)", "Reg(net, [])"),
    ],
)
def test_what_may_be_used_up_or_is_bound_there_is_left(value: str, use: str) -> None:
    assert kept(value, use) == (None, None)
