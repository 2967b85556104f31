"""A computed tensor given to a layer without making a parameter of it."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from autograd_explain.rewrite.transforms.functional_layer import parameter_as_argument

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
CALL = 'torch.func.functional_call(self.fc, {"weight": weight}, (x,))'


def given(body: str, at: str = "Parameter") -> str | None:
    code = HEAD + "".join(f"        {line}\n" for line in body.splitlines())
    text = rewritten(parameter_as_argument, code, at)
    return None if text is None else text.removeprefix(HEAD).replace("        ", "")


def test_layer() -> None:
    body = "self.fc.weight = nn.Parameter(self.fc.weight * m)\nreturn self.fc(x)"
    assert given(body) == f"weight = self.fc.weight * m\nreturn {CALL}\n"


def test_parameter_of_the_object_itself() -> None:
    assert given("self.weight = nn.Parameter(w)\nreturn x @ self.weight") == (
        "weight = w\nreturn x @ weight\n"
    )


def test_within_one_branch() -> None:
    body = "if m:\n    self.fc.weight = nn.Parameter(w)\n    x = self.fc(x)\nreturn x"
    text = given(body)
    assert text is not None and CALL in text


@pytest.mark.parametrize(
    "write", ["self.fc.weight.data = w", "self.fc.weight.data.copy_(w)", "self.fc.weight.copy_(w)"]
)
def test_written_past_the_graph(write: str) -> None:
    assert given(f"{write}\nreturn self.fc(x)", write) == f"weight = w\nreturn {CALL}\n"
    own = f"{write}\nreturn x @ self.weight".replace("self.fc.", "self.")
    assert given(own, own.splitlines()[0]) == "weight = w\nreturn x @ weight\n"
    block = f"with torch.no_grad():\n    w = self.a @ self.b\n    {write}\nreturn self.fc(x)"
    assert given(block, write) == f"w = self.a @ self.b\nweight = w\nreturn {CALL}\n"


@pytest.mark.parametrize(
    "body",
    [
        "if self.training:\n    self.fc.weight = nn.Parameter(w)\nreturn self.fc(x)",
        "self.fc.weight = nn.Parameter(w)\nreturn self.fc(x) + self.fc.weight.sum()",
        "self.fc.weight = nn.Parameter(w)\ny = self.fc(x)\nreturn checkpoint(self.fc, y)",
        "for l in self.ls:\n    l.weight = nn.Parameter(w)\nfor l in self.ls:\n    x = l(x)",
        "y = self.fc(x)\nself.fc.weight = nn.Parameter(w)\nreturn y + self.fc(x)",
    ],
)
def test_declined(body: str) -> None:
    assert given(body) is None


def test_read_by_another_method() -> None:
    code = (
        HEAD + "        self.weight = nn.Parameter(w)\n        return self.decay(x @ self.weight)\n"
        "    def decay(self, y):\n        return y + self.weight.sum()\n"
    )
    assert rewritten(parameter_as_argument, code, "Parameter") is None
