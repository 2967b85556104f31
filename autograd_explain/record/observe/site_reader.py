"""Sites become Moments: the user's line, the expression meant, what it made, wrote and read."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator

from ...inspect.facts.statements import base_of, is_inplace_name
from ...inspect.history import TraceEvent
from ...model import Place
from ...program import Program, is_literal, last_name
from ...program_index import index_of
from .call_sites import CallSite, CallSites
from .code_positions import CodePosition, line_of, operands_of, spot_of
from .opaque_layers import SEQUENTIAL

# Library functions that stand between the user and one torch function and add nothing.
_THIN = (
    "torch/overrides.py",
    "torch/_tensor.py",
    "torch/functional.py",
    "torch/nn/init.py",
    "torch/autograd/function.py",
)
_FUNCTIONAL = "torch/nn/functional.py"
_MODULE = "torch/nn/modules/module.py"
_ITEM = "copy_"
# What the operation is called whose node has another name.
_OTHERWISE = {"Addmm": "linear", "T": "linear", "Convolution": "conv"}


class SiteReader:
    """Reads sites against a program; every site once."""

    def __init__(self, sites: CallSites, names: list[str], program: Program) -> None:
        self._sites = sites
        self._names = names
        self._program = program
        self._spots: dict[int, tuple[CodePosition, tuple[Place, ...]] | None] = {}

    def made(self, site: int, clock: int, node: str = "") -> TraceEvent | None:
        """The moment of a call that made something, the node of this name (`ReluBackward0`)."""
        found = self._spot(site)
        if found is None:
            return None
        spot, chain = found
        target, operands = "", self._operands(spot)
        if self._op(site) in ("data", "detach") and not _is_named(spot.node, self._op(site)):
            operands = ()  # read by a library that the user called
        if self._is_direct(site) or self._is_one_module(site):
            target = _made_by(spot)
        place = spot.place(whole=False)
        op = self._op(site)
        if op == SEQUENTIAL and node:
            op = _layer(node)
        return TraceEvent(
            clock, place, op, chain, target, operands, grad_mode=True, inside=self._inside(site)
        )

    def wrote(
        self, site: int, clock: int, version: int | None, via: tuple[TraceEvent, ...] = ()
    ) -> TraceEvent | None:
        """The moment of a call that wrote something."""
        found = self._spot(site)
        if found is None:
            return None
        spot, chain = found
        op = self._op(site)
        # Without an alias in between, an item written as a whole is a tensor of a list or dict.
        target = (self._item(site, spot) if not via else "") or self._written(site, spot)
        operands = self._operands(spot)
        if op == "__setitem__":
            op = _ITEM
        place = spot.place(whole=True)
        inside = self._inside(site)
        return TraceEvent(clock, place, op, chain, target, operands, version, via, inside=inside)

    def _operands(self, spot: CodePosition) -> tuple[str, ...]:
        """The expressions that the operation read, receiver first."""
        node = spot.node
        read: list[ast.expr] = []
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and not self._is_module(spot, node.func.value):
                read.append(node.func.value)
            read += [*_positional(node), *(k.value for k in node.keywords if k.arg is not None)]
        else:
            read = operands_of(node)
        statement = spot.statement
        if isinstance(node, ast.Subscript) and isinstance(statement, ast.Assign):
            read = [statement.value] if node in statement.targets else read
        return tuple(spot.text(e) for e in read if not is_literal(e))

    def _is_module(self, spot: CodePosition, node: ast.expr) -> bool:
        """Whether functions are called on it: `torch`, or what else is imported."""
        return _is_namespace(node) or index_of(self._program).is_module(spot.source, node)

    def mark(self, site: int, clock: int, what: str) -> TraceEvent | None:
        """A backward, a step or a zero_grad; the operand is what it was called on."""
        found = self._spot(site)
        if found is None:
            return None
        spot, chain = found
        return TraceEvent(clock, spot.place(whole=False), what, chain, operands=_receiver(spot))

    def place(self, site: int) -> Place | None:
        found = self._spot(site)
        return None if found is None else found[0].place(whole=False)

    def spot(self, site: int) -> CodePosition | None:
        found = self._spot(site)
        return None if found is None else found[0]

    def _spot(self, number: int) -> tuple[CodePosition, tuple[Place, ...]] | None:
        if number not in self._spots:
            self._spots[number] = self._find(self._sites.all[number])
        return self._spots[number]

    def _find(self, site: CallSite) -> tuple[CodePosition, tuple[Place, ...]] | None:
        spots = [spot_of(self._program, step) for step in site.steps]
        if not spots or spots[0] is None:
            return None
        outer = [s.place(whole=False) for s in spots[1:] if s is not None]
        return spots[0], tuple(reversed(outer))

    def _inside(self, number: int) -> Place | None:
        """The line of an installed package that called torch, where it was always the same."""
        found = [*self._sites.insides.get(number, ())]
        if len(found) != 1 or found[0] is None:
            return None
        code, instruction = found[0]
        line = line_of(code, instruction)
        text = linecache.getline(code.co_filename, line)
        return Place(None, code.co_filename, line, text.strip(), code.co_name)

    def _op(self, number: int) -> str:
        site = self._sites.all[number]
        if any("/torch/optim/" in file.replace("\\", "/") for file, _ in site.below):
            # A step that stayed watched, for its closure's sake.
            return "step"
        return self._names[site.operation]

    def _is_direct(self, number: int) -> bool:
        """Whether the user called the torch function, not a library that did."""
        below = self._sites.all[number].below
        return all(_ends(file, (*_THIN, _FUNCTIONAL)) for file, _ in below)

    def _is_one_module(self, number: int) -> bool:
        """Whether the user called a module of torch's that does one operation (nn.ReLU)."""
        below = self._sites.all[number].below
        rest = [(f, n) for f, n in below if not _ends(f, (*_THIN, _FUNCTIONAL))]
        if rest and rest[0][1] == "_conv_forward":
            rest = rest[1:]
        names = [n for f, n in rest[1:] if _ends(f, (_MODULE,))]
        own = bool(rest) and "/torch/nn/modules/" in rest[0][0].replace("\\", "/")
        return own and rest[0][1] == "forward" and len(names) == len(rest) - 1 <= 2

    def _item(self, number: int, spot: CodePosition) -> str:
        """`xs[0]` in `xs[0] += 1` and `xs[0].mul_(2)`, "" for other writes."""
        statement, node = spot.statement, spot.node
        if self._op(number) in ("step", "__setitem__"):
            return ""
        if isinstance(statement, ast.AugAssign) and node in (statement, statement.target):
            written: ast.expr = statement.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            written = node.func.value
            if not is_inplace_name(node.func.attr) or not self._is_direct(number):
                return ""
        else:
            return ""
        return spot.text(written) if isinstance(written, ast.Subscript) else ""

    def _written(self, number: int, spot: CodePosition) -> str:
        """The user's expression for the written tensor, "" where it has none."""
        if self._op(number) == "step":
            return ""
        statement, node = spot.statement, spot.node
        if isinstance(statement, ast.AugAssign) and node in (statement, statement.target):
            return spot.text(base_of(statement.target))
        if isinstance(node, ast.Subscript):
            return spot.text(base_of(node))
        if isinstance(node, ast.Attribute):  # `x.data = y`
            return spot.text(node.value)
        if isinstance(node, ast.Call):
            return self._written_by_call(number, spot, node)
        return ""

    def _written_by_call(self, number: int, spot: CodePosition, call: ast.Call) -> str:
        for keyword in call.keywords:
            if keyword.arg == "out":
                return spot.text(keyword.value)
        if self._is_direct(number):
            function = call.func
            method = isinstance(function, ast.Attribute) and is_inplace_name(function.attr)
            if isinstance(function, ast.Attribute) and method and not _is_namespace(function.value):
                return spot.text(base_of(function.value))
            return _first(spot, call)
        return _first(spot, call) if self._is_one_module(number) else ""


