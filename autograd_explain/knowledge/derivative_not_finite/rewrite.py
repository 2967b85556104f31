"""The repair inside the operation: what it computes of the values at fault reaches nobody."""

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table, torch_at
from autograd_explain.rewrite.engine import cst_tools
from autograd_explain.rewrite.engine.cst_tools import bare, expression, walk
from autograd_explain.rewrite.engine.draft import Drafts
from autograd_explain.rewrite.transforms.call_edits import finite_fill

from .diagnose import Details
from .masks import mask_behind

#: What a sum of squares is made with, so that it may be written twice.
_SQUARES = frozenset({"sum", "square", "pow"})
_DEVIATIONS = frozenset({"std", "var", "std_mean", "var_mean"})


def _masked(site: Site[Details]) -> Edits | None:
    """`torch.where(mask, f(x), y)` -> `torch.where(mask, f(torch.where(mask, x, 1.0)), y)`, in the
    same statement or in a later one."""
    operand, drafts = site.at(site.details.operand), Drafts()
    node, torch = operand.tree.node(operand.place), torch_at(site.program, operand.place)
    mask = None if node is None else mask_behind(operand.tree, node)
    if mask is None or torch is None or node is None:
        return None
    values = ("{x}", site.details.fill) if mask.kept else (site.details.fill, "{x}")
    code = f"{torch}.where({{m}}, {', '.join(values)})"
    drafts[operand.tree].replace(node, expression(code, m=mask.condition, x=bare(node)))
    return _with_roots(drafts, site)


def _masked_around(site: Site[Details]) -> Edits | None:
    """`x.pow(-1)` -> `torch.where(x == 0, float("inf"), torch.where(x == 0, 1.0, x).pow(-1))`."""
    drafts, result = Drafts(), f'float("{site.details.result}")'
    done = _around(drafts, site, site.place, site.details.operand, result)
    return _with_roots(drafts, site) if done else None


def _with_roots(drafts: Drafts, site: Site[Details]) -> Edits | None:
    """The edits, with the roots before them as good as masked: `torch.sqrt(x)` is 0 at 0 still."""
    for root in site.details.roots:
        _around(drafts, site, root.place, root.operand, "0.0")
    return drafts.edits()


def _around(
    drafts: Drafts, site: Site[Details], at: Place, place: Place | None, result: str
) -> bool:
    """Of an operand that is read more than once, so it has to have no effect of its own."""
    tree, torch = site.at(at).tree, torch_at(site.program, place)
    node, whole = tree.node(place), tree.node(at)
    if node is None or whole is None or torch is None:
        return False
    once = (n for n in walk(node) if isinstance(n, (cst.Call, cst.Await, cst.NamedExpr)))
    if any(cst_tools.called_name(n) not in _SQUARES for n in once):
        return False
    other = expression(f"{torch}.where({{y}} == 0, 1.0, {{x}})", y=node, x=bare(node))
    code = f"{torch}.where({{x}} == 0, {result}, {{f}})"
    drafts[tree].replace(node, other)
    drafts[tree].change(whole, lambda inner: expression(code, x=node, f=bare(inner)))
    return True


def _bounded(site: Site[Details]) -> Edits | None:
    """`torch.sqrt(x)` -> `torch.sqrt(x.clamp_min(1e-12))`."""
    floor, ceiling = site.details.floor, site.details.ceiling
    call = f"clamp_min({floor})" if floor else f"clamp_max({ceiling})"
    call = f"clamp({floor}, {ceiling})" if floor and ceiling else call
    return site.at(site.details.operand).replaced(f"{{x}}.{call}")


def _uncorrected(site: Site[Details]) -> Edits | None:
    """`x.std()` -> `x.std(correction=0)`."""
    if called_name(site.node) not in _DEVIATIONS:
        return None
    unbiased = site.argument("unbiased").place is not None
    return site.given(*(("unbiased", "False") if unbiased else ("correction", "0")))


def _apart(site: Site[Details]) -> Edits | None:
    """`eigh(a)` -> `eigh(a + 1e-07 * torch.arange(a.shape[-1]).diag().to(a))`"""
    diagonal = f"{site.details.apart} * {{torch}}.arange({{name}}.shape[-1]).diag().to({{name}})"
    return site.at(site.details.operand).replaced(f"{{name}} + {diagonal}")


def _has_bounds(details: Details) -> bool:
    return bool(details.floor or details.ceiling)


def _is_taken_out(details: Details) -> bool:
    """An infinity at 0 that something behind the operation takes out."""
    return bool(details.fill == "1.0" and details.result and details.value == "0")


def _is_divisor(details: Details) -> bool:
    """Zero among numbers of both signs: of a division, mostly."""
    return details.fill == "1.0" and details.value == "0" and not _has_bounds(details)


propose: Propose[Details] = by_table(
    Fix("where_inside", _masked, when=lambda d: d.fill != ""),
    Fix("where_around", _masked_around, when=_is_taken_out),
    Fix("correction", _uncorrected, changes=True),
    Fix("repair_finite_fill", at_place(finite_fill), changes=True),
    Fix("clamp_input", _bounded, when=_has_bounds, changes=True),
    Fix("apart", _apart, when=lambda d: d.apart != "", changes=True),
    Fix(
        "nonzero",
        lambda s: s.at(s.details.operand).replaced("{torch}.where({x} == 0, 1.0, {x})"),
        when=_is_divisor,
        changes=True,
    ),
)
