"""What is written to take the graph off what an object keeps, or to name all of it.

Both are text: statements that go on with the values alone, in loops where a container holds
several, and an expression that gives the tensors.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from types import FunctionType
from typing import Any

import torch

from ...isolation.type_checks import bases, class_attribute, class_table, elements, is_a, items
from ..live.class_source import parsed
from .held_tensors import Held, Way

_CONTAINERS = (list, tuple, deque, dict)
_MOST_LINES = 12
_INDENT = "    "


@dataclass(frozen=True)
class _Names:
    """What a loop may call an element: nothing that the program calls so."""

    taken: Collection[str]
    empty: bool = False  #: elements of the container at hand may be None, if none is now

    def of_element(self, path: str) -> str:
        last = path.rpartition(".")[2]
        singular = f"{last[:-3]}y" if last.endswith("ies") else last.removesuffix("s")
        wishes = (singular, "item", "part", f"{last}_item")
        fit = (w for w in wishes if w.isidentifier() and w != last and w not in self.taken)
        return next(fit, "_item")

    def with_element(self, name: str) -> _Names:
        return replace(self, taken={*self.taken, name})


def detaching(
    held: Held,
    name: str,
    taken: Collection[str] = (),
    sure: Callable[[torch.Tensor], bool] = lambda _: False,
) -> str:
    """Statements after which the object that `name` stands for keeps the values without a graph; ""
    where there are none, or too many to read.

    `taken` are names that a loop may not use; `sure` tells that a tensor's place is never None.
    """
    lines = _detach(held, name, _Names(taken), sure)
    return "".join(f"{line}\n" for line in lines) if lines and len(lines) <= _MOST_LINES else ""


def copies_by_identity(held: Held, name: str, again: bool = False) -> str:
    """The dict of a copy without a graph for each tensor, by its identity: the `memo` with which
    `copy.deepcopy` takes these copies.  `again`: it is made more than once, and may find None where
    a class begins with that."""
    found = list(_listed(held, name, _Names(("t",))))
    if not found:
        return ""
    empty = {type(None)} if again and any(map(_may_be_none, held.chains())) else set()
    guard = _guard({*_others(held), *empty})
    if len(found) == 1 and found[0][0] != "*" and not guard:
        return f"{{id({name_}): {name_}.detach().clone()}}" if (name_ := found[0]) else ""
    return f"{{id(t): t.detach().clone() {_each(found)}{guard}}}"


def _may_be_none(chain: tuple[Held, ...]) -> bool:
    pairs = [(a, b) for a, b in pairwise(chain) if b.way is Way.ATTRIBUTE]
    return bool(pairs) and _begins_as_none(pairs[-1][0].value, pairs[-1][1].key)


def _guard(others: set[type]) -> str:
    if not others:
        return ""
    return " if t is not None" if others == {type(None)} else ' if hasattr(t, "detach")'


# -- statements -------------------------------------------------------------------------


def _detach(
    node: Held, name: str, names: _Names, sure: Callable[[torch.Tensor], bool]
) -> list[str] | None:
    """None where something of it cannot be given another value."""
    if not node.parts:
        return [f"{name} = {name}.detach()"]
    if is_a(node.value, _CONTAINERS) and (cut := _in_one(node, name, names)) is not None:
        return cut
    lines: list[str] = []
    for part in node.parts:
        if part.way is Way.ATTRIBUTE:
            more = _detach_attribute(node, part, name, names, sure)
            if more is None:
                return None
            lines += more
    inside = [p for p in node.parts if p.way is not Way.ATTRIBUTE]
    more = _detach_each(node, inside, name, names, sure) if inside else []
    return None if more is None else lines + more


def _detach_attribute(
    node: Held, part: Held, name: str, names: _Names, sure: Callable[[torch.Tensor], bool]
) -> list[str] | None:
    path = f"{name}{part.step}"
    if not part.parts and (_is_fixed(node.value) or _is_computed(node.value, part.key)):
        return None
    known = all(any(map(sure, alike)) for alike in _alike(part))
    empty = not known and _begins_as_none(node.value, part.key)
    lines = _detach(part, path, replace(names, empty=empty), sure)
    if lines and empty and (not part.parts or is_a(part.value, tuple)):
        return [f"if {path} is not None:", *(_INDENT + line for line in lines)]
    return lines


def _detach_each(
    node: Held,
    parts: list[Held],
    name: str,
    names: _Names,
    sure: Callable[[torch.Tensor], bool],
) -> list[str] | None:
    """The same for each object in a container, in a loop where they are of one kind."""
    kinds = {type(part.value) for part in parts}
    if len(kinds) > 1 or torch.Tensor in kinds:
        lines = [_detach(part, f"{name}{part.step}", names, sure) for part in parts]
        return None if None in lines else [line for more in lines if more for line in more]
    element = names.of_element(name)
    lines_of_one = _detach(_united(parts), element, names.with_element(element), sure)
    if lines_of_one is None or any(line.startswith(f"{element} = ") for line in lines_of_one):
        return None
    return [f"for {element} in {_iterated(node, name)}:", *(_INDENT + x for x in lines_of_one)]


def _in_one(node: Held, name: str, names: _Names) -> list[str] | None:
    """A statement for a container of tensors, or of containers of tensors."""
    value = _value(node, name, names)
    if value is None:
        return None
    if is_a(node.value, list):
        return [f"{name}[:] = {value}"]
    if is_a(node.value, (dict, deque)):
        key, element = ("key", "value") if is_a(node.value, dict) else ("i", "value")
        pairs = f"{name}.items()" if is_a(node.value, dict) else f"enumerate({name})"
        one = _of_element(node, element, names)
        return [f"for {key}, {element} in {pairs}:", f"{_INDENT}{name}[{key}] = {one}"]
    return [f"{name} = {value}"]


def _value(node: Held, name: str, names: _Names) -> str | None:
    """The container without graphs, as an expression; None where it holds objects."""
    if any(p.way is Way.ATTRIBUTE for p in node.parts) or not _is_plain(node):
        return None
    deeper = any(part.parts for part in node.parts)
    element = names.of_element(name) if deeper else "v"
    one = _of_element(node, element, names)
    if one is None:
        return None
    if is_a(node.value, dict):
        return f"{{key: {one} for key, {element} in {name}.items()}}"
    each = f"{one} for {element} in {name}"
    return f"tuple({each})" if is_a(node.value, tuple) else f"[{each}]"


def _of_element(node: Held, element: str, names: _Names) -> str | None:
    """What an element becomes: all of them are tensors, or containers of such."""
    if all(not part.parts for part in node.parts):
        others = {type(v) for v in _values(node.value) if not is_a(v, torch.Tensor)}
        if others - {type(None)}:
            return f'{element}.detach() if hasattr({element}, "detach") else {element}'
        none = others or names.empty
        cut = f"{element}.detach()"
        return f"None if {element} is None else {cut}" if none else cut
    alike = {type(value) for value in _values(node.value)}
    if len(alike) > 1 or not all(part.parts for part in node.parts):
        return None
    inner = _united(node.parts)
    return _value(inner, element, names.with_element(element)) if _is_plain(inner) else None


def _is_plain(node: Held) -> bool:
    """Whether it is a container that an expression makes anew: not of a class of its own."""
    return type(node.value) in _CONTAINERS


def _united(parts: list[Held]) -> Held:
    """One object for several of a kind, with the parts that any of them has."""
    found: dict[tuple[Way | None, Any], list[Held]] = {}
    for inner in (inner for part in parts for inner in part.parts):
        found.setdefault((inner.way, inner.key), []).append(inner)
    first = parts[0]
    united = [_united(group) for group in found.values()]
    alike = tuple(p.value for p in parts if is_a(p.value, torch.Tensor))
    return Held(first.value, first.way, first.key, united, alike)


def _alike(node: Held) -> Iterator[tuple[torch.Tensor, ...]]:
    if not node.parts:
        yield node.alike or (node.value,)
    for part in node.parts:
        yield from _alike(part)


def _is_fixed(owner: Any) -> bool:
    """Whether its class refuses new values of attributes: a frozen dataclass, a named tuple."""
    options = class_attribute(type(owner), "__dataclass_params__")
    return getattr(options, "frozen", False) is True or is_a(owner, tuple)


def _is_computed(owner: Any, attribute: str) -> bool:
    return is_a(class_attribute(type(owner), attribute), property)


def _begins_as_none(owner: Any, attribute: str) -> bool:
    """Whether the class gives the attribute None, or a list of such; so where its text is not to
    be had."""
    kinds = [kind for kind in bases(type(owner)) if kind is not object][:4]
    known = [tree for kind in kinds for tree in _trees(kind)]
    return (
        not kinds
        or not _trees(kinds[0])
        or any(
            any(isinstance(n, ast.Constant) and n.value is None for n in _first_values(node.value))
            for tree in known
            for node in ast.walk(tree)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for leaf in getattr(target, "elts", [target])
            if getattr(leaf, "attr", getattr(leaf, "id", "")) == attribute
        )
    )


def _trees(kind: type) -> list[ast.Module]:
    """The text of a class; of one of a cell, which may have none, that of its methods."""
    whole = parsed(kind)
    methods = (m for m in class_table(kind).values() if is_a(m, FunctionType))
    found = [whole] if whole is not None else [parsed(method) for method in methods]
    return [tree for tree in found if tree is not None]


def _first_values(value: ast.expr) -> Iterator[ast.expr]:
    """`None` of `a, b = 0, None` and of `[None] * n`."""
    yield value
    if isinstance(value, (ast.Tuple, ast.List)):
        yield from value.elts
    elif isinstance(value, ast.BinOp):
        yield from _first_values(value.left)


# -- an expression ----------------------------------------------------------------------


def _listed(node: Held, name: str, names: _Names) -> Iterator[str]:
    """The tensors as elements of a display, several with a star."""
    if not node.parts:
        yield name
        return
    for part in (p for p in node.parts if p.way is Way.ATTRIBUTE):
        yield from _listed(part, f"{name}{part.step}", names)
    inside = [p for p in node.parts if p.way is not Way.ATTRIBUTE]
    if not inside:
        return
    if all(not part.parts for part in inside):
        yield f"*{_iterated(node, name)}"
    elif len({type(value) for value in _values(node.value)}) == 1:
        element = names.of_element(name)
        found = list(_listed(_united(inside), element, names.with_element(element)))
        yield f"*(t for {element} in {_iterated(node, name)} {_each(found)})"
    else:
        for part in inside:
            yield from _listed(part, f"{name}{part.step}", names)


def _each(found: list[str]) -> str:
    """`for t in …` over elements of a display."""
    if len(found) == 1 and found[0].startswith("*(t "):
        return found[0][4:-1]
    if len(found) == 1:
        return f"for t in {found[0][1:]}" if found[0][0] == "*" else f"for t in ({found[0]},)"
    return f"for t in ({', '.join(found)})"


def _others(node: Held) -> Iterator[type]:
    """The kinds of what stands beside the tensors of the containers."""
    inside = [p for p in node.parts if p.way is not Way.ATTRIBUTE]
    if inside and all(not part.parts for part in inside):
        yield from (type(v) for v in _values(node.value) if not is_a(v, torch.Tensor))
    for part in node.parts:
        yield from _others(part)


def _iterated(node: Held, name: str) -> str:
    return f"{name}.values()" if is_a(node.value, (dict, torch.nn.ModuleDict)) else name


def _values(container: Any) -> list[Any]:
    if is_a(container, dict):
        return [value for _, value in items(container)]
    if is_a(container, (list, tuple, deque)):
        return elements(container)
    own = items(object.__getattribute__(container, "__dict__").get("_modules", {}))
    return [value for _, value in own]
