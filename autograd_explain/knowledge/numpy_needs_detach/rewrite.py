"""Store numbers where only numbers are wanted; detach where an array is wanted."""

import ast
from functools import partial

from autograd_explain.model import What
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.numpy_detour import in_torch
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_all,
    apply_patches,
    called,
    replacement,
    tensors_instead_of_copy,
    torch_instead_of_numpy,
    without_cut,
    without_ending,
)

from .conversion import tensor_itself
from .diagnose import Details
from .differentiated import Part
from .numpy_reads import Of, Way


def _stored(site: Site[Details], numbers: bool) -> Edits | None:
    """`self.losses.append(loss)` -> `self.losses.append(loss.item())`."""
    details, method = site.details, "item" if numbers else "detach"
    if not details.stored or details.numbers is not numbers or details.differentiated is not None:
        return None
    return site.at(*site.finding.places(What.CAUSE)).called(method)


def _in_torch(site: Site[Details]) -> Edits | None:
    """What NumPy computes of a value in torch, where a tensor is made of it again."""
    read = site.at(next((place for place, _ in site.details.reads), None))
    if read.place is None or read.node is None:
        return None
    around = (n for n in read.around if isinstance(n, ast.expr))
    left = next((call for call in around if without_ending(call) is read.node), read.node)
    return apply_patches(in_torch(site.program, read.place, left) or ())


def _whole_way(site: Site[Details]) -> Edits | None:
    """All that NumPy computes on the way to a differentiated value, in torch."""
    way = site.details.differentiated
    return apply_all(_part_in_torch(site.at(p), part) for p, part in way.parts) if way else None


def _part_in_torch(spot: Spot, part: Part) -> list[Patch]:
    if part is Part.FUNCTION:
        return torch_instead_of_numpy(spot.program, spot.place)
    if part in (Part.ARRAY_OF, Part.BACK):
        return tensors_instead_of_copy(spot.program, spot.place, part is Part.ARRAY_OF)
    if part is Part.END:
        return without_cut(spot.program, spot.place)
    return spot.with_code("{torch}.as_tensor({x})")


def _all_reads(site: Site[Details]) -> Edits | None:
    """Every expression of the call taken out of the graph; None where one of them cannot be."""
    return apply_all(_read(site.at(place), way) for place, way in site.details.reads)


def _read(spot: Spot, way: Way | None) -> list[Patch]:
    if way is None or spot.node is None:
        return []
    if way.of is Of.ITSELF:
        return called(spot.program, spot.place, way.method)
    if way.of is Of.RESULT:
        return spot.with_code(f"lambda *args: {{x}}(*args).{way.method}()")
    return replacement(spot.program, spot.place, _each(spot, spot.node, way))


def _each(spot: Spot, node: ast.expr, way: Way) -> str:
    """`[value.item() for value in xs]` for `xs` and `list(xs)`, with a star as it was."""
    star = "*" if isinstance(node, ast.Starred) else ""
    node = node.value if isinstance(node, ast.Starred) else node
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("list", "tuple"):
        node = node.args[0]
    code = spot.code(node)
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    name = next(n for n in ("value", "v", "tensor") if n not in used)
    if way.of is Of.EACH_VALUE:
        return f"{{key: {name}.{way.method}() for key, {name} in {code}.items()}}"
    return f"{star}[{name}.{way.method}() for {name} in {code}]"


propose: Propose[Details] = by_table(
    Fix("differentiated", _whole_way),
    Fix("itself", lambda s: tensor_itself(s.program, s.details.conversion), changes=True),
    Fix("store_number", partial(_stored, numbers=True)),
    Fix("store_detached", partial(_stored, numbers=False)),
    Fix("in_torch", _in_torch, changes=True),
    Fix("detach", _all_reads, when=lambda d: d.differentiated is None),
)
