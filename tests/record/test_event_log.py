"""The log's addresses say something only while their owner lives."""

from __future__ import annotations

import torch

from autograd_explain.record.observe.event_log import EventLog


def test_an_alias_is_known_by_itself_and_by_what_it_was_made_of() -> None:
    log, base = EventLog(), torch.ones(2, 2)
    rows = base.view(-1)
    log.alias(rows, base, 1, site=1)
    first = rows[:2]
    log.alias(first, rows, 1, site=2)
    by_time = {a.clock: a for a in log.aliases}
    alias = by_time[log.alias_time(first)]
    assert (alias.site, by_time[alias.parent].site, by_time[alias.parent].parent) == (2, 1, 0)
    assert log.alias_time(base) == 0


def test_a_new_tensor_with_the_identity_of_an_alias_that_is_gone_is_none() -> None:
    log, base = EventLog(), torch.ones(2)
    gone = base.view(-1)
    log.alias(gone, base, 1, site=1)
    entry = log.living.pop(id(gone))
    del gone
    new = torch.zeros(2)
    log.living[id(new)] = entry
    assert log.alias_time(new) == 0
