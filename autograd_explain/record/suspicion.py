"""What may go wrong without a message: gathered while recording, judged afterwards."""

from __future__ import annotations

import weakref
from typing import Any

from torch import Tensor

from .log import Log
from .tensors import address, root


class Suspicion:
    """Told by the recorder what happens; keeps numbers and weak references."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.traces: dict[int, Any] = {}
        self.shared: dict[int, Any] = {}
        self.visited: set[int] = set()
        self._data: dict[int, weakref.ref[Tensor]] = {}

    def saving(self, args: tuple[Any, ...], site: int) -> None:
        self.visited.add(site)

    def ended(self, args: tuple[Any, ...], result: Any, site: int) -> None:
        pass

    def spread(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        pass

    def cut(self, source: Tensor, result: Any, site: int, way: str) -> None:
        pass

    def got_data(self, source: Tensor, result: Tensor) -> None:
        where = address(result)
        self._data[where] = weakref.ref(result, lambda _: self._data.pop(where, None))

    def through_data(self, tensor: Tensor) -> bool:
        """Whether a tensor is a `.data` alias or a view of one."""
        return bool(self._data) and address(root(tensor)) in self._data

    def hidden_write(
        self, tensor: Tensor, args: tuple[Any, ...], clock: int, site: int, seen: int
    ) -> None:
        pass

    def replaced_data(self, tensor: Tensor, clock: int, site: int, seen: int) -> None:
        pass

    def to_numpy(self, tensor: Tensor, site: int, clock: int) -> None:
        pass

    def zeroed(self, optimizer: Any, clock: int, site: int) -> None:
        pass

    def before_backward(
        self, roots: tuple[Tensor, ...], clock: int, site: int, whole: bool
    ) -> None:
        pass

    def after_backward(self) -> None:
        pass

    def before_step(self, optimizer: Any, parameters: list[Tensor], site: int) -> None:
        pass

    def after_step(
        self, optimizer: Any, parameters: list[Tensor], unbumped: bool, clock: int, site: int
    ) -> None:
        pass
