"""Every message of the list is recognised, in every wording and in whatever surrounds it."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from filling import HOLE, fill, values_of

from autograd_explain.match import Match, match_message
from autograd_explain.match.context import IN_BACKWARD
from autograd_explain.match.table import built_in, rows, template_key, wordings

CURRENT = [(row["id"], "", row["message"]) for row in rows().values()]
OLDER = [
    (row["id"], old["torch"], old["message"])
    for row in rows().values()
    for old in row.get("older", ())
]
EVERY = CURRENT + OLDER


def owners(template: str) -> set[str]:
    """The ids that share this text: no text can tell them apart."""
    key = template_key(template)
    return {o.id for w in wordings() if template_key(w.template) == key for o in w.owners}


def claimed(match: Match | None) -> set[str]:
    return set() if match is None else {match.pattern, *match.siblings}


def running(id: str) -> str:
    """What must have been running for the row to claim its text."""
    return "backward" if id.startswith(IN_BACKWARD) else ""


def test_the_list_is_complete() -> None:
    assert len(CURRENT) == 490
    assert len(OLDER) == 184
    assert {row["likelihood"] for row in rows().values()} == {"common", "occasional", "rare"}


def test_every_wording_is_its_own_row() -> None:
    for id, torch, template in EVERY:
        match = match_message(fill(template), running=running(id))
        assert id in claimed(match), (id, torch)
        assert match is not None and match.pattern in owners(template), (id, torch)


def around(message: str, row: dict[str, Any]) -> dict[str, str]:
    name = row["exception"].split(".")[-1]
    return {
        "class": f"{row['exception']}: {message}",
        "traceback": "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 12, in <module>\n'
        "    loss.backward(p.grad, checkpoint=F.apply(x))\n"
        '  File "/usr/lib/python3/site-packages/torch/_tensor.py", line 630, in backward\n'
        f"    torch.autograd.backward(\n{name}: {message}\n",
        "stack": f"{name}: {message}\nException raised from unpack at saved_variable.cpp:168 "
        "(most recent call first):\nframe #0: c10::Error::Error(c10::SourceLocation) + 0x57",
        "warning": f"/home/me/train.py:12: {name}: {message}\n  x.grad\n",
        "crlf": f"{name}: {message}".replace("\n", "\r\n"),
    }


@pytest.mark.parametrize("kind", ["class", "traceback", "stack", "warning", "crlf"])
def test_surroundings_change_nothing(kind: str) -> None:
    for id, _, template in EVERY:
        text = around(fill(template), dict(rows()[id]))[kind]
        assert id in claimed(match_message(text, running=running(id))), (id, text)


def test_wrapped_by_the_user_or_a_terminal() -> None:
    for id, _, template in EVERY:
        message = fill(template)
        if "\n" in message or id in ("checkpoint-unexpected-kwargs", "function-kwarg-unexpected"):
            continue  # their value ends with the line
        narrow = textwrap.fill(
            f"RuntimeError: {message}", 60, break_long_words=False, break_on_hyphens=False
        )
        assert id in claimed(match_message(narrow, running=running(id))), narrow


def test_web_pages_bend_the_quotes() -> None:
    match = match_message("RuntimeError: Can’t call numpy() on Tensor that requires grad.")
    assert match is not None and match.pattern == "numpy-requires-grad"


def test_captures_hold_the_values() -> None:
    for id, _, template in CURRENT:
        values = {k: v for k, v in values_of(template).items() if v}
        match = match_message(f"{rows()[id]['exception']}: {fill(template)}", running=running(id))
        assert match is not None, id
        if match.pattern != id:
            continue  # shares its text with a likelier row, whose holes are called otherwise
        assert {k: match.captures.get(k) for k in values} == values, id


def test_no_two_holes_of_a_template_share_a_name() -> None:
    for _, _, template in EVERY:
        found = [name for name, _ in HOLE.findall(template) if name]
        assert len(found) == len(set(found)), template


VERSION = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [torch.FloatTensor [2, 2]], which is output 0 of {op}, is at version 2; expected "
    "version 1 instead."
)


def found(text: str) -> tuple[str, str]:
    match = match_message(text)
    assert match is not None
    return match.pattern, match.torch


@pytest.mark.parametrize(
    ("text", "id", "torch"),
    [
        ("a leaf Variable that requires grad is being used in an in-place operation.",
         "leaf-inplace", ""),
        ("a view of a leaf Variable that requires grad is being used in an in-place operation.",
         "view-of-leaf-inplace", ""),
        ("a leaf Variable that requires grad has been used in an in-place operation.",
         "leaf-inplace", "0.2-1.4"),
        ("one of the variables needed for gradient computation has been modified by an inplace "
         "operation", "inplace-version-mismatch", "0.2-1.0"),
        (VERSION.format(op="TBackward"), "inplace-version-mismatch", ""),
        (VERSION.format(op="AsStridedBackward0") + " Hint: the backtrace further above shows",
         "inplace-version-mismatch-anomaly", ""),
        (VERSION.format(op="torch::autograd::CopySlices") + " Hint: enable anomaly detection to "
         "find the operation that failed to compute its gradient, with "
         "torch.autograd.set_detect_anomaly(True).", "inplace-version-mismatch", "1.1-2.10"),
        ("Trying to backward through the graph a second time", "backward-twice", ""),
        ("Trying to backward through the graph a second time, but the buffers have already been "
         "freed. Specify retain_graph=True when calling backward the first time.",
         "backward-twice", "0.1-1.5"),
        ("can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
         "first.", "numpy-other-device", "1.0-1.4"),
    ],
)  # fmt: skip
def test_most_specific_wording(text: str, id: str, torch: str) -> None:
    assert found(text) == (id, torch)


def test_a_beginning_names_its_siblings() -> None:
    match = match_message(VERSION.format(op="Relu"))
    assert match is not None
    assert match.siblings == ("inplace-version-mismatch-anomaly",)


def test_captures_of_the_version_error() -> None:
    match = match_message(f"RuntimeError: {VERSION.format(op='Relu')}")
    assert match is not None
    assert match.captures == {
        "type": "torch.FloatTensor",
        "shape": "[2, 2]",
        "output": "0",
        "op": "Relu",
        "version": "2",
        "expected": "1",
    }


def test_a_producer_without_a_name() -> None:
    """torch 2.13 sometimes leaves the name of the producing operation out."""
    match = match_message(VERSION.format(op="").replace("of ,", "of nothing,"))
    assert match is not None and match.captures["version"] == "2"
    match = match_message(VERSION.format(op=""))
    assert match is not None and match.pattern == "inplace-version-mismatch"


def test_the_last_error_of_a_chain() -> None:
    text = (
        "UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed."
        "\nRuntimeError: can't optimize a non-leaf Tensor\n\nDuring handling of the above "
        "exception, another exception occurred:\n\nRuntimeError: a leaf Variable that requires "
        "grad is being used in an in-place operation.\n"
    )
    assert found(text)[0] == "leaf-inplace"


def test_extra_messages_of_the_users_own() -> None:
    extra = {"house-rule": "tensor {name} left the farm without a gradient"}
    match = match_message("OurError: tensor w1 left the farm without a gradient", extra)
    assert match is not None
    assert (match.pattern, dict(match.captures)) == ("house-rule", {"name": "w1"})
    assert match_message("tensor w1 left the farm without a gradient") is None


def test_a_message_is_not_searched_inside_a_word() -> None:
    assert match_message("xgot 3 tensors and 4 gradients") is None
    assert match_message("got 3 tensors and 4 gradients") is not None


def test_every_wording_has_a_gate() -> None:
    index = built_in()
    for gate, known in index.by_gate.items():
        for wording in known:
            assert any(gate in literal for literal in wording.literals), wording.template


def test_the_gates_are_those_of_the_list() -> None:
    """Run `python -m autograd_explain.match.gates` after a change of messages.json."""
    from autograd_explain.match.gates import choose

    assert list(built_in().gates) == choose(wordings())
