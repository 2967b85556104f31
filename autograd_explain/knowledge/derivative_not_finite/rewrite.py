"""The repair inside the operation: what it computes of the values at fault reaches nobody."""

import ast
from collections.abc import Callable

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program, called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table, torch_at
from autograd_explain.rewrite.analysis.effects import fresh
from autograd_explain.rewrite.engine import cst_tools
from autograd_explain.rewrite.engine.cst_tools import bare, expression, make, walk
from autograd_explain.rewrite.engine.draft import Draft, Drafts
from autograd_explain.rewrite.transforms.call_edits import finite_fill

from .diagnose import Details
from .masks import mask_behind
from .operation import operands

#: What a sum of squares is made with, so that it may be written twice.
_SQUARES = frozenset({"sum", "square", "pow"})
_DEVIATIONS = frozenset({"std", "var", "std_mean", "var_mean"})


def _masked(draft: Draft, site: Site[Details]) -> bool:
    """`torch.where(mask, f(x), y)` -> `torch.where(mask, f(torch.where(mask, x, 1.0)), y)`, in the
    same statement or in a later one."""
    return _with_mask(draft, site, draft.tree.node(site.details.operand))


def _masked_alike(draft: Draft, site: Site[Details]) -> bool:
    """`torch.where(mask, f(x), -f(-x))`: the same operation in the other branch is masked, too."""
    tree, place = draft.tree, site.details.operand
    node, operation = tree.node(place), site.node
    mask = None if node is None else mask_behind(tree, node)
    if mask is None or mask.choice is None or operation is None or place is None:
        return False
    other = site.at(tree.place(mask.choice.args[2 if mask.kept else 1].value)).node
    given = [tree.source.span(o) for o in operands(operation)]
    if other is None or place.span not in given:
        return False
    number = given.index(place.span)
    alike = [operands(n)[number] for n in ast.walk(other) if _is_alike(n, operation)]
    places = [place, *(tree.source.place(o.lineno, None, o) for o in alike)]
    return bool(alike) and all(_with_mask(draft, site, tree.node(p)) for p in places)


def _is_alike(node: ast.AST, other: ast.AST) -> bool:
    """Whether both are one operation, of as many operands."""
    if isinstance(node, ast.BinOp) and isinstance(other, ast.BinOp):
        return type(node.op) is type(other.op)
    if not isinstance(node, ast.Call) or not isinstance(other, ast.Call):
        return False
    return called_name(node) == called_name(other) and len(operands(node)) == len(operands(other))


def _with_mask(draft: Draft, site: Site[Details], node: cst.BaseExpression | None) -> bool:
    mask = None if node is None else mask_behind(draft.tree, node)
    torch = None if node is None else torch_at(site.program, draft.tree.place(node))
    if mask is None or torch is None or node is None:
        return False
    values = ("{x}", site.details.fill) if mask.kept else (site.details.fill, "{x}")
    code = f"{torch}.where({{m}}, {', '.join(values)})"
    draft.replace(node, expression(code, m=mask.condition, x=bare(node)))
    return True


def _with_roots(
    edit: Callable[[Draft, Site[Details]], bool],
) -> Callable[[Site[Details]], Edits | None]:
    """The edit, with the roots before it as good as masked: `torch.sqrt(x)` is 0 at 0 still."""

    def run(site: Site[Details]) -> Edits | None:
        tree = site.at(site.details.operand).tree
        drafts = Drafts()
        if not edit(drafts[tree], site):
            return None
        for root in site.details.roots:
            draft = drafts[site.at(root.place).tree]
            _around(draft, site.program, root.place, root.operand, "0.0")
        return drafts.edits()

    return run


def _masked_around(draft: Draft, site: Site[Details]) -> bool:
    """`x.pow(-1)` -> `torch.where(x == 0, float("inf"), torch.where(x == 0, 1.0, x).pow(-1))`."""
    place, result = site.details.operand, f'float("{site.details.result}")'
    return place is not None and _around(draft, site.program, site.place, place, result)