def _is_named(node: ast.AST | None, name: str) -> bool:
    """`x.data`, `x.detach()`, `torch.detach(x)`"""
    return last_name(node.func if isinstance(node, ast.Call) else node) == name


def _layer(node: str) -> str:
    """The operation that makes nodes of a name: `ReluBackward0` is made by relu."""
    stem = node.split("Backward")[0]
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", stem).lower().removeprefix("native_")
    return _OTHERWISE.get(stem, snake)


def _first(spot: CodePosition, call: ast.Call) -> str:
    first = next(_positional(call), None)
    return "" if first is None else spot.text(base_of(first))


def _is_namespace(node: ast.expr) -> bool:
    """`torch`, `F`, `nn.init`: what functions are called on."""
    return ast.unparse(node).split(".")[-1] in {"torch", "F", "functional", "init", "nn", "_C"}


def _made_by(spot: CodePosition) -> str:
    """`out` in `out = relu(x)`; the expression itself where it has no name."""
    assigned = spot.assigned
    if assigned is not None:
        return spot.text(assigned)
    return spot.text(spot.node) if isinstance(spot.node, ast.expr) else ""


def _positional(call: ast.Call) -> Iterator[ast.expr]:
    """The positional arguments; of `*(p, q)` its items, of another `*values` nothing is known."""
    for argument in call.args:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        if inner is argument:
            yield argument
        elif isinstance(inner, (ast.Tuple, ast.List)):
            yield from (e for e in inner.elts if not isinstance(e, ast.Starred))


def _receiver(spot: CodePosition) -> tuple[str, ...]:
    node = spot.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if _is_namespace(node.func.value) or ast.unparse(node.func.value).endswith("autograd"):
            return tuple(spot.text(a) for a in node.args[:1])
        return (spot.text(node.func.value),)
    return ()


def _ends(filename: str, tails: tuple[str, ...]) -> bool:
    return filename.replace("\\", "/").endswith(tails)
