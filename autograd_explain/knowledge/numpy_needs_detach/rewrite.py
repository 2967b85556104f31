"""Store numbers where only numbers are wanted; detach where an array is wanted."""

import ast

from autograd_explain.model import Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import filled_at
from autograd_explain.rewrite.transforms.numpy_detour import in_torch
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_all,
    apply_patches,
    called,
    code_of,
    node_at,
    replacement,
    tensors_instead_of_copy,
    torch_instead_of_numpy,
    unwrapped,
    without_cut,
    without_ending,
)

from .conversion import tensor_itself
from .diagnose import Details
from .differentiated import Part
from .numpy_reads import Of, Way


def _stored(site: Site[Details], method: str) -> Edits | None:
    """`self.losses.append(loss)` -> `self.losses.append(loss.item())`."""
    stores = [e.place for e in site.finding.events if e.what is What.CAUSE]
    return apply_patches(p for place in stores for p in called(site.program, place, method))


def _in_torch(site: Site[Details]) -> Edits | None:
    """What NumPy computes of a value in torch, where a tensor is made of it again."""
    first = next((place for place, _ in site.details.reads), None)
    source, node = site.program.source_at(first), node_at(site.program, first)
    if first is None or source is None or node is None:
        return None
    around = (n for n in source.around(node) if isinstance(n, ast.expr))
    left = next((call for call in around if without_ending(call) is node), node)
    return apply_patches(in_torch(site.program, first, left) or ())


def _whole_way(site: Site[Details]) -> Edits | None:
    """All that NumPy computes on the way to a differentiated value, in torch."""
    way = site.details.differentiated
    return apply_all(_part_in_torch(site.program, *part) for part in way.parts) if way else None


def _part_in_torch(program: Program, place: Place, part: Part) -> list[Patch]:
    if part is Part.FUNCTION:
        return torch_instead_of_numpy(program, place)
    if part is Part.ARRAY_OF:
        return tensors_instead_of_copy(program, place, True)
    if part is Part.END:
        return without_cut(program, place)
    source, node = program.source_at(place), node_at(program, place)
    if part is Part.BACK and isinstance(node, ast.Call) and source is not None:
        return unwrapped(source, node)
    return filled_at(program, place, "{torch}.as_tensor({x})")


def _all_reads(site: Site[Details]) -> Edits | None:
    """Every expression of the call taken out of the graph; None where one of them cannot be."""
    return apply_all(_read(site.program, place, way) for place, way in site.details.reads)


def _read(program: Program, place: Place, way: Way | None) -> list[Patch]:
    if way is None:
        return []
    if way.of is Of.ITSELF:
        return called(program, place, way.method)
    node = node_at(program, place)
    if node is None:
        return []
    if way.of is Of.RESULT:
        code = code_of(program, place, node)
        return replacement(program, place, f"lambda *args: {code}(*args).{way.method}()")
    return replacement(program, place, _each(program, place, node, way))


def _each(program: Program, place: Place, node: ast.expr, way: Way) -> str:
    """`[value.item() for value in xs]` for `xs` and `list(xs)`, with a star as it was."""
    star = "*" if isinstance(node, ast.Starred) else ""
    node = node.value if isinstance(node, ast.Starred) else node
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("list", "tuple"):
        node = node.args[0]
    code = code_of(program, place, node)
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    name = next(n for n in ("value", "v", "tensor") if n not in used)
    if way.of is Of.EACH_VALUE:
        return f"{{key: {name}.{way.method}() for key, {name} in {code}.items()}}"
    return f"{star}[{name}.{way.method}() for {name} in {code}]"


propose: Propose[Details] = by_table(
    Fix("differentiated", _whole_way),
    Fix("itself", lambda s: tensor_itself(s.program, s.details.conversion), changes=True),
    Fix(
        "store_number",
        lambda s: _stored(s, "item"),
        when=lambda d: d.stored and d.numbers and d.differentiated is None,
    ),
    Fix(
        "store_detached",
        lambda s: _stored(s, "detach"),
        when=lambda d: d.stored and not d.numbers and d.differentiated is None,
    ),
    Fix("in_torch", _in_torch, changes=True),
    Fix("detach", _all_reads, when=lambda d: d.differentiated is None),
)
