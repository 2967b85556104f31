"""Store numbers where only numbers are wanted; detach where an array is wanted."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Event, Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    called,
    code_of,
    node_at,
    replacement,
    round_trip_in_torch,
)


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    stores = [e for e in finding.events if e.what is What.CAUSE and e.op in ("item", "detach")]
    edits = apply_patches(p for e in stores for p in _stored(program, e))
    if edits:
        yield Proposal("store_number" if stores[0].op == "item" else "store_detached", edits)
    for read in [place for places in finding.places.values() for place in places][:1]:
        edits = apply_patches(round_trip_in_torch(program, read))
        if edits:
            yield Proposal("in_torch", edits, Safety.CHANGES_MEANING, intended_difference=True)
    edits = apply_patches(_all_reads(program, finding))
    if edits:
        yield Proposal("detach", edits)


def _all_reads(program: Program, finding: Finding) -> list[Patch]:
    """Every expression of the call taken out of the graph; [] where one of them cannot be."""
    patches: list[Patch] = []
    for how, places in finding.places.items():
        for place in places:
            found = _read(program, place, how)
            if not found:
                return []
            patches += found
    return patches


def _stored(program: Program, event: Event) -> list[Patch]:
    """`self.losses.append(loss)` -> `self.losses.append(loss.item())`."""
    return called(program, event.place, event.op or "detach")


def _read(program: Program, place: Place, how: str) -> list[Patch]:
    for name, method in _METHODS.items():
        if how == name:
            return called(program, place, method)
    node = node_at(program, place)
    if node is None or not how:
        return []
    way, _, kind = how.partition("_")
    method = _METHODS[kind.removesuffix("_of_dict")]
    if way == "callback":
        code = code_of(program, place, node)
        return replacement(program, place, f"lambda *args: {code}(*args).{method}()")
    return replacement(program, place, _each(program, place, node, method, how))


_METHODS = {
    "before_numpy": "detach",
    "as_array": "detach().numpy",
    "item": "item",
    "alone": "detach",
}


def _each(program: Program, place: Place, node: ast.expr, method: str, how: str) -> str:
    """`[value.item() for value in xs]` for `xs` and `list(xs)`, with a star as it was."""
    star = "*" if isinstance(node, ast.Starred) else ""
    node = node.value if isinstance(node, ast.Starred) else node
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("list", "tuple"):
        node = node.args[0]
    code = code_of(program, place, node)
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    name = next(n for n in ("value", "v", "tensor") if n not in used)
    if how.endswith("_of_dict"):
        return f"{{key: {name}.{method}() for key, {name} in {code}.items()}}"
    return f"{star}[{name}.{method}() for {name} in {code}]"
