"""The repair inside the operation: what it computes of the values at fault reaches nobody."""

import ast
from collections.abc import Callable
from dataclasses import replace

from autograd_explain.model import Place, Span
from autograd_explain.program import Program, called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table, torch_at
from autograd_explain.rewrite.transforms.call_edits import operand
from autograd_explain.rewrite.transforms.finite_mask import finite_fill, rows_left
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    code_of,
    keyword_added,
    node_at,
    replacement,
)

from .diagnose import Details
from .operation import operands

_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
#: What a sum of squares is made with, so that it may be written twice.
_SQUARES = frozenset({"sum", "square", "pow"})
_DEVIATIONS = frozenset({"std", "var", "std_mean", "var_mean"})


def _masked(site: Site[Details]) -> list[Patch]:
    """`torch.where(mask, f(x), y)` -> `torch.where(mask, f(torch.where(mask, x, 1.0)), y)`."""
    choice = _choice(site.program, site.details.operand)
    place = site.details.operand
    return [] if choice is None or place is None else _with_mask(site.program, place, *choice)


def _masked_alike(site: Site[Details]) -> Edits | None:
    """`torch.where(mask, f(x), -f(-x))`: the same operation in the other branch is masked, too."""
    program, place = site.program, site.details.operand
    choice, operation = _choice(program, place), node_at(program, site.place)
    source = program.source_at(place)
    if choice is None or source is None or place is None or operation is None:
        return None
    call, first = choice
    number = next(
        (n for n, o in enumerate(operands(operation)) if source.span(o) == place.span), -1
    )
    alike = [n for n in ast.walk(call.args[2 if first else 1]) if _is_alike(n, operation)]
    if number < 0 or not alike:
        return None
    patches = _with_mask(program, place, call, first)
    for other in alike:
        operand = operands(other)[number]
        at = source.place(operand.lineno, None, operand)
        patches += _with_mask(program, at, call, not first)
    return apply_patches(patches)


def _is_alike(node: ast.AST, other: ast.AST) -> bool:
    """Whether both are one operation, of as many operands."""
    if isinstance(node, ast.BinOp) and isinstance(other, ast.BinOp):
        return type(node.op) is type(other.op)
    if not isinstance(node, ast.Call) or not isinstance(other, ast.Call):
        return False
    return called_name(node) == called_name(other) and len(operands(node)) == len(operands(other))


def _with_mask(program: Program, place: Place, call: ast.Call, first: bool) -> list[Patch]:
    torch, node = torch_at(program, place), node_at(program, place)
    if torch is None or node is None:
        return []
    code, mask = code_of(program, place, node), code_of(program, place, call.args[0])
    kept = f"{code}, 1.0" if first else f"1.0, {code}"
    return _in_place_of(program, place, f"{torch}.where({mask}, {kept})")


def _choice(program: Program, place: Place | None) -> tuple[ast.Call, bool] | None:
    """The `torch.where` around the operand, and whether it stands in its first branch."""
    source, node = program.source_at(place), node_at(program, place)
    if source is None or node is None:
        return None
    inner: ast.AST = node
    for outer in source.around(node):
        if isinstance(outer, ast.Call) and called_name(outer) == "where" and len(outer.args) == 3:
            if inner in outer.args[1:]:
                return outer, inner is outer.args[1]
        if isinstance(outer, ast.stmt):
            return None
        inner = outer
    return None


def _with_roots(
    edit: Callable[[Site[Details]], list[Patch]],
) -> Callable[[Site[Details]], Edits | None]:
    """The edit, with the roots before it as good as masked: `torch.sqrt(x)` is 0 at 0 still."""

    def run(site: Site[Details]) -> Edits | None:
        first = edit(site)
        roots = [_around(site.program, r.place, r.operand, "0.0") for r in site.details.roots]
        return apply_patches([p for patches in (first, *roots) for p in patches]) if first else None

    return run


def _masked_around(site: Site[Details]) -> list[Patch]:
    """`x.pow(-1)` -> `torch.where(x == 0, float("inf"), torch.where(x == 0, 1.0, x).pow(-1))`."""
    place, result = site.details.operand, f'float("{site.details.result}")'
    return [] if place is None else _around(site.program, site.place, place, result)


def _around(program: Program, at: Place | None, place: Place, result: str) -> list[Patch]:
    """Of an operand that is read more than once, so it has to have no effect of its own."""
    node, torch = node_at(program, place), torch_at(program, place)
    if node is None or at is None or torch is None:
        return []
    once = (n for n in ast.walk(node) if isinstance(n, (ast.Call, ast.Await, ast.NamedExpr)))
    if any(not isinstance(n, ast.Call) or called_name(n) not in _SQUARES for n in once):
        return []
    tested = f"{operand(program, place, node)} == 0"
    safe = f"{torch}.where({tested}, 1.0, {code_of(program, place, node)})"
    around = f"{torch}.where({tested}, {result}, "
    return _between(_in_place_of(program, place, safe), program, at, around, ")")


