"""What a conversion to numbers is rewritten to."""

from __future__ import annotations

from knowledge.played import play


def test_a_list_under_a_name_that_also_holds_numbers_has_no_rewrite() -> None:
    """`torch.stack` takes tensors alone, and a list has no `.detach()`."""
    start = "import torch\nw = torch.ones(3, requires_grad=True)"
    found = play((start, "terms = [w.sum(), 0.5]\nt = torch.tensor(terms)")).diagnosis
    assert found is not None
    assert (found.finding.cause, found.finding.variant) == ("scalar_conversion", "list")
    assert not found.rewrites
