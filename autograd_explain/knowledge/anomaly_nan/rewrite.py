"""A limit for the input of an operation whose derivative is infinite at the edge."""

import ast

from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement

from .diagnose import Details

_EDGE_AT_ZERO = ("SqrtBackward0", "LogBackward0", "RsqrtBackward0", "Log2Backward0")


def _clamped(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    operand = _operand(node) if isinstance(node, ast.Call) else None
    if node is None or operand is None:
        return None
    code = code_of(site.program, site.place, operand)
    atom = isinstance(operand, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    safe = f"{code if atom else f'({code})'}.clamp_min(1e-12)"
    whole = code_of(site.program, site.place, node)
    return apply_patches(replacement(site.program, site.place, whole.replace(code, safe, 1)))


def _operand(call: ast.Call) -> ast.expr | None:
    """`x` of `torch.sqrt(x)` and of `x.sqrt()`."""
    if call.args:
        return call.args[0] if ast.unparse(call.func).startswith("torch.") else None
    return call.func.value if isinstance(call.func, ast.Attribute) else None


propose: Propose[Details] = by_table(
    Fix(
        "clamp_input",
        _clamped,
        when=lambda d: d.value == "0" and d.node in _EDGE_AT_ZERO,
        changes=True,
    )
)