def _around(draft: Draft, program: Program, at: Place, place: Place, result: str) -> bool:
    """Of an operand that is read more than once, so it has to have no effect of its own."""
    node, whole = draft.tree.node(place), draft.tree.node(at)
    torch = torch_at(program, place)
    if node is None or whole is None or torch is None:
        return False
    once = (n for n in walk(node) if isinstance(n, (cst.Call, cst.Await, cst.NamedExpr)))
    if any(cst_tools.called_name(n) not in _SQUARES for n in once):
        return False
    code = f"{torch}.where({{x}} == 0, {result}, {{f}})"
    draft.replace(node, _not_zero(torch, node))
    draft.change(whole, lambda inner: expression(code, x=node, f=bare(inner)))
    return True


def _not_zero(torch: str, node: cst.BaseExpression) -> cst.BaseExpression:
    """`torch.where(y == 0, 1.0, y)`."""
    return expression(f"{torch}.where({{y}} == 0, 1.0, {{x}})", y=node, x=bare(node))


def _bounded(site: Site[Details]) -> Edits | None:
    """`torch.sqrt(x)` -> `torch.sqrt(x.clamp_min(1e-12))`."""
    floor, ceiling = site.details.floor, site.details.ceiling
    call = f"clamp_min({floor})" if floor else f"clamp_max({ceiling})"
    call = f"clamp({floor}, {ceiling})" if floor and ceiling else call
    return site.at(site.details.operand).replaced(f"{{x}}.{call}")


def _other_than_zero(draft: Draft, site: Site[Details]) -> bool:
    """`x / y` -> `x / torch.where(y == 0, 1.0, y)`."""
    torch, node = torch_at(site.program, site.place), draft.tree.node(site.details.operand)
    if torch is not None and node is not None:
        draft.replace(node, _not_zero(torch, node))
    return draft.changed


def _uncorrected(site: Site[Details]) -> Edits | None:
    """`x.std()` -> `x.std(correction=0)`."""
    if called_name(site.node) not in _DEVIATIONS:
        return None
    unbiased = site.argument("unbiased").place is not None
    return site.given(*(("unbiased", "False") if unbiased else ("correction", "0")))


def _apart(site: Site[Details]) -> Edits | None:
    """`torch.linalg.eigh(a)` -> `torch.linalg.eigh(a + 1e-07 * torch.arange(len(a)).diag().to(a))`,
    what is computed there under a name of its own."""
    tree, torch = site.at(site.details.operand).tree, torch_at(site.program, site.place)
    node = tree.node(site.details.operand)
    statement = None if node is None else tree.statement_of(node)
    if node is None or statement is None or torch is None:
        return None
    draft, matrix = Draft(tree), node
    if not isinstance(node, cst.Name):
        matrix = cst.Name(fresh(tree, statement, "matrix"))
        draft.before(statement, [make("{m} = {x}", m=matrix, x=bare(node))])
    diagonal = f"{site.details.apart} * {torch}.arange({{m}}.shape[-1]).diag().to({{m}})"
    return draft.replace(node, expression(f"{{m}} + {diagonal}", m=matrix)).edits()


def _has_bounds(details: Details) -> bool:
    return bool(details.floor or details.ceiling)


def _is_taken_out(details: Details) -> bool:
    """An infinity at 0 that something behind the operation takes out."""
    return bool(details.fill == "1.0" and details.result and details.value == "0")


def _is_divisor(details: Details) -> bool:
    """Zero among numbers of both signs: of a division, mostly."""
    return details.fill == "1.0" and details.value == "0" and not _has_bounds(details)


propose: Propose[Details] = by_table(
    Fix("where_inside", _with_roots(_masked), when=lambda d: d.fill != ""),
    Fix("where_inside", _with_roots(_masked_alike), when=lambda d: d.fill != ""),
    Fix("where_around", _with_roots(_masked_around), when=_is_taken_out),
    Fix("correction", _uncorrected, changes=True),
    Fix("repair_finite_fill", at_place(finite_fill), changes=True),
    Fix("clamp_input", _bounded, when=_has_bounds, changes=True),
    Fix("apart", _apart, when=lambda d: d.apart != "", changes=True),
    Fix("nonzero", _with_roots(_other_than_zero), when=_is_divisor, changes=True),
)