def _between(
    inner: list[Patch], program: Program, place: Place, before: str, behind: str
) -> list[Patch]:
    """What replaces a part of an expression, with a text put before and behind the whole."""
    source, node = program.source_at(place), node_at(program, place)
    whole = None if source is None or node is None else source.span(node)
    if source is None or whole is None or len(inner) != 1:
        return []
    patch = inner[0]
    start, end = (whole.line, whole.column), (whole.end_line, whole.end_column)
    if start == (patch.span.line, patch.span.column):
        patch, before = replace(patch, text=before + patch.text), ""
    if end == (patch.span.end_line, patch.span.end_column):
        patch, behind = replace(patch, text=patch.text + behind), ""
    return [
        *([Patch(source, Span(*start, *start), before)] if before else []),
        patch,
        *([Patch(source, Span(*end, *end), behind)] if behind else []),
    ]


def _bounded(site: Site[Details]) -> Edits | None:
    """`torch.sqrt(x)` -> `torch.sqrt(x.clamp_min(1e-12))`."""
    floor, ceiling = site.details.floor, site.details.ceiling
    if floor and ceiling:
        return _replaced(site, f"{{x}}.clamp({floor}, {ceiling})")
    return _replaced(site, f"{{x}}.clamp_min({floor})" if floor else f"{{x}}.clamp_max({ceiling})")


def _other_than_zero(site: Site[Details]) -> list[Patch]:
    """`x / y` -> `x / torch.where(y == 0, 1.0, y)`."""
    program, place = site.program, site.details.operand
    torch, node = torch_at(program, place), node_at(program, place)
    if torch is None or node is None or place is None:
        return []
    code = code_of(program, place, node)
    tested = operand(program, place, node)
    return _in_place_of(program, place, f"{torch}.where({tested} == 0, 1.0, {code})")


def _uncorrected(site: Site[Details]) -> Edits | None:
    """`x.std()` -> `x.std(correction=0)`."""
    node = node_at(site.program, site.place)
    if not isinstance(node, ast.Call) or called_name(node) not in _DEVIATIONS:
        return None
    if any(k.arg == "unbiased" for k in node.keywords):
        return apply_patches(keyword_added(site.program, site.place, "unbiased", "False"))
    return apply_patches(keyword_added(site.program, site.place, "correction", "0"))


def _replaced(site: Site[Details], template: str) -> Edits | None:
    """Something else for the operand; `{x}` in the template is its text as a method takes it."""
    program, place = site.program, site.details.operand
    node = node_at(program, place)
    if node is None or place is None:
        return None
    code = template.replace("{x}", operand(program, place, node))
    return apply_patches(_in_place_of(program, place, code))


def _in_place_of(program: Program, place: Place, code: str) -> list[Patch]:
    """As `replacement`; the parentheses that a method's operand needed go with it."""
    patches = replacement(program, place, code)
    source, node = program.source_at(place), node_at(program, place)
    if source is None or node is None or len(patches) != 1 or isinstance(node, _ATOMS):
        return patches
    span = patches[0].span
    before = source.lines[span.line - 1][: span.column]
    behind = source.lines[span.end_line - 1][span.end_column :]
    method = isinstance(source.parents.get(node), ast.Attribute)
    if not (method and before.endswith("(") and behind.startswith(")")):
        return patches
    whole = Span(span.line, span.column - 1, span.end_line, span.end_column + 1)
    return [Patch(source, whole, code)]


def _has_bounds(details: Details) -> bool:
    return bool(details.floor or details.ceiling)


def _is_taken_out(details: Details) -> bool:
    """An infinity at 0 that something behind the operation takes out."""
    return bool(details.one and details.result and details.value == "0")


def _is_divisor(details: Details) -> bool:
    """Zero among numbers of both signs: of a division, mostly."""
    return details.one and details.value == "0" and not _has_bounds(details)


propose: Propose[Details] = by_table(
    Fix("where_inside", _with_roots(_masked), when=lambda d: d.one),
    Fix("where_inside", _masked_alike, when=lambda d: d.one),
    Fix("where_around", _with_roots(_masked_around), when=_is_taken_out),
    Fix("correction", _uncorrected, changes=True),
    Fix("repair_finite_fill", at_place(finite_fill), changes=True),
    Fix("repair_rows_left", at_place(rows_left), changes=True),
    Fix("clamp_input", _bounded, when=_has_bounds, changes=True),
    Fix("nonzero", _with_roots(_other_than_zero), when=_is_divisor, changes=True),
)
