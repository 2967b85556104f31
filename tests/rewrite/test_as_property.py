"""What a constructor computed, computed when it is read."""

from __future__ import annotations

import pytest
from rewriting import at, cell, program_of, result

from autograd_explain.rewrite.transforms.as_property import attributes_as_properties

MODEL = """
class Mixture(nn.Module):
    def __init__(self, dim, floor):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(dim))
        self.floor = floor
        # never below the floor
        scale = self.raw.exp() + floor
        self.prior = torch.distributions.Normal(self.raw, scale)

    def nll(self, x):
        return -self.prior.log_prob(x).mean()
"""
USE = "m = Mixture(2, 0.1)\nfor x in xs:\n    m.nll(x).backward()\n"


def rewritten(model: str, use: str = USE) -> str | None:
    program = program_of(model, use)
    made, reads = at(program, "scale =", 2), at(program, "return -", 2)
    return result(attributes_as_properties(program, [made], [at(program, "m.nll", 3), reads]))


def test_the_constructor_keeps_what_the_property_reads() -> None:
    assert rewritten(MODEL) == cell("""
        class Mixture(nn.Module):
            def __init__(self, dim, floor):
                super().__init__()
                self.raw = nn.Parameter(torch.zeros(dim))
                self.floor = floor

            @property
            def prior(self):
                scale = self.raw.exp() + self.floor
                return torch.distributions.Normal(self.raw, scale)

            def nll(self, x):
                return -self.prior.log_prob(x).mean()
        """)


def test_a_local_that_the_constructor_goes_on_reading_stays() -> None:
    code = MODEL.replace("\n    def nll", "        print(scale)\n\n    def nll", 1)
    text = rewritten(code)
    assert text is not None and text.count("scale = self.raw.exp()") == 2


def test_to_normalise_is_to_draw_nothing() -> None:
    text = rewritten(MODEL.replace("+ floor", "+ F.normalize(self.raw, dim=0)"))
    assert text is not None and "@property" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ floor", "+ torch.normal(0.0, torch.ones(dim))"),
        ("+ floor", "+ torch.rand(dim)"),
        ("+ floor", "+ nn.Parameter(torch.ones(dim))"),
        ("+ floor", "+ Mixture(dim).raw"),
        ("+ floor", "+ floor\n        scale *= 2"),
        ("+ floor", "+ floor\n        floor = 2"),
        ("+ floor", "+ floor\n        self.raw = nn.Parameter(torch.ones(dim))"),
        ("return -self", "self.prior = None\n        return -self"),
        ("return -self", "self.prior.loc.mul_(2)\n        return -self"),
        ("return -self", "self.prior.scale = 1\n        return -self"),
        ("return -self.prior", "return -self.other"),
        ("return -self", "self.prior.loc.retain_grad()\n        return -self"),
        ("return -self", "print(self.prior.loc.grad)\n        return -self"),
        ("class Mixture(nn.Module):", "class Mixture(nn.Module):\n    prior: object = None"),
    ],
)
def test_it_stays_an_attribute(old: str, new: str) -> None:
    assert old in MODEL
    assert rewritten(MODEL.replace(old, new)) is None


@pytest.mark.parametrize("line", ["kept = m.prior", 'setattr(m, "prior", 3)', "del m.prior"])
def test_it_stays_one_where_another_cell_counts_on_it(line: str) -> None:
    assert rewritten(MODEL, USE.replace("for", f"{line}\nfor")) is None
