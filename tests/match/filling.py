"""Message templates with plausible values in their holes."""

from __future__ import annotations

import re

HOLE = re.compile(r"\{(\w*)(?::(\w+))?\}")

#: Values by hole name; what is not here gets one by its kind.
VALUES = {
    "type": "torch.FloatTensor",
    "shape": "[64, 128]",
    "dtype": "Float",
    "expected": "Double",
    "op": "AddmmBackward0",
    "function": "MyFunctionBackward",
    "device": "cuda:0",
    "attribute": "zero_",
    "operator": "-=",
    "left": "Parameter",
    "right": "Parameter",
    "argument": "target",
    "arguments": "alpha,beta",
    "parameter": "encoder.weight",
    "where": "/pytorch/torch/csrc/autograd/python_variable.cpp:123",
    "class": "FunctionMeta.",
    "optimizer": "Adam",
    "lr": "-0.1",
}
KINDS = {"int": "3", "word": "thing", "lines": "first\nsecond", "any": "", "prefix": ""}


def values_of(template: str) -> dict[str, str]:
    """A value for every hole of the template, by the hole's name."""
    found = {}
    for number, (name, kind) in enumerate(HOLE.findall(template)):
        value = KINDS["int"] if kind == "int" else VALUES.get(name) or KINDS.get(kind)
        found[name or str(number)] = "some value" if value is None else value
    return found


def fill(template: str, values: dict[str, str] | None = None) -> str:
    values = values_of(template) if values is None else values
    numbers = iter(range(99))
    return HOLE.sub(lambda hole: values[hole[1] or str(next(numbers))], template)
