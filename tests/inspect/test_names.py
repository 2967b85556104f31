import sys
from collections import namedtuple
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from autograd_explain.inspect.live.names import Names


def test_paths_are_spelled_as_the_user_would() -> None:
    t = torch.ones(2)
    net = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"head": nn.Linear(2, 1)}))
    Pair = namedtuple("Pair", "left right")
    names = Names(
        {
            "cfg": {"w": t, 3: [torch.zeros(1)]},
            "net": net,
            "pair": Pair(torch.zeros(1), torch.ones(1)),
            "state": SimpleNamespace(h=torch.zeros(2)),
            "top": torch.ones(2, 2).max(1),
        }
    )
    by_name = {n.name: n.tensor for n in names.tensors}
    assert by_name["cfg['w']"] is t
    assert "cfg[3][0]" in by_name
    assert by_name["net[0].weight"] is net[0].weight
    assert by_name["net[1]['head'].bias"] is net[1]["head"].bias
    assert {"pair.left", "pair.right", "state.h"} <= set(by_name)
    assert [n.name for n in names.tensors if n.name[:3] == "top"][:2] == ["top.values", "top[0]"]


@pytest.mark.parametrize("name", ["torch", "th"])
def test_how_a_library_is_made_is_no_name_but_what_it_keeps_has_one(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    library = ModuleType("somelib")
    vars(library).update({name: torch, "__file__": "/usr/lib/python3/site-packages/somelib.py"})
    monkeypatch.setitem(sys.modules, "somelib", library)
    kind = type("Trainer", (), {"__module__": "somelib"})
    trainer, connector = kind(), kind()
    connector.layer = nn.Linear(2, 2)
    trainer._connector, trainer._cached = connector, (torch.ones(1), torch.ones(2))
    found = {n.name for n in Names({"trainer": trainer}).tensors}
    assert found == {"trainer._cached[0]", "trainer._cached[1]"}


def test_what_an_object_answers_with_for_attributes_that_it_has_not() -> None:
    class Store:
        def __init__(self, **values: torch.Tensor) -> None:
            self._mapping = values

        def __getattr__(self, name: str) -> object:
            raise AssertionError("is not run")

    class Data:
        def __init__(self, **values: torch.Tensor) -> None:
            self._store = Store(**values)

        def __getattr__(self, name: str) -> object:
            raise AssertionError("is not run")

    Store.__module__ = Data.__module__ = "__main__"
    x = torch.ones(2)
    assert Names({"graph": Data(x=x)}).of(x)[0] == "graph.x"


def test_the_shortest_name_comes_first() -> None:
    t = torch.ones(2)
    assert Names({"deep": {"a": {"b": t}}, "t": t}).of(t)[0] == "t"


def test_layers_of_a_library_lie_deep() -> None:
    inner: torch.nn.Module = torch.nn.Linear(2, 2)
    weight = inner.weight
    for _ in range(12):
        outer = torch.nn.Module()
        outer.part = inner
        inner = outer
    assert Names({"net": inner}).of(weight)[0] == f"net{12 * '.part'}.weight"


def test_a_transposed_weight_is_still_that_weight() -> None:
    layer = nn.Linear(3, 2)
    assert Names({"layer": layer}).of(layer.weight.t()) == ("layer.weight",)


def test_aliases_are_told_from_the_tensor() -> None:
    base = torch.zeros(4)
    row = base[:2]
    names = Names({"base": base, "row": row})
    assert names.of(row) == ("row",)
    assert names.of_aliases(row) == ("base",)


def test_no_user_code_runs() -> None:
    class Touchy:
        def __init__(self) -> None:
            self.kept = torch.ones(1)

        @property
        def boom(self) -> None:
            raise AssertionError("a property was read")

        def __getattr__(self, name: str) -> None:
            raise AssertionError(f"__getattr__({name})")

    Touchy.__module__ = "__main__"
    touchy = Touchy()
    assert [n.name for n in Names({"touchy": touchy}).tensors] == ["touchy.kept"]


def test_cycles_end() -> None:
    loop: dict[str, object] = {}
    loop["self"] = loop
    loop["t"] = torch.ones(1)
    assert [n.name for n in Names({"loop": loop}).tensors] == ["loop['t']"]


def test_optimizers_that_hold_a_parameter() -> None:
    net = nn.Linear(2, 2)
    opts = {"main": torch.optim.SGD(net.parameters(), lr=0.1)}
    other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    held = Names({"net": net, "opts": opts, "other": other}).holders(net.weight)
    assert [name for name, _ in held] == ["opts['main']"]
