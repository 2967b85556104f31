"""Messages are records; a pickle that names anything else is refused."""

import os
import pickle

import numpy as np
import pytest
import torch

from autograd_explain.model import Outcome, Reason
from autograd_explain.verification.messages import decode, encode, next_message, write_message
from autograd_explain.verification.plan import Verdict
from autograd_explain.verification.process import Crash, fork_child


class Bomb:
    def __reduce__(self):
        return os.system, ("echo boom > boom.txt",)


class Named:
    """Pickled by `getattr`, as Python 3.11.0 to 3.11.3 pickle the members of enumerations."""

    def __init__(self, *named: object) -> None:
        self.named = named

    def __reduce__(self):
        return getattr, self.named


@pytest.mark.parametrize(
    "value",
    [
        Verdict(1, Outcome.VERIFIED, Reason("verified", {"names": "w"})),
        {"a": (1, 2.5, 1 + 2j, None, b"x"), "b": frozenset({"c"})},
        torch.float64,
        Crash("what", "trace"),
    ],
)
def test_records_and_plain_values_arrive(value):
    assert decode(encode(value)[8:]) == value


def test_a_member_that_is_pickled_by_its_name_arrives():
    assert decode(pickle.dumps(Named(Outcome, "VERIFIED"))) is Outcome.VERIFIED


@pytest.mark.parametrize(
    "named",
    [(Outcome, "__init__"), (Verdict, "__init__"), (Outcome.VERIFIED, "name"), ("", "join")],
)
def test_nothing_else_is_taken_by_its_name(named):
    with pytest.raises(pickle.UnpicklingError):
        decode(pickle.dumps(Named(*named)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.bool])
def test_tensors_arrive(dtype):
    sent = torch.ones(2, 3).to(dtype)
    assert torch.equal(decode(encode(sent)[8:]), sent)


def test_arrays_arrive():
    assert np.array_equal(decode(encode(np.arange(3.0))[8:]), np.arange(3.0))


@pytest.mark.parametrize("held", [Bomb(), [Bomb()], print, os.system, Verdict.__init__, type(Bomb)])
def test_code_is_refused(tmp_path, monkeypatch, held):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pickle.UnpicklingError):
        decode(pickle.dumps(held))
    assert not list(tmp_path.iterdir())


def test_noise_is_refused():
    with pytest.raises(pickle.UnpicklingError):
        decode(b"no pickle at all")
    with pytest.raises(pickle.UnpicklingError):
        next_message(bytearray(b"\xff" * 64), 1000)


def test_a_child_that_writes_code_to_its_pipe_is_a_crash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def body(reader, writer):
        data = pickle.dumps(Bomb())
        os.write(writer, len(data).to_bytes(8, "big") + data)

    child = fork_child(body)
    child.wait(10)
    (message,) = child.messages()
    child.end()
    assert isinstance(message, Crash) and not list(tmp_path.iterdir())


def test_a_child_has_no_pipe_of_its_parent_and_siblings():
    first = fork_child(lambda reader, writer: os.read(reader, 1) and None)
    pipes = [first.fileno(), first._writer]

    def body(reader, writer):
        write_message(writer, [fd for fd in pipes if is_open(fd) and fd not in (reader, writer)])

    second = fork_child(body)
    second.wait(10)
    assert list(second.messages()) == [[]]
    second.end()
    first.end()


def is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
