"""Where stand-ins live: on the CPU with numbers, or, for big programs, on `meta` without.

The program's own devices are kept as labels, so that a copy to another device is a copy here too
(and makes a non-leaf there as it does on a GPU).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

from .unknown import UNKNOWN, Unknown

_MOVES = {"cuda": "cuda", "cpu": "cpu", "xpu": "xpu", "mps": "mps"}


class Devices:
    """Keeps all tensors of a walk on one device and remembers which one the program meant."""

    def __init__(self, big: bool) -> None:
        self.big = big
        self.device = torch.device("meta" if big else "cpu")
        self._used = False  # whether the program names any device but the CPU

    def context(self) -> Any:
        """Makes factory functions create stand-ins here."""
        return self.device if self.big else nullcontext()

    def is_meta(self, value: Any) -> bool:
        return self.big and isinstance(value, torch.Tensor) and value.is_meta

    def label(self, tensor: torch.Tensor) -> str:
        return getattr(tensor, "_ag_device", "cpu") if self._used else "cpu"

    def mark(self, tensor: torch.Tensor, label: str) -> None:
        if label != "cpu" or self._used:
            self._used = True
            tensor._ag_device = label  # type: ignore[attr-defined]

    def fact(self, tensor: torch.Tensor, name: str) -> Any:
        """`x.device`, `x.is_cuda` and the like, as the program saw them."""
        if name == "device":
            return torch.device(self.label(tensor))
        if name == "is_cuda":
            return self.label(tensor).startswith("cuda")
        return False if name == "is_meta" else getattr(tensor, name)

    def inherit(self, inputs: list[torch.Tensor], outputs: tuple[Any, ...]) -> None:
        """Results live where the operands do."""
        if not self._used:
            return
        label = next((found for t in inputs if (found := self.label(t)) != "cpu"), None)
        for output in outputs:
            if label is not None and isinstance(output, torch.Tensor):
                tensor: Any = output
                if not hasattr(tensor, "_ag_device"):
                    tensor._ag_device = label

    # -- moves -----------------------------------------------------------------------------------

    def move(self, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`x.to(…)`, `x.cuda()`, `model.to(…)`: a copy where the program's device changes."""
        label, rest, options = self._destination(name, args, kwargs)
        if isinstance(owner, torch.nn.Module):
            return self._move_module(owner, label, rest, options)
        if label is None or label == self.label(owner):
            return owner.to(*rest, **options) if rest or options else owner
        if not any(isinstance(r, (torch.dtype, torch.Tensor)) for r in rest):
            rest = [owner.dtype, *rest]
        options.pop("copy", None)
        found = owner.to(*rest, copy=True, **options)
        self.mark(found, label)
        return found

    def _move_module(
        self, module: torch.nn.Module, label: str | None, rest: list[Any], options: dict[str, Any]
    ) -> Any:
        if rest or options:
            module.to(*rest, **options)
        if label is not None:
            for tensor in (*module.parameters(), *module.buffers()):
                self.mark(tensor, label)
        return module

    def _destination(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str | None, list[Any], dict[str, Any]]:
        """The device asked for, and the arguments that are left for dtype and the rest."""
        options = {k: v for k, v in kwargs.items() if k in ("dtype", "copy")}
        options = {k: v for k, v in options.items() if type(v) is not Unknown}
        label = _MOVES.get(name)
        rest: list[Any] = []
        for value in (*args, kwargs.get("device", UNKNOWN)):
            if isinstance(value, (str, torch.device)) or type(value) is int:
                label = label if name != "to" and type(value) is int else str(value)
            elif isinstance(value, torch.Tensor):
                label, rest = self.label(value), [*rest, value.dtype]
            elif isinstance(value, torch.dtype):
                rest.append(value)
        return label, rest, options

    # -- arguments -------------------------------------------------------------------------------

    def arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], str | None]:
        """Arguments as torch can take them here, and the device the program named."""
        named: str | None = None
        if any(type(a) is Unknown for a in args):
            args = tuple(1 if type(a) is Unknown else a for a in args)
        if any(isinstance(a, torch.device) for a in args):
            named = next(str(a) for a in args if isinstance(a, torch.device))
            args = tuple(self.device if isinstance(a, torch.device) else a for a in args)
        if kwargs:
            kwargs = {k: v for k, v in kwargs.items() if type(v) is not Unknown}
            if kwargs.get("device") is not None:
                named = str(kwargs["device"])
                kwargs["device"] = self.device
            kwargs.pop("pin_memory", None)
            if self.big:
                kwargs.pop("generator", None)
        return args, kwargs, named
