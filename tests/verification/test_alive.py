"""What lives in a session is found once, before forks of it run, and what came since as it is."""

import gc

import torch
from torch import nn

from autograd_explain.verification.alive import Alive


class Marked(torch.Tensor):
    """A class of the program's own."""


def all_tensors():
    gc.unfreeze()
    found = {id(o) for o in gc.get_objects() if issubclass(type(o), torch.Tensor)}
    gc.freeze()
    return found


def test_every_older_tensor_is_found():
    leaf = nn.Parameter(torch.ones(2))
    marked = torch.ones(2).as_subclass(Marked)
    made = [leaf, marked, (leaf * marked).exp()]
    loss = made[-1].sum()  # the graph alone holds what `exp` has saved
    alive = Alive()
    alive.look_for_tensors()
    found = {id(t) for t in alive.tensors()}
    assert {id(t) for t in (*made, loss)} <= found
    assert found == all_tensors()


def test_what_came_since_is_found_and_what_went_is_not():
    old, gone = torch.ones(1), torch.ones(2)
    alive = Alive()
    alive.look_for_tensors()
    before = len(alive.tensors())
    del gone
    new = torch.ones(3)
    found = {id(t) for t in alive.tensors()}
    assert {id(old), id(new)} <= found
    assert len(found) == before


def test_functions_of_a_file_are_found():
    space: dict[str, object] = {}
    exec(compile("def one(): ...\nclass A:\n    def two(self): ...", "some file", "exec"), space)
    alive = Alive()
    alive.look_for_functions(["some file", "another"])
    assert {f.__name__ for f in alive.functions_of("some file")} == {"one", "two"}
    assert [*alive.functions_of("another")] == []
    del space["one"], space["A"]
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    assert [*alive.functions_of("some file")] == []
