"""Every message of autograd's that is known leads to an entry, in its old wordings too."""

from __future__ import annotations

from filling import fill

from autograd_explain import lookup
from autograd_explain.knowledge.entry import BUILT_IN
from autograd_explain.match import match_message, rows
from autograd_explain.match.context import IN_BACKWARD
from autograd_explain.search.causes import Cause, causes

ROWS = rows()
WORDINGS = [
    (row["id"], torch, template)
    for row in ROWS.values()
    for torch, template in [
        ("now", row["message"]),
        *((old["torch"], old["message"]) for old in row.get("older", ())),
    ]
]
CLAIMED = {pattern for cause in causes().values() for pattern in cause.patterns}
#: Messages of folders whose texts are still being written; empty when all are there.
OWED = {
    pattern
    for folder in BUILT_IN.iterdir()
    if (folder / "diagnose.py").exists() and folder.name not in causes()
    for pattern in Cause(folder.name, folder).patterns
}
IN_BACKWARD_OF_A_FUNCTION = (
    'Traceback (most recent call last):\n  File "train.py", line 9, in backward\n'
    "    return weight @ grad, None\nRuntimeError: "
)


def test_every_message_has_an_entry() -> None:
    assert sorted(ROWS.keys() - CLAIMED - OWED) == []


def test_the_text_of_a_message_finds_its_entry() -> None:
    for id, torch, template in WORDINGS:
        if id in OWED - CLAIMED:
            continue  # its entry is being written
        text = fill(template)
        answer = lookup(IN_BACKWARD_OF_A_FUNCTION + text if id.startswith(IN_BACKWARD) else text)
        assert answer is not None and answer.match is not None, (id, torch)
        assert answer.topics, f"{id} is recognised, and no entry tells about it"
        told = {p for topic in answer.topics for p in causes()[topic.name].patterns}
        same_text = {answer.match.pattern, *answer.match.siblings}
        assert id in told or told & same_text, (id, torch)


def test_a_made_up_message_has_no_entry() -> None:
    assert match_message("RuntimeError: the tensor has gone for a walk") is None
