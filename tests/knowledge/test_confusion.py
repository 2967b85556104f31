"""Every case against every cause: only its own takes it for proven."""

from __future__ import annotations

import pytest
from knowledge.played import WITH_CASE, played

from autograd_explain.knowledge.entry import Entry, entries
from autograd_explain.model import Confidence


@pytest.mark.one_in(3)
@pytest.mark.parametrize("entry", WITH_CASE, ids=lambda entry: entry.name)
def test_no_other_cause_claims_the_case(entry: Entry) -> None:
    """Asked are the causes that list the same message, as in the pipeline."""
    claims = dict(played(entry.name).claims)
    own = claims.pop(entry.name, None)
    assert own is not None, f"the cause does not claim its own case; others: {claims}"
    proven = [name for name, confidence in claims.items() if confidence is Confidence.PROVEN]
    assert proven == []
    stronger = [name for name, confidence in claims.items() if confidence > own]
    assert stronger == [], "another cause is surer of the case"


def test_cases_differ() -> None:
    """No two causes show the same program."""
    seen: dict[str, str] = {}
    for entry in WITH_CASE:
        text = (entry.folder / "case.py").read_text("utf-8")
        assert text not in seen, f"{entry.name} and {seen.get(text)}"
        seen[text] = entry.name


def test_topics_claim_nothing() -> None:
    """A folder without `diagnose` lists no message."""
    for entry in entries().values():
        if entry.diagnose is None:
            assert entry.patterns == (), entry.name
