"""A limit for the input of an operation whose derivative is infinite at the edge."""

import ast
from dataclasses import replace

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import text_behind
from autograd_explain.rewrite.transforms.uncut import node_at

from .diagnose import Details

_EDGE_AT_ZERO = ("SqrtBackward0", "LogBackward0", "RsqrtBackward0", "Log2Backward0")


def _clamped(site: Site[Details]) -> Edits | None:
    source, node = site.program.source_at(site.place), node_at(site.program, site.place)
    operand = _operand(node) if isinstance(node, ast.Call) else None
    if source is None or operand is None:
        return None
    place = replace(site.place, span=source.span(operand))
    return text_behind(site.program, place, "clamp_min(1e-12)")


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
