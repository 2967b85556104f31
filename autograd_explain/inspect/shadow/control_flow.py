"""Conditions, loops and blocks: what is undecided is taken once, what is long is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import torch

from .site import Site
from .state import ShadowState
from .unknown import UNKNOWN, ReadFloat, ReadInt, Unknown

#: How branches go, and which loops go straight to the round they stood at in the end, by file name,
#: line and column.
BranchChoices = Mapping[tuple[str, int, int], bool]


class Flow:
    """Decides conditions and doles out iterations."""

    def __init__(self, walk: ShadowState, forced: BranchChoices) -> None:
        self.walk = walk
        self._forced = forced
        self._whiles: dict[int, tuple[int, int]] = {}

    # -- conditions ------------------------------------------------------------------------------

    def truth(self, site: Site, value: Any) -> bool:
        """Whether a branch is taken; for an unknown condition the arm that does not leave."""
        if type(value) is bool:
            found = value
        else:
            found = site.prefer if type(value) is Unknown else self._decide(site, value)
            # The other way is not tried for each condition of a library.
            if not site.in_library and isinstance(
                value, (Unknown, torch.Tensor, ReadInt, ReadFloat)
            ):
                self.walk.undecided[site.position] = found
        return self._forced.get(site.position, found) if self._forced else found

    def _decide(self, site: Site, value: Any) -> bool:
        if self.walk.devices.is_meta(value):
            return site.prefer
        try:
            return bool(value)
        except Exception as error:
            self.walk.failed(site, error)
            return site.prefer

    # -- loops -----------------------------------------------------------------------------------

    def iterate(self, site: Site, iterable: Any, shape: Any) -> Iterator[Any]:
        """The items of a loop; of a long one the first ones and the last."""
        walk, budget, loops = self.walk, self.walk.budget, self.walk.loops
        if self._forced.get(site.position):
            iterable = [walk.live_values(site, shape)]
        elif type(iterable) is Unknown:
            iterable = self._live_items(site, shape)
        start, number, item = budget.spent, 0, UNKNOWN
        depth = len(loops)
        loops.append((site, 0))
        try:
            items = self._iterator(site, iterable, shape)
            while True:
                budget.spend(1)
                if number >= budget.limits.iterations and budget.is_long(start):
                    for last in self._last(site, iterable, shape, item):
                        loops[depth:] = [(site, number)]
                        yield last
                    return
                walk.stack.append(site)
                try:
                    item = next(items)
                except StopIteration:
                    return
                except Exception as error:
                    walk.failed(site, error)
                    return
                finally:
                    walk.stack.pop()
                loops[depth:] = [(site, number)]
                yield walk.live_values(site, shape) if type(item) is Unknown else item
                number += 1
        finally:
            del loops[depth:]

    def _last(self, site: Site, iterable: Any, shape: Any, item: Any) -> Iterator[Any]:
        """What is left of a long loop: the item it stood at in the end, or else the last one."""
        if not isinstance(iterable, (list, tuple, range)) or not iterable:
            return
        if isinstance(shape, str) and isinstance(item, (int, float, str)):
            live = self.walk.live_values(site, shape)
            if type(live) is type(item) and live in iterable and live != item:
                yield live
                return
        if iterable[-1] is not item:
            yield iterable[-1]

    def _iterator(self, site: Site, iterable: Any, shape: Any) -> Iterator[Any]:
        try:
            return iter(iterable)
        except Exception as error:
            self.walk.failed(site, error)
            return iter(self._live_items(site, shape))

    def _live_items(self, site: Site, shape: Any) -> list[Any]:
        """What the program's loop has under its names.  In a library nothing can be said of it."""
        count = 0 if site.in_library else self.walk.budget.limits.iterations - 1
        return [self.walk.live_values(site, shape) for _ in range(count)]

    def start_while(self, site: Site) -> None:
        self._whiles[site.index] = (0, self.walk.budget.spent)

    def go_on(self, site: Site, value: Any) -> bool:
        """The test of a `while`: undecidable ones and endless ones end after a few rounds."""
        budget = self.walk.budget
        budget.spend(1)
        number, start = self._whiles.get(site.index, (0, budget.spent))
        self._whiles[site.index] = (number + 1, start)
        undecided = type(value) is Unknown or self.walk.devices.is_meta(value)
        if number >= budget.limits.iterations and (undecided or budget.is_long(start)):
            return False
        return True if undecided else self.truth(site, value)

    # -- blocks ----------------------------------------------------------------------------------

    def context(self, site: Site, context: Any) -> Any:
        """What a `with` enters: devices stay as they are, unknown contexts do nothing."""
        if isinstance(context, torch.device):
            return nullcontext()
        return Block(self.walk, site, context) if hasattr(type(context), "__enter__") else UNKNOWN

    def trying(self, kinds: Callable[[], Any]) -> Trying:
        return Trying(self.walk, kinds)


class Block:
    """A context of a `with`: what its ends do happens at the `with`."""

    def __init__(self, walk: ShadowState, site: Site, context: Any) -> None:
        self._walk = walk
        self._site = site
        self._context = context

    def __enter__(self) -> Any:
        self._walk.stack.append(self._site)
        try:
            return self._context.__enter__()
        finally:
            self._walk.stack.pop()

    def __exit__(self, *error: Any) -> Any:
        self._walk.stack.append(self._site)
        try:
            return self._context.__exit__(*error)
        finally:
            self._walk.stack.pop()


class Trying:
    """Open while the walk is inside a `try` block that catches errors of some kinds."""

    def __init__(self, walk: ShadowState, kinds: Callable[[], Any]) -> None:
        self._walk = walk
        self._kinds = kinds

    def __enter__(self) -> None:
        self._walk.tries.append(self._kinds)

    def __exit__(self, *error: object) -> None:
        if self._kinds in self._walk.tries:  # a statement that failed has ended all
            self._walk.tries.remove(self._kinds)
